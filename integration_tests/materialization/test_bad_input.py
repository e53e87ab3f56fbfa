"""Wrong input stops the run before anything is touched, and says what to do."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file

GOOD = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, rand() as split from {{ target.schema }}.src
"""


def model(select: str, **config: Any) -> str:
    words = ", ".join(f"{key}={value!r}" for key, value in {"unique_key": "id", **config}.items() if value is not None)
    return f"{{{{ config(materialized='nondeterministic_mv', {words}) }}}}\n{select}"


SELECT = "select id, rand() as split from {{ target.schema }}.src"

CASES = {
    "no_key": (model(SELECT, unique_key=None), ["unique_key is missing"]),
    "key_not_selected": (model(SELECT, unique_key="nr"), ["unique_key nr", "(id, split)"]),
    "unknown_word": (model(SELECT, on_row_updates="keep"), ["on_row_updates", "did you mean 'on_row_update'"]),
    "wrong_choice": (model(SELECT, on_source_delete="keeep"), ["on_source_delete", "did you mean 'keep'"]),
    "several_at_once": (
        model(SELECT, unique_key=None, on_source_delete="x", refresh="y"),
        ["unique_key is missing", "on_source_delete", "refresh"],
    ),
    "no_merge": (model(SELECT, file_format="parquet"), ["file_format", "'parquet'", "delta"]),
    "duplicate_keys": (
        model("select id % 5 as id, rand() as split from {{ target.schema }}.src where id < 6"),
        ["2 rows share a key", '{"id":0}', "row_number() = 1"],
    ),
    "null_keys": (
        model("select nullif(id, 3) as id, rand() as split from {{ target.schema }}.src"),
        ["1 row has a NULL", '{"id":null}'],
    ),
    "does_not_parse": (model("select id,, rand() as split from {{ target.schema }}.src"), ["line"]),
    "drawn_key": (model("select uuid() as id, id as n from {{ target.schema }}.src"), ["uuid()", "key"]),
    "drawn_group": (
        model("select floor(rand() * 3) as id, count(*) as n from {{ target.schema }}.src group by floor(rand() * 3)"),
        ["GROUP BY", "rand()", "line"],
    ),
    "field_twice": (
        model("select id, named_struct('a', id, 'A', 1) as pair, rand() as split from {{ target.schema }}.src"),
        ["column pair", "two fields called a", "rename one"],
    ),
    "same_name_twice": (
        model("select id, rand() as a, uuid() as a from {{ target.schema }}.src"),
        ["columns named a", "own name"],
    ),
    "keep_without_bounds": (
        model(
            "select id, rand() as split from {{ target.schema }}.src where hash(current_date()) > id",
            on_source_delete="keep",
        ),
        ["on_source_delete: keep", "on_source_delete: delete"],
    ),
}


class TestBadInput:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": GOOD}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any, mv: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id from range(10)")
        mv.run()

    @pytest.mark.parametrize("name", CASES)
    def test_refused_and_untouched(self, project: Any, mv: Any, sql: Any, name: str) -> None:
        text, words = CASES[name]
        version, rows = mv.version(), mv.rows()
        write_file(text, project.project_root, "models", "mv.sql")
        said = mv.run(expect_pass=False)
        for word in words:
            assert word in said, said
        assert "mv" in said
        assert (mv.version(), mv.rows()) == (version, rows)
        left = [row[1] for row in sql("show tables in {schema} like 'mv__mv_stage*'")]
        assert left == []


class TestNamesakes:
    """Two nodes of one table, and a state that has a model's name: each would take the other's rows for its own."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sampled = GOOD.replace("from {{ target.schema }}.src", "from {{ target.schema }}.src where rand() < 2")
        assert sampled != GOOD
        return {
            "mv.sql": GOOD,
            "Other.sql": GOOD.replace("unique_key='id'", "unique_key='id', alias='MV'"),
            "plain.sql": "{{ config(materialized='table') }} select 1 as id",
            "mv2.sql": GOOD.replace("unique_key='id'", "unique_key='id', alias='Plain'"),
            "s.sql": sampled,
            "s__state.sql": "{{ config(materialized='table') }} select 1 as id",
        }

    def test_are_refused(self, project: Any, sql: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id from range(10)")
        found = {result.node.name: result for result in run_dbt(["run"], expect_pass=False)}
        assert {name for name, result in found.items() if str(result.status) == "success"} == {"plain", "s__state"}
        for name, other in (("mv", "Other"), ("Other", "mv"), ("mv2", "plain"), ("s", "s__state")):
            assert "OWN_NAME" in found[name].message and f".{other}:" in found[name].message


class TestSwappedNames:
    """Two models that swap their aliases: a table is its model's, whatever it is called."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            f"{name}.sql": GOOD.replace("unique_key='id'", f"unique_key='id', alias=var('{name}', '{name}')")
            for name in "ab"
        }

    def test_keep_their_values(self, project: Any, sql: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id from range(10)")
        drawn = "select id, split from {schema}.%s"
        run_dbt(["run"])
        of_a, of_b = sql(drawn % "a"), sql(drawn % "b")
        swapped = ["run", "--vars", "{a: b, b: a}"]
        found = run_dbt(swapped, expect_pass=False)
        assert all(
            "NOT_OURS" in result.message and "another model of this project" in result.message for result in found
        )
        assert (sql(drawn % "a"), sql(drawn % "b")) == (of_a, of_b)
        for before, after in (("a", "c"), ("b", "a"), ("c", "b")):
            sql(f"alter table {{schema}}.{before} rename to {{schema}}.{after}")
        run_dbt(swapped)
        assert (sorted(sql(drawn % "b")), sorted(sql(drawn % "a"))) == (sorted(of_a), sorted(of_b))
        # without that: the name is taken, and all is drawn anew
        run_dbt(["run", "--select", "a", "--full-refresh"])
        assert {*sql(drawn % "a")}.isdisjoint({*of_a, *of_b})


class TestForeignTable:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": GOOD}

    def test_never_overwritten_without_full_refresh(self, project: Any, mv: Any, sql: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id from range(10)")
        sql("create or replace table {schema}.mv using delta as select 1 as precious")
        said = mv.run(expect_pass=False)
        assert "did not make" in said and "--full-refresh" in said
        assert mv.rows() == {(1,): 1}
        assert mv.run("2026-02-01 06:00:00", "--full-refresh")["rows_inserted"] == 10

    def test_a_view_is_replaced_on_full_refresh(self, project: Any, mv: Any, sql: Any) -> None:
        sql("drop table if exists {schema}.mv")
        sql("create view {schema}.mv as select 1 as precious")
        assert "view of this name" in mv.run(expect_pass=False)
        assert mv.run("2026-02-01 06:00:00", "--full-refresh")["rows_inserted"] == 10


class TestEmptyAndSample:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "src.sql": "{{ config(materialized='table') }} select id from range(10)",
            "mv.sql": GOOD.replace("{{ target.schema }}.src", "{{ ref('src') }}"),
        }

    def test_empty_never_touches_kept_data(self, project: Any, mv: Any) -> None:
        run_dbt(["run", "--empty"])
        assert mv.rows() == {}
        run_dbt(["run"])
        drawn = mv.rows()
        assert sum(drawn.values()) == 10
        results = run_dbt(["run", "--empty"])
        assert "SKIPPED" in next(r for r in results if r.node.name == "mv").adapter_response["_message"]
        assert mv.rows() == drawn
