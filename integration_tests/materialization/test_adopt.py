"""`spark-mv adopt` and `eject`: tables of other materializations come and go with the values that they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import Mv
from dbt.tests.util import run_dbt, write_file
from integration_tests.under_format import delta_only

from spark_mv.cli import main

INCREMENTAL = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', merge_exclude_columns=['split', 'seen_at'],
          on_schema_change='append_new_columns') }}
select id, body, note, rand() as split, concat('paid for ', body) as mood, current_timestamp() as seen_at
from {{ target.schema }}.src
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""
MV = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze=['seen_at']) }}
with asked as (select *, ai_analyze_sentiment(body) as mood from {{ target.schema }}.src)
select id, body, note, rand() as split, mood, current_timestamp() as seen_at from asked
"""
TABLE = "{{ config(materialized='table', tags=['nightly)']) }}\nselect id, body, uuid() as token from {{ target.schema }}.src\n"
TWICE = "{{ config(materialized='table') }} select id % 3 as id, rand() as r from {{ target.schema }}.src"
VIEW = "{{ config(materialized='view') }} select id, rand() as r from {{ target.schema }}.src"


@delta_only("spark-mv adopt takes Delta tables")
class TestAdopt:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted"}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": INCREMENTAL, "tab.sql": TABLE, "twice.sql": TWICE, "seen.sql": VIEW}

    @pytest.fixture(scope="class")
    def command(self, project: Any) -> Callable[..., Result]:
        where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        return lambda *words: CliRunner().invoke(main, [*words, *where])

    def save(self, project: Any, name: str, text: str) -> None:
        write_file(text, project.project_root, "models", f"{name}.sql")

    def test_incremental_with_draws_and_answers(
        self, project: Any, mv: Mv, sql: Any, command: Callable[..., Result]
    ) -> None:
        sql(
            "create or replace table {schema}.src using delta as select id, concat('text ', id % 5) as body, "
            "cast(0 as int) as note from range(20)"
        )
        assert len(run_dbt(["run"])) == 4
        sql("update {schema}.src set body = 'quite another text' where id = 3")
        sql("update {schema}.src set note = 1 where id = 4")  # no argument of the AI function
        sql("delete from {schema}.src where id = 5")
        sql("insert into {schema}.src values (100, 'a new text', 0)")
        sql("update {schema}.mv set mood = null where id = 6")  # its text has an answer in other rows
        before = mv.by_id("split, seen_at, mood")

        # still incremental: what it would be, without is_incremental(); seen_at was not to be overwritten
        early = command("adopt", "mv")
        assert early.exit_code == 0, early.output
        assert (
            "split, seen_at: the table's values stay" in early.output and "Leave out is_incremental()" in early.output
        )
        assert "config(materialized='nondeterministic_mv', unique_key='id', freeze=['seen_at'])" in early.output

        self.save(project, "mv", MV)
        refused = mv.run(expect_pass=False)
        assert "spark-mv adopt mv" in refused and "Compilation Error" not in refused
        version = mv.version()
        dry = command("adopt", "mv")
        assert dry.exit_code == 0, dry.output
        assert "20; id is unique and never NULL" in dry.output
        assert (
            "+1 new, ~2 that differ today (body 1, note 1), -1 that only the table has; not compared: mood"
            in dry.output
        )
        assert (
            "mood: 5 answers from 17 rows, which nobody pays again, none from 1 rows that were edited since"
            in dry.output
        )
        assert "2 calls left for the next run" in dry.output
        assert (mv.version(), sql("select count(*) from {schema}.ai_results")) == (version, [(0,)])

        assert command("adopt", "mv", "--apply").exit_code == 0
        assert mv.by_id("split, seen_at, mood") == before
        assert "was adopted already" in command("adopt", "mv").output

        run = mv.run()
        assert (run["strategy"], run["code"], run["ai_calls"], run["values_kept"]) == (
            "COMPLETE_RECOMPUTE",
            "MERGE",
            2,
            19,
        )
        # 3 and 4 were edited, 6 shows the answer of its text, 100 is new, 5 is gone
        assert (run["rows_inserted"], run["rows_updated"], run["rows_deleted"]) == (1, 3, 1)
        after = mv.by_id("split, seen_at, mood")
        assert {k: v[:2] for k, v in after.items() if k != 100} == {k: v[:2] for k, v in before.items() if k != 5}
        assert {k: v[2] for k, v in after.items() if k not in (3, 6, 100)} == {
            k: v[2] for k, v in before.items() if k not in (3, 5, 6)
        }
        assert after[6][2] == "paid for text 1"
        assert mv.run()["strategy"] == "NO_OP"
        sql("update {schema}.src set note = 2 where id = 7")
        assert (mv.run()["ai_calls"], mv.by_id("split")[7]) == (0, (before[7][0],))

    def test_a_table_there_and_back(self, project: Any, sql: Any, command: Callable[..., Result]) -> None:
        tab = Mv(sql, "tab")
        before = tab.by_id("token")
        keyless = command("adopt", "tab")
        assert keyless.exit_code == 1 and "unique_key is missing" in keyless.output and "`-k COLUMN`" in keyless.output
        sql("insert into {schema}.src values (101, 'b', 0)")
        done = command("adopt", "tab", "-k", "id", "--apply")
        assert done.exit_code == 0, done.output
        assert "{{ config(materialized='nondeterministic_mv', unique_key='id', tags=['nightly)']) }}" in done.output
        self.save(project, "tab", done.output[done.output.index("{{") :])
        run = tab.run()
        assert (run["code"], run["values_kept"]) == ("MERGE", len(set(before) & set(tab.by_id("token"))))
        kept = tab.by_id("token")
        assert {k: v for k, v in before.items() if k in kept} == {k: v for k, v in kept.items() if k in before}

        ejected = command("eject", "tab", "--apply")
        assert ejected.exit_code == 0 and "is a plain table now" in ejected.output
        assert "on_schema_change='append_new_columns', tags=['nightly)']) }}" in ejected.output
        assert tab.by_id("token") == kept
        assert "spark_mv" not in str(sql("show tblproperties {schema}.tab"))
        self.save(project, "tab", ejected.output[ejected.output.index("--") :])
        sql("insert into {schema}.src values (102, 'c', 0)")
        assert len(run_dbt(["run", "--select", "tab"])) == 1  # as incremental
        again = tab.by_id("token")
        assert {k: v for k, v in again.items() if k != 102} == kept
        assert command("adopt", "tab", "--apply").exit_code == 0
        self.save(project, "tab", TABLE.replace("'table'", "'nondeterministic_mv', unique_key='id'"))
        assert (tab.run()["rows_affected"], tab.by_id("token")) == (0, again)

    def test_what_cannot_be_adopted(self, command: Callable[..., Result]) -> None:
        twice = command("adopt", "twice", "-k", "id", "--apply")
        assert twice.exit_code == 1 and '3 keys stand in several rows, for instance [{"id":' in twice.output
        assert "is a view and keeps no values" in command("adopt", "seen", "-k", "id").output
        assert "no model named 'nobody'" in command("adopt", "nobody").output
        assert "is no table of a nondeterministic_mv" in command("eject", "twice").output
        assert command("adopt", "tab", "--profile", "none").exit_code == 2
