"""A planted person is erased and a planted secret stands nowhere: every file, table, property, commit, log and process argument is searched."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration_tests.counting import counted
from integration_tests.under_format import delta_only

from spark_mv.query.syntax.table_name import quoted

SECRET = "sk-planted-d41d8cd98f00b204"
MAIL, NAME, TEXT = "zach.planted@example.org", "Zacharias Planted", "my knee planted-complaint hurts"
PERSON = (MAIL, NAME, "planted-complaint")
COLUMNS = "mail, name, note, note as first_note, rand() as split, ai_gen(note) as answer, seen"
PEOPLE = f"""
{{{{ config(materialized='nondeterministic_mv', unique_key='mail', sensitive_key=true, freeze=['first_note'], on_source_delete='keep') }}}}
select {COLUMNS} from {{{{ target.schema }}}}.src
where seen > current_timestamp() - interval 3000 days and seen <= current_timestamp() + interval 1 day
"""
PLAIN = f"""
{{{{ config(materialized='nondeterministic_mv', unique_key='mail') }}}}
select {COLUMNS} from {{{{ target.schema }}}}.src
"""


@pytest.mark.slow
@delta_only("erase")
class TestErase:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"people.sql": PEOPLE, "plain.sql": PLAIN}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        ai = {"provider": "scripted", "model": "test", "ask_from": "driver", "api_key": SECRET}
        return {**dbt_profile_target, "ai": ai, "run_history": True}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        sql(
            "create or replace table {schema}.src using delta as select concat('p', id, '@example.org') as mail, concat('name ', id) as name, "
            "concat('text ', id) as note, timestamp'2026-01-20 00:00:00' as seen from range(5)"
        )
        sql(f"insert into {{schema}}.src values ('{MAIL}', '{NAME}', '{TEXT}', timestamp'2026-01-20 00:00:00')")

    def test_a_person_is_erased(self, project: Any, mv: Any, sql: Any, operation: Any, warehouse: Path) -> None:
        people, plain = type(mv)(sql, "people"), type(mv)(sql, "plain")
        for model in (people, plain):
            model.run()
        # errors and the history of runs name keys, but not those of a model with sensitive keys
        sql(f"insert into {{schema}}.src values ('{MAIL}', 'twice', '{TEXT}', timestamp'2026-01-20 00:00:00')")
        assert MAIL in plain.run(expect_pass=False) and MAIL not in (said := people.run(expect_pass=False)), said
        sql("delete from {schema}.src where name = 'twice'")
        for model in (people, plain):
            model.run()
        drawn = dict(sql("select mail, split from {schema}.people"))

        by_name = {"model": "people", "where": f"name = '{NAME}'"}
        assert "ERASE_IN_SOURCE" in operation("erase", {**by_name, "model": "plain"}, expect_pass=False)
        sql(f"delete from {{schema}}.src where mail = '{MAIL}'")
        assert "ERASE_RUN_FIRST" in operation("erase", by_name, expect_pass=False)
        for model in (people, plain):
            model.run()
        assert sql(f"select count(*) from {{schema}}.people where mail = '{MAIL}'") == [(1,)]
        assert sql(f"select count(*) from {{schema}}.plain where mail = '{MAIL}'") == [(0,)]

        for said in (
            operation("erase", {**by_name, "where": "1 = 1) or (true"}, expect_pass=False),
            operation("erase", {"model": "people"}, expect_pass=False),
        ):
            assert "FORGET_WHERE" in said or "ERASE_WHAT" in said
        assert "ERASE_KEYS" in operation("erase", {"model": "plain", "keys": [{"id": 1}]}, expect_pass=False)
        version = people.version()
        would = operation("erase", {**by_name, "dry_run": True})
        assert "1 rows of its table would be erased" in would and people.version() == version
        said = operation("erase", by_name)
        assert "1 rows of its table erased" in said and "1 rows removed" in said and "VACUUM" in said, said
        assert PERSON[2] not in said
        told = operation("erase", {"model": "plain", "keys": [MAIL]})
        assert "0 rows of its table erased" in told and "commits that name a key" in told, told

        after = people.run()
        assert after["strategy"] == "NO_OP", after
        del drawn[MAIL]
        assert dict(sql("select mail, split from {schema}.people")) == drawn
        sql("update {schema}.src set note = 'other' where mail = 'p1@example.org'")
        people.run(), plain.run()
        assert dict(sql("select mail, split from {schema}.people")) == drawn

        self.vacuum(project, sql)
        found = self.search(project, sql, warehouse)
        counted({("erased", place, "searched", "all"): number for place, (number, _) in found.items()})
        counted({("erased", place, "found", ""): len(where) for place, (_, where) in found.items()})
        logs = {where.split("/")[0] for where in found["Delta's logs"][1]}
        # what the report says: least and greatest values, and key bounds, until the logs are cleaned up
        assert logs <= {"src", "plain", "ai_results", "mv_runs"} and "src" in logs, found["Delta's logs"]
        rest = {
            place: where
            for place, (_, where) in found.items()
            if place not in ("Delta's logs", "dbt's logs and target/")
        }
        assert not any(rest.values()), rest
        assert not self.secrets(project, warehouse)

    def test_a_reader_of_a_model_needs_nothing_beside_it(self, sql: Any, project: Any, warehouse: Path) -> None:
        """Rights are those of files: folders that a reader may not enter are as good as away."""
        wanted = sorted(sql("select mail, split, answer from {schema}.people"))
        folder = warehouse / "tables" / f"{project.test_schema}.db"
        beside = [name for name in ("people__state", "ai_results", "mv_runs", "src") if (folder / name).exists()]
        assert len(beside) > 2
        for name in beside:
            (folder / name).rename(folder / f"{name}.away")
        try:
            assert sorted(sql("select mail, split, answer from {schema}.people")) == wanted
        finally:
            for name in beside:
                (folder / f"{name}.away").rename(folder / name)

    def vacuum(self, project: Any, sql: Any) -> None:
        tables = [name for _, name, _ in sql("show tables in {schema}")]
        with project.adapter.connection_named("vacuum"):
            session = project.adapter.mv_spark()
            session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
            session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
            session.conf.set("spark.sql.shuffle.partitions", "1")
            for name in tables:
                session.sql(f"vacuum {project.test_schema}.{quoted(name)} retain 0 hours")

    def search(self, project: Any, sql: Any, warehouse: Path) -> dict[str, tuple[int, list[str]]]:
        """Of each kind of place, how many were searched, and those that name the person."""
        tables = [name for _, name, temporary in sql("show tables in {schema}") if not temporary]
        places: dict[str, Iterator[tuple[str, str]]] = {
            "rows of tables": (
                (name, _rows(sql, f"select to_json(struct(*)) from {{schema}}.{quoted(name)}")) for name in tables
            ),
            "properties and comments": (
                (name, _rows(sql, f"describe extended {{schema}}.{quoted(name)}")) for name in tables
            ),
            "commits of people": (("people", text) for text in [_rows(sql, "describe history {schema}.people")]),
            "Delta's logs": _files(warehouse / "tables" / f"{project.test_schema}.db", logs=True),
            "files of data": _files(warehouse / "tables" / f"{project.test_schema}.db", logs=False),
            "rows in files of data": _parquets(project, warehouse / "tables" / f"{project.test_schema}.db"),
            "Spark's log": _files(warehouse.parent, logs=False, only="spark.log"),
            "dbt's logs and target/": _dbt_files(project),
            "arguments of processes": _processes(),
        }
        found: dict[str, tuple[int, list[str]]] = {}
        for place, texts in places.items():
            number, where = 0, []
            for name, text in texts:
                number += 1
                if any(part in text for part in PERSON):
                    where.append(name)
            found[place] = number, where
        return found

    def secrets(self, project: Any, warehouse: Path) -> list[str]:
        """Where the secret stands, dbt's own profile apart."""
        texts = [*_files(warehouse.parent, logs=None), *_dbt_files(project), *_processes()]
        return [name for name, text in texts if SECRET in text and not name.endswith("profiles.yml")]


