"""dbt's own commands around a model with draws, a clock and AI answers: one project, one Spark, several commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture
from integration_tests.under_format import FORMAT

MV = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze=['first_seen_at'], ai=var('ai', {})) }}
select id, d, body, ai_gen(body) as answer, rand() as draw, current_timestamp() as first_seen_at
from {{ ref('stg') }}
where d > current_date() - interval 30 days
"""
OWN_AS_OF = """
{{ config(materialized='nondeterministic_mv', unique_key='id', as_of='2026-01-31 00:00:00') }}
select id, current_date() as today from {{ ref('through') }}
"""
AHEAD = """
{{ config(materialized='nondeterministic_mv', unique_key='id', refresh='incremental_strict') }}
select id, d from {{ ref('stg') }} where d < current_date()
"""
BROKEN = "select id, {{ 'nowhere' if var('broken', false) else 'd' }} as d from {{ ref('mv') }}"
PROPERTIES = """
sources:
  - name: desk
    schema: "{{ var('desk', target.schema) }}"
    tables:
      - name: tickets
        config: {freshness: {warn_after: {count: 1, period: hour}}}
      - name: old_view
        config: {freshness: {warn_after: {count: 1, period: hour}}}
models:
  - name: mv
    columns:
      - name: d
        data_tests:
          - window_respected: {arguments: {interval: 30 days}}
          - window_respected: {name: too_old, arguments: {interval: 2 days, grace: 1 hour}}
      - name: answer
        data_tests:
          - ai_agrees_with: {arguments: {labels: ref('labels'), label: label, at_least: 0.5}}
          - ai_agrees_with: {name: agrees_always, arguments: {labels: ref('labels'), label: label, at_least: 0.9}}
          - ai_agrees_with: {name: nobody_labelled, arguments: {labels: ref('labels'), label: label, at_least: 0.1, rows: 5}}
    data_tests:
      - values_unchanged: {arguments: {columns: [draw, first_seen_at, answer]}}
      - values_unchanged: {name: bodies_unchanged, arguments: {columns: body}}
      - ai_error_rate_below: {arguments: {rate: 0.5}}
      - ai_error_rate_below: {name: no_errors, arguments: {rate: 0.01}}
      - matches_recompute
  - name: own_as_of
    data_tests:
      - matches_recompute: {name: right_over_an_ephemeral_model}
    columns:
      - name: today
        data_tests:
          - window_respected: {name: by_the_models_clock, arguments: {interval: 1 hour, grace: 1 hour}}
unit_tests:
  - name: of_given_values
    model: mv
    given:
      - input: ref('stg')
        rows:
          - {id: 1, d: 2026-02-01, body: fine}
          - {id: 2, d: 2025-12-01, body: fine}
          - {id: 3, d: 2026-01-31, body: null}
    overrides:
      vars: {as_of: "2026-02-02 06:00:00", draws: {rand: 0.25}, ai_answers: {ai_gen: {fine: good}}}
    expect:
      rows:
        - {id: 1, answer: good, draw: 0.25, first_seen_at: "2026-02-02 06:00:00"}
        - {id: 3, answer: null, draw: 0.25, first_seen_at: "2026-02-02 06:00:00"}
"""
WRONG_ARGUMENTS = """
models:
  - name: ahead
    data_tests:
      - values_unchanged: {name: misspelt_column, arguments: {columns: [dd]}}
      - values_unchanged: {name: misspelt_key, arguments: {columns: [d], unique_key: ids}}
      - values_unchanged: {name: no_version_back, arguments: {columns: [d], back: 0}}
      - ai_error_rate_below: {name: five_meant_as_percent, arguments: {rate: 5}}
      - ai_agrees_with: {name: none_of_no_rows, arguments: {labels: ref('labels'), column: d, at_least: 0.9, rows: 0}}
      - matches_recompute: {name: sample_of_nothing, arguments: {sample: 0%}}
      - ai_agrees_with: {name: no_labels, arguments: {column: d, at_least: 0.9}}
      - window_respected: {name: no_column, arguments: {interval: 1 day}}
      - window_respected: {name: no_unit, arguments: {interval: 30, column: d}}
  - name: stg
    data_tests:
      - values_unchanged: {name: of_a_view, arguments: {columns: [body], unique_key: id}}
      - window_respected: {name: no_instants, arguments: {interval: 9000 days, column: body}}
      - matches_recompute: {name: of_no_mv}
  - name: through
    data_tests:
      - values_unchanged: {name: of_no_table, arguments: {columns: [body], unique_key: id}}
sources:
  - name: other_desk
    schema: "{{ target.schema }}"
    tables:
      - name: tickets_of_others
        identifier: tickets
        columns:
          - name: d
            data_tests:
              - window_respected: {name: source_window, arguments: {interval: 9000 days}}
        data_tests:
          - values_unchanged: {name: source_unchanged, arguments: {columns: [d], unique_key: id}}
          - values_unchanged: {name: source_changed, arguments: {columns: [body], unique_key: id, back: 2}}
          - values_unchanged: {name: source_without_key, arguments: {columns: [d]}}
          - ai_error_rate_below: {name: rate_of_a_source}
"""
NO_ANSWER = """
unit_tests:
  - name: without_an_answer
    model: mv
    given: [{input: ref('stg'), rows: [{id: 1, body: fine}]}]
    expect: {rows: [{id: 1}]}
"""
NOW = "2026-02-05 06:00:00"


