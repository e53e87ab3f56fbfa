"""The salt of the hashes in ai_results: nobody tells by them what was asked, and nothing is paid twice for it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, ai_classify(body, array('good', 'bad')) as kind, ai_gen(body) as answer from {{ target.schema }}.src where ai_classify(body, array('x', 'y')) <> 'z'
"""
OTHER = """
{{ config(materialized='nondeterministic_mv', unique_key='id', refresh='incremental', ai={'on_model_change': 'keep'}) }}
select id, ai_gen(body) as answer from {{ target.schema }}.src where id < 6
"""
TESTS = """
models: [{name: mv, data_tests: [ai_error_rate_below: {arguments: {rate: 0.01}}]}]
"""
HASHES = ("result_key", "arguments_hash", "near_key", "answered_by")


def plain_hashes(sql: Any) -> int:
    """Rows of ai_results whose hash of the arguments is that of their request."""
    return int(sql("select count(*) from {schema}.ai_results where arguments_hash = sha2(request, 256)")[0][0])


class Base:
    AI: dict[str, Any] = {}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL, "other.sql": OTHER, "tests.yml": TESTS}

    @pytest.fixture(scope="class")
    def ai(self, unique_schema: str) -> dict[str, Any]:
        return {"provider": "scripted", "keep_requests": True, "salt_table": f"{unique_schema}.ai_salt", **self.AI}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any], ai: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": ai}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        sql(
            "create table {schema}.src using delta as select id, concat(if(id % 2 = 0, 'text ', 'Text '), id div 2) as body from range(12)"
        )


class TestSalted(Base):
    AI = {"dedupe": {"normalize": ["case"]}}

    def test_answers_are_found_and_their_questions_are_not(
        self, project: Any, mv: Any, sql: Any, operation: Any, warehouse: Path
    ) -> None:
        other = type(mv)(sql, "other")
        first = mv.run()["ai_calls"]
        assert first > 0 and mv.run()["strategy"] == "NO_OP" and other.run()["ai_calls"] == 0
        assert plain_hashes(sql) == 0
        near = sql("select count(*), count(near_key) from {schema}.ai_results where status = 'near'")[0]
        assert near[0] == near[1] > 0
        wrong = " or ".join(f"{name} is not null and not {name} rlike '^[0-9a-f]{{64}}$'" for name in HASHES)
        assert sql("select count(*) from {schema}.ai_results where " + wrong.replace("{", "{{").replace("}", "}}")) == [
            (0,)
        ]
        salted = "sha2(concat((select max(salt) from {schema}.ai_salt), sha2(request, 256)), 256)"
        assert sql(
            "select count(*) from {schema}.ai_results where not arguments_hash <=> "
            + salted
            + " and request is not null"
        ) == [(0,)]

        # incremental runs, operations and views
        sql("insert into {schema}.src values (20, 'new'), (21, 'New')")
        told = mv.run()
        assert 0 < told["ai_calls"] <= 3
        sql("insert into {schema}.src values (-1, 'Newest')")
        assert other.run()["strategy"] != "COMPLETE_RECOMPUTE" and other.by_id("answer")[-1]
        mv.run()
        assert "are salted" in operation("ai_views", {}) and sql("select sum(errors) from {schema}.ai_costs") == [(0,)]
        (tested,) = run_dbt(["test", "--select", "mv"])
        assert tested.status == "pass"
        answers = mv.by_id("answer")
        assert "asks again for" in operation("recompute_ai", {"model": "mv"})
        assert mv.run()["ai_calls"] > 0 and mv.by_id("answer") == answers
        sql("delete from {schema}.src where id = 20 or id = 21")
        mv.run()
        assert re.search(r" [1-9]\d* rows removed", operation("prune_ai_results", {"older_than_days": 0}))
        assert mv.run(full_refresh=True)["ai_calls"] == 0

        # the salt stands in its table and nowhere else
        ((salt,),) = sql("select salt from {schema}.ai_salt")
        assert len(salt) == 72
        home = [Path(project.project_root), Path(os.environ["DBT_LOG_PATH"]), warehouse.parent]
        files = [path for at in home for path in at.rglob("*") if path.is_file() and "ai_salt" not in path.parts]
        assert any(path.name == "dbt.log" for path in files)
        assert [str(path) for path in files if salt[:36].encode() in path.read_bytes()] == []

    def test_another_salt_is_refused_before_anything_is_asked(self, mv: Any, sql: Any) -> None:
        ((salt,),) = sql("select salt from {schema}.ai_salt")
        sql("insert into {schema}.src values (30, 'quite another')")
        before = sql("select count(*) from {schema}.ai_results")
        sql("insert overwrite {schema}.ai_salt select 'another'")
        assert "AI_SALT" in (said := mv.run(expect_pass=False)) and "another salt" in said
        sql("drop table {schema}.ai_salt")
        assert "is not there" in (said := mv.run(expect_pass=False)) and "AI_SALT" in said
        assert sql("show tables in {schema} like 'ai_salt'") == []  # no other one was drawn
        sql("create table {schema}.ai_salt (salt string) using delta")
        assert "has no salt" in mv.run(expect_pass=False)
        assert sql("select count(*) from {schema}.ai_results") == before
        sql(f"insert into {{schema}}.ai_salt values ('{salt}')")
        assert 0 < mv.run()["ai_calls"] <= 3


@pytest.mark.slow
class TestSaltedLater(Base):
    """Answers from before the salt go on counting where they are salted as the documentation says."""

    def test_by_the_statements_of_the_documentation(
        self, project: Any, mv: Any, sql: Any, ai: dict[str, Any], unique_schema: str
    ) -> None:
        profiles = Path(project.profiles_dir) / "profiles.yml"
        found = yaml.safe_load(profiles.read_text(encoding="utf-8"))

        def with_salt(table: str | None) -> None:
            (target,) = found["test"]["outputs"].values()
            target["ai"] = {**ai, "salt_table": table}
            profiles.write_text(yaml.safe_dump(found), encoding="utf-8")

        with_salt(None)
        paid = mv.run()["ai_calls"]
        assert paid > 0 and plain_hashes(sql) == paid
        sql("insert into {schema}.src values (40, 'later')")
        with_salt(f"{unique_schema}.ai_salt")
        assert "are not salted" in (said := mv.run(expect_pass=False)) and "AI_SALT" in said

        page = (Path(__file__).resolve().parents[2] / "docs" / "privacy.md").read_text(encoding="utf-8")
        (script,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
        (mark,) = re.findall(r"what `(SELECT [^`]*)` gives", page)
        (say,) = re.findall(r"`(ALTER TABLE [^`]*)`", page)
        here = lambda text: re.sub(r"\b(secrets|analytics)\.", "{schema}.", text)  # noqa: E731
        for statement in script.split(";"):
            if statement.strip():
                sql(here(statement))
        ((shown,),) = sql(here(mark))
        sql(here(say).replace("…", shown))

        assert plain_hashes(sql) == 0
        assert 0 < mv.run()["ai_calls"] <= 3
        assert mv.run(full_refresh=True)["ai_calls"] == 0
        with_salt(None)
        sql("insert into {schema}.src values (41, 'last')")
        assert "names no salt_table" in mv.run(expect_pass=False)