def _dbt_files(project: Any) -> Iterator[tuple[str, str]]:
    """Of the project, and dbt's log, which its tests keep elsewhere."""
    yield from _files(Path(project.project_root), logs=None)
    yield from _files(Path(os.environ["DBT_LOG_PATH"]), logs=None)


def _rows(sql: Any, statement: str) -> str:
    return json.dumps([[str(value) for value in row] for row in sql(statement)])


def _files(folder: Path, logs: bool | None, only: str = "") -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and (logs is None or ("_delta_log" in file.parts) is logs) and only in file.name:
            yield str(file.relative_to(folder)), file.read_bytes().decode("utf-8", "replace")


def _parquets(project: Any, folder: Path) -> Iterator[tuple[str, str]]:
    """Each file of rows, as its rows: what is packed in it is not found by its bytes."""
    with project.adapter.connection_named("search"):
        session = project.adapter.mv_spark()
        for table in sorted(folder.iterdir()):
            files = [str(file) for file in table.rglob("*.parquet") if "_delta_log" not in file.parts]
            rows = session.read.option("mergeSchema", "true").parquet(*files) if files else None
            whole = [] if rows is None else rows.selectExpr("_metadata.file_name", "to_json(struct(*))").collect()
            texts = {Path(file).name: [] for file in files}
            for name, text in whole:
                texts[name].append(text)
            yield from ((name, "\n".join(found)) for name, found in texts.items())


def _processes() -> Iterator[tuple[str, str]]:
    """The command lines and environments of this machine's processes that may be read, this one's own memory apart."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
            if int(folder.name) != os.getpid():
                yield folder.name, text
        except OSError:
            continue