class TestCommands:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "stg.sql": "{{ config(materialized='view') }} select * from {{ source('desk', 'tickets') }}",
            "mv.sql": MV,
            "own_as_of.sql": OWN_AS_OF,
            "ahead.sql": AHEAD,
            "down.sql": BROKEN,
            "through.sql": "{{ config(materialized='ephemeral') }} select * from {{ ref('stg') }}",
            "labels.sql": "select 0 as id, 'nothing' as label union all select 1, answer from {{ ref('mv') }} where id = 1",
            "models.yml": PROPERTIES,
        }

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target: dict[str, Any], unique_schema: str) -> dict[str, Any]:
        own = {**dbt_profile_target, "ai": {"provider": "scripted", "max_attempts": 1}}
        outputs = {
            "default": {**own, "schema": unique_schema},
            "other": {**own, "schema": f"{unique_schema}_other"},
        }
        return {"test": {"outputs": outputs, "target": "default"}}

    desk = ""

    def dbt(self, *args: str, ok: bool | None = True, **variables: Any) -> dict[str, Any]:
        said = json.dumps({"as_of": NOW, "allow_future_as_of": True, "desk": self.desk, **variables})
        results = {r.node.name: r for r in run_dbt([*args, "--vars", said], expect_pass=None)}
        if ok is not None:
            assert ok == all(str(r.status) in ("success", "pass") for r in results.values()), {
                name: (str(r.status), r.message) for name, r in results.items()
            }
        return results

    def test_commands(self, project: Any, mv: Any, sql: Any) -> None:
        sql("create table {schema}.tickets using delta tblproperties (delta.enableChangeDataFeed = true) as select id, "
            "date_add(date'2026-02-01', cast(id as int)) as d, concat('text ', id) as body from range(4)")  # fmt: skip
        sql("create view {schema}.old_view as select 1 as id")
        self.desk = project.test_schema
        self.first_runs(mv, sql)
        self.shipped_tests(sql)
        self.arguments_of_tests(project)
        self.unit_tests(project)
        self.looking(project, mv)
        self.retry_and_partial(mv, sql)
        self.other_target(project, mv, sql)
        self.catalogue(project)
        self.freshness(sql)

    def first_runs(self, mv: Any, sql: Any) -> None:
        self.dbt("compile")  # tests whose tables are not there yet, too
        assert {name: str(r.status) for name, r in self.dbt("run").items()} == dict.fromkeys(
            ("stg", "mv", "own_as_of", "ahead", "down", "labels"), "success"
        )
        # the instant that the invocation says wins over the model's own
        assert sql("select distinct cast(today as string) from {schema}.own_as_of") == [("2026-02-05",)]
        _, said = run_dbt_and_capture(["run", "--select", "own_as_of"])
        assert sql("select distinct cast(today as string) from {schema}.own_as_of") == [("2026-01-31",)]
        assert "is ahead of the clock" not in said
        ahead = json.dumps({"as_of": "2999-01-01", "allow_future_as_of": True})
        _, said = run_dbt_and_capture(["run", "--select", "own_as_of", "--vars", ahead])
        assert "as_of: 2999-01-01 is ahead of the clock" in said

    def shipped_tests(self, sql: Any) -> None:
        sql("update {schema}.tickets set body = 'another text' where id = 3")
        assert self.dbt("run", "--select", "mv")["mv"].adapter_response["rows_updated"] == 1
        found = {name: str(r.status) for name, r in self.dbt("test", "--select", "mv,test_type:data", ok=False).items()}
        failed = {name for name, status in found.items() if status == "fail"}
        assert set(found.values()) == {"pass", "fail"}, found
        assert {"too_old", "agrees_always", "nobody_labelled", "bodies_unchanged"} <= failed
        (kept,) = failed - {"too_old", "agrees_always", "nobody_labelled", "bodies_unchanged"}
        assert kept.startswith("values_unchanged_mv")  # the answer to another text is another one
        sql("insert into {schema}.tickets values (9, date'2026-02-05', 'hopeless')")
        self.dbt("run", "--select", "mv", ai={"options": {"fail": {"refused": 1.0}}})
        names = ["ai_error_rate_below_mv_0_5", "no_errors"]
        found = {n: str(r.status) for n, r in self.dbt("test", "--select", *names, ok=False).items()}
        assert found == dict(zip(names, ("pass", "fail"), strict=True))

    def arguments_of_tests(self, project: Any) -> None:
        """The clock of a model with an as_of of its own is that; a test that could never fail is an error."""
        done = {r.node.name for r in run_dbt(["build", "--select", "own_as_of"])}
        assert done == {"own_as_of", "by_the_models_clock", "right_over_an_ephemeral_model"}
        file = Path(project.project_root) / "models" / "wrong.yml"
        file.write_text(WRONG_ARGUMENTS)
        try:
            run_dbt(["compile"])  # a wrong argument stops the test alone
            asked = [
                "test",
                "--select",
                "ahead",
                "of_a_view",
                "no_instants",
                "of_no_mv",
                "through",
                "source:other_desk",
            ]
            found = {r.node.name: r for r in run_dbt(asked, expect_pass=False)}
        finally:
            file.unlink()
        said = {
            "misspelt_column": "has no column dd",
            "misspelt_key": "has no column ids",
            "no_version_back": "whole number from 1 on",
            "five_meant_as_percent": "a share from 0 to 1",
            "none_of_no_rows": "whole number from 1 on",
            "sample_of_nothing": "[WRONG_SAMPLE]",
            "no_labels": "name the `labels`",
            "no_column": "name the `column`",
            "no_unit": "a length of time such as 30 days, and not 30",
            "of_a_view": "is a view, which keeps no versions",
            "of_no_mv": "stg is no nondeterministic_mv",
            "of_no_table": "is ephemeral",
            "source_without_key": "tickets_of_others: name `columns`, and `unique_key`",
            "rate_of_a_source": "is no nondeterministic_mv",
        }
        right = {
            name: str(found.pop(name).status)
            for name in ("no_instants", "source_window", "source_unchanged", "source_changed")
        }
        assert right == {
            "no_instants": "fail",
            "source_window": "pass",
            "source_unchanged": "pass",
            "source_changed": "fail",
        }
        assert {name: str(r.status) for name, r in found.items()} == dict.fromkeys(said, "error")
        assert not {name: found[name].message for name, text in said.items() if text not in found[name].message}

    def unit_tests(self, project: Any) -> None:
        found = self.dbt("test", "--select", "mv,test_type:unit")
        assert {name: str(r.status) for name, r in found.items()} == {"of_given_values": "pass"}
        file = Path(project.project_root) / "models" / "without.yml"
        file.write_text(NO_ANSWER)
        try:
            found = self.dbt("test", "--select", "without_an_answer", ok=False)
            assert "ai_gen at line" in found["without_an_answer"].message
            assert "ai_answers" in found["without_an_answer"].message
        finally:
            file.unlink()

    def looking(self, project: Any, mv: Any) -> None:
        version = mv.version()
        with project.adapter.connection_named("names"):  # as a package asks with `target.database`
            found = project.adapter.get_relation("", project.test_schema, "mv")
            assert found is not None and found.database is None
            assert "mv" in {one.identifier for one in project.adapter.list_relations("", project.test_schema)}
        shown = self.dbt("show", "--select", "mv", "--limit", "50")["mv"]
        answers = {int(row["id"]): row["answer"] for row in shown.agate_table.rows}
        assert answers == {k: v[0] for k, v in mv.by_id("answer").items()}
        compiled = self.dbt("compile", "--select", "mv")["mv"]
        assert "ai_gen(body)" in compiled.node.compiled_code
        assert mv.version() == version

    def retry_and_partial(self, mv: Any, sql: Any) -> None:
        done = self.dbt("run", "--select", "mv", "down", ok=False, broken=True)
        assert (str(done["mv"].status), str(done["down"].status)) == ("success", "error")
        again = {
            r.node.name: str(r.status)
            for r in run_dbt(["retry", "--vars", json.dumps({"as_of": NOW, "desk": self.desk})])
        }
        assert again == {"down": "success"}
        rows, version = mv.rows(), mv.version()
        for flag in (("--empty",), ("--sample", "3 days")):
            assert str(self.dbt("run", "--select", "mv", *flag)["mv"].status) == "success"
            assert (mv.rows(), mv.version()) == (rows, version)

    def other_target(self, project: Any, mv: Any, sql: Any) -> None:
        root = Path(project.project_root)
        # the answers are those of a schema: another environment would ask anew for the one that failed here
        sql("delete from {schema}.tickets where id = 9")
        self.dbt("run", "--select", "mv")
        shutil.copytree(root / "target", root / "state", dirs_exist_ok=True)
        other = f"{project.test_schema}_other"
        project.run_sql(f"create schema if not exists {other}")
        state = ("--state", "state", "--target", "other")
        # deferred: reads the model of the state, which is not built here
        assert set(self.dbt("run", "--select", "down", "--defer", *state)) == {"down"}
        assert sql(f"select count(*) from {other}.down") == sql("select count(*) from {schema}.down")
        # state:modified follows the config of the materialization, and its SQL
        assert run_dbt(["ls", "--select", "state:modified", *state, "--resource-type", "model"]) == []
        file = root / "models" / "mv.sql"
        file.write_text(MV.replace("unique_key='id'", "unique_key='id', freeze_where='id = 1'"))
        changed = run_dbt(["ls", "--select", "state:modified", *state, "--resource-type", "model"])
        file.write_text(MV)
        assert changed == ["test.mv"]
        if FORMAT != "delta":  # only Delta tables are cloned
            return
        # a clone is a model's table with all that was kept, and goes on from there
        assert "mv" in self.dbt("clone", "--select", "mv", *state)
        draws = f"select id, draw, first_seen_at, answer from {other}.mv"
        assert sorted(sql(draws)) == sorted(sql("select id, draw, first_seen_at, answer from {schema}.mv"))
        before = sorted(sql(draws))
        done = self.dbt("run", "--select", "stg", "mv", "--target", "other")
        assert done["mv"].adapter_response["rows_affected"] == 0
        assert sorted(sql(draws)) == before

    def catalogue(self, project: Any) -> None:
        root, desk = Path(project.project_root), json.dumps({"desk": self.desk})
        run_dbt(["docs", "generate", "--vars", desk])
        catalog = json.loads((root / "target" / "catalog.json").read_text())
        stats = {k: v["value"] for k, v in catalog["nodes"]["model.test.mv"]["stats"].items()}
        assert stats["column_draw"].startswith("nondeterministic; drawn once per key and kept; ")
        assert "rand" in stats["column_draw"]
        assert stats["column_first_seen_at"].startswith("command; the first value of a key is kept (freeze)")
        assert "kept in ai_results (on_ai_error: null)" in stats["column_answer"]
        assert "column_id" not in stats and "column_d" not in stats
        # the same in the manifest that it writes: of all columns, and at each column that the YAML names; no model counts as modified by it
        node = json.loads((root / "target" / "manifest.json").read_text())["nodes"]["model.test.mv"]
        said = node["meta"]["determinism"]
        assert said["id"] == {"level": "deterministic"} and set(said) == {
            "id",
            "d",
            "body",
            "answer",
            "draw",
            "first_seen_at",
        }
        assert said["draw"]["level"] == "nondeterministic" and said["draw"]["policy"] == "drawn once per key and kept"
        assert "rand" in said["draw"]["cause"] and stats["column_draw"] == "; ".join(said["draw"].values())
        assert node["columns"]["answer"]["meta"]["determinism"] == said["answer"] and set(node["columns"]) == {
            "answer",
            "d",
        }
        shutil.copytree(root / "target", root / "documented")
        asked = ["--select", "state:modified", "--state", "documented", "--resource-type", "model", "--vars", desk]
        assert run_dbt(["ls", *asked]) == []

    def freshness(self, sql: Any) -> None:
        results = run_dbt(["source", "freshness", "--select", "source:desk.tickets"])
        assert [str(r.status) for r in results] == ["pass"]
        assert 0 <= results[0].age < 3600
        changed = results[0].max_loaded_at
        sql("alter table {schema}.tickets set tblproperties ('note' = 'no row changes by this')")
        (again,) = run_dbt(["source", "freshness", "--select", "source:desk.tickets"])
        assert again.max_loaded_at == changed
        (refused,) = run_dbt(["source", "freshness", "--select", "source:desk.old_view"], expect_pass=False)
        assert "loaded_at_field" in str(refused.message)


class TestSampled:
    """`--sample` hands over the rows of some days: what is missing there was not deleted, and keeps its values."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='nondeterministic_mv', unique_key='id') }}"
        return {
            "events.sql": "{{ config(materialized='view', event_time='at') }} select * from {{ target.schema }}.raw_events",
            "mv.sql": config + " select id, at, rand() as draw from {{ ref('events') }}",
            "other.sql": config + " select id, rand() as draw from {{ ref('events') }}",
        }

    def test_it_leaves_a_table_as_it_is(self, mv: Any, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        sql(
            "create table {schema}.raw_events as select id, current_timestamp() - make_dt_interval(cast(id as int)) as at from range(40)"
        )
        run_dbt(["run", "--select", "events", "mv"])
        rows, version = mv.rows(), mv.version()
        days = "{'start': '2020-01-01', 'end': '2020-02-01'}"
        for given in (["--sample", "5 days"], ["--sample", days], ["--sample", "5 days", "--full-refresh"]):
            assert run_dbt(["run", "--select", "mv", *given])[0].message.startswith("SKIPPED")
        monkeypatch.setenv("DBT_SAMPLE", "3 days")
        assert run_dbt(["run", "--select", "mv"])[0].message.startswith("SKIPPED")
        assert (mv.rows(), mv.version()) == (rows, version)
        # a first run makes the table of what it is given, and the next one takes the rest
        run_dbt(["run", "--select", "other"])
        few = dict(sql("select id, draw from {schema}.other"))
        assert 0 < len(few) < 40
        monkeypatch.delenv("DBT_SAMPLE")
        run_dbt(["run", "--select", "other"])
        found = dict(sql("select id, draw from {schema}.other"))
        assert len(found) == 40 and {key: found[key] for key in few} == few
