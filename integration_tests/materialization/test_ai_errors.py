"""on_ai_error counts wherever it stands: in the profile, in the model's `ai` block, or beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from integration_tests.materialization.conftest import Mv

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', ai=var('ai', {})) }}
select id, ai_gen(body) as answer from {{ target.schema }}.src
"""


class TestOnAiError:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        options = {"fail": {"refused": 0.5}}
        return {**dbt_profile_target, "ai": {"provider": "scripted", "on_ai_error": "fail", "options": options}}

    def test_the_model_wins_over_the_profile(self, project: Any, mv: Any, sql: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id, concat('text ', id) as body from range(20)")
        said = mv.run(expect_pass=False)
        assert "on_ai_error is fail" in said and "nothing was changed" in said
        assert not sql("show tables in {schema} like 'mv'")

        allowed = mv.run(ai={"on_ai_error": "null"})
        failed = sum(row[0] is None for row in mv.rows("answer").elements())
        assert 0 < failed < 20
        # the answers that came are kept from the failed run, the inputs that were refused may not be asked again yet
        assert (allowed["ai_calls"], allowed["ai_reused"], allowed["ai_errors"]) == (0, 20 - failed, failed)


NESTED = """
{{ config(materialized='nondeterministic_mv', unique_key='id', max_ai_calls=5, refresh='incremental') }}
select id, ai_gen(ai_gen(body)) as answer from {{ target.schema }}.src
"""

KEYED = """
{{ config(materialized='nondeterministic_mv', unique_key='answer', max_ai_calls=3) }}
select ai_gen(body) as answer, count(*) as n from {{ target.schema }}.src group by 1
"""


class TestBudget:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": NESTED, "keyed.sql": KEYED}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted"}}

    def test_it_is_that_of_the_run_not_of_each_call(self, project: Any, mv: Any, sql: Any) -> None:
        """Eight texts, two calls each, five calls a run: four runs, none of which fails, nor is refused for what the last one left over."""
        sql("create table {schema}.src using delta as select id, concat('text ', id) as body from range(8)")
        calls = [mv.run()["ai_calls"] for _ in range(5)]
        assert calls == [5, 5, 5, 1, 0]
        assert mv.rows("count(*)", "answer is null") == {(0,): 1}

    def test_a_key_that_waits_for_its_answer_says_so(self, project: Any, sql: Any) -> None:
        sql(
            "create or replace table {schema}.src using delta as select id, concat('other text ', id) as body from range(4)"
        )
        keyed = Mv(sql, "keyed")
        said = keyed.run(expect_pass=False)
        assert "[KEY_REPEATED]" in said and "1 AI answers are still to come" in said and "run again" in said, said
        keyed.run()
        assert keyed.rows("count(*)") == {(4,): 1}


PENDING = """
{{ config(materialized='nondeterministic_mv', unique_key='id', ai=var('ai', {})) }}
select id, ai_gen(body) as answer from {{ target.schema }}.texts
"""


class TestWhatIsStillToCome:
    """A failed input takes neither NO_OP nor an incremental strategy from its model, and is not asked for without need."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": PENDING}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted", "max_attempts": 1}}

    def test_refused_and_failing_inputs(self, project: Any, mv: Any, sql: Any, operation: Any, tmp_path: Path) -> None:
        counted = tmp_path / "asked"

        def run(**more: Any) -> tuple[str, int]:
            """Strategy of a run, and how often the provider was asked."""
            counted.write_text("")
            options = {"count_file": str(counted), "fail": {"refused": 0.2, "server": 0.3}, "fail_attempts": 1000}
            done = mv.run(ai={"options": {**options, **more}})
            self.message = done["_message"]
            return done["strategy"], len(counted.read_text().splitlines())

        sql("create table {schema}.texts using delta tblproperties (delta.enableChangeDataFeed = true) "
            "as select id, concat('text ', id) as body from range(30)")  # fmt: skip
        assert run() == ("COMPLETE_RECOMPUTE", 30)
        (statuses,) = sql("select count_if(status = 'error'), count_if(status = 'refused') from {schema}.ai_results")
        failing, refused = statuses
        assert failing > 0 and refused > 0
        assert run() == (
            "COMPLETE_RECOMPUTE",
            failing,
        )  # what may have passed is asked for by the next run, then it waits
        assert run() == ("NO_OP", 0)
        assert f"{failing} AI answers that failed are asked for again from 20" in self.message
        sql("insert into {schema}.texts values (100, 'new one')")
        strategy, asked = run(fail={})
        assert (strategy, asked) == ("APPEND_ONLY", 1)
        assert run() == ("NO_OP", 0)
        assert f"{failing} AI answers" in self.message

        # asked for: one complete recompute, and what is answered by then is no more to come
        operation("recompute_ai", {"model": "mv", "errors_only": True})
        assert run(fail={}) == ("COMPLETE_RECOMPUTE", failing + refused)
        assert run() == ("NO_OP", 0)
        assert "asked for again" not in self.message
        assert mv.rows("count(*)", "answer is null") == {(0,): 1}


KEEP = """
{{ config(materialized='nondeterministic_mv', unique_key='id', on_ai_error=var('on_error', 'keep_old'), audit=true, ai=var('ai', {})) }}
select id, x, coalesce(upper(ai_gen(body)), 'none') as answer from {{ target.schema }}.kept
"""


class TestKeepOld:
    """A failing answer leaves the row's old value; a new row has none."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": KEEP}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted", "max_attempts": 1}}

    def test_the_old_value_stays_until_there_is_an_answer(
        self, project: Any, mv: Any, sql: Any, operation: Any
    ) -> None:
        sql("create table {schema}.kept using delta tblproperties (delta.enableChangeDataFeed = true) "
            "as select id, cast(0 as int) as x, concat('text ', id) as body from range(4)")  # fmt: skip
        mv.run()
        old = mv.by_id("answer")
        assert len(set(old.values())) == 4
        failing = {"options": {"fail": {"refused": 1.0}}}
        sql("update {schema}.kept set body = 'other text', x = 1 where id = 0")
        sql("update {schema}.kept set body = null where id = 1")  # no question, no answer: that is data
        sql("insert into {schema}.kept values (9, 0, 'new text')")
        done = mv.run(ai=failing)
        rows = mv.by_id("x, answer")
        assert done["ai_errors"] == 2 and done["audit_differences"] == 0
        assert rows == {0: (1, *old[0]), 1: (0, "none"), 2: (0, *old[2]), 3: (0, *old[3]), 9: (0, "none")}
        assert mv.run(ai=failing)["audit_differences"] == 0
        mv.run("2026-02-01 06:00:00", "--full-refresh", ai=failing)
        assert mv.by_id("x, answer") == rows
        operation("recompute_ai", {"model": "mv", "errors_only": True})
        mv.run()
        after = mv.by_id("answer")
        assert after[0] not in (old[0], ("none",)) and after[9] != ("none",) and after[2] == old[2]


class TestKeepOldOverSubqueries(TestKeepOld):
    """The question of each row is a subquery's; what fails is looked up by it."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        body = "(select max(i.body) from {{ target.schema }}.kept i where i.id = o.id)"
        return {"mv.sql": KEEP.replace("ai_gen(body)", f"ai_gen({body})").replace(".kept\n", ".kept o\n")}


FROZEN = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze=['answer'], max_ai_calls=5) }}
select id, ai_gen(body) as answer, case when id > 3 then rand() end as draw from {{ target.schema }}.src
"""


SHOWN = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze=['answer'], refresh=var('refresh', 'auto')) }}
with classified as (select *, ai_gen(ai_gen(body)) as answer, ai_gen(note) as noted from {{ target.schema }}.notes)
select c.id, c.answer, c.noted, body from classified c where c.id < 100
"""


class TestFrozenAnswers:
    """Frozen is the first answer; a budget or an outage that kept it away is none. Nothing is asked that would not be shown."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": FROZEN, "shown.sql": SHOWN}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted"}}

    def test_it_stays_once_it_is_there(self, project: Any, mv: Any, sql: Any) -> None:
        sql("create table {schema}.src using delta as select id, concat('text ', id) as body from range(8)")
        mv.run()
        answered = [id for id, answer in mv.rows("id, answer") if answer is not None]
        drawn = mv.rows("id, draw")
        assert len(answered) == 5
        sql(f"update {{schema}}.src set body = 'another' where id = {answered[0]}")
        assert mv.run()["ai_calls"] == 3
        assert mv.rows("id, answer") == {(id, f"ai_gen: text {id}"): 1 for id in range(8)}
        assert mv.rows("id, draw") == drawn  # a draw that is NULL was drawn
        assert mv.run()["strategy"] == "NO_OP"

    @pytest.mark.parametrize("refresh", ["auto", "full"])
    def test_nothing_is_asked_that_would_not_be_shown(
        self, project: Any, mv: Any, sql: Any, operation: Any, refresh: str
    ) -> None:
        feed = "using delta tblproperties (delta.enableChangeDataFeed = true)"
        sql(
            f"create or replace table {{schema}}.notes {feed} as select id, concat('{refresh} ', id) as body, '{refresh}' as note from range(20)"
        )
        sql("drop table if exists {schema}.shown")

        def run() -> int:
            return int(Mv(sql, "shown").run(refresh=refresh)["ai_calls"])

        def answers() -> dict[int, str]:
            return dict(sql("select id, answer from {schema}.shown"))

        assert run() == 41
        before = answers()
        sql("update {schema}.notes set body = concat(body, ' edited'), note = concat(note, '!') where id in (3, 4)")
        assert run() == 1  # of the notes, which are not frozen, the one that is new
        assert answers() == before
        assert sql("select count(*) from {schema}.shown where noted like '%!' and body like '%edited'") == [(2,)]
        sql(f"insert into {{schema}}.notes values (50, '{refresh} new', '{refresh}')")
        assert run() == 2
        operation("forget_values", {"model": "shown", "columns": ["answer"], "where": "id = 3"})
        assert run() == 4  # of the whole query, also of row 4
        assert answers() == {**before, 3: f"ai_gen: ai_gen: {refresh} 3 edited", 50: f"ai_gen: ai_gen: {refresh} new"}
        # what somebody else wrote is no answer
        sql("update {schema}.shown set answer = 'mine' where id = 5")
        sql("update {schema}.notes set body = concat(body, ' edited') where id = 5")
        run()
        assert answers()[5] == before[5]


SHARED = """
{{ config(materialized='nondeterministic_mv', unique_key='id', ai=var('ai', {})) }}
select id, ai_gen(body) as answer from {{ target.schema }}.shared
"""


class TestTwoModelsOfARun:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"one.sql": SHARED, "two.sql": SHARED}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "ai": {"provider": "scripted", "max_attempts": 1}}

    def test_the_first_asks_and_the_next_run_asks_again(self, project: Any, sql: Any, tmp_path: Path) -> None:
        counted = tmp_path / "asked"
        sql("create table {schema}.shared using delta as select id, concat('text ', id) as body from range(4)")

        def run(fail: dict[str, float]) -> int:
            counted.write_text("")
            options = {"count_file": str(counted), "fail": fail, "fail_attempts": 1000}
            run_dbt(["run", "--vars", json.dumps({"ai": {"options": options}})])
            return len(counted.read_text().splitlines())

        assert run({"server": 1.0}) == 4
        assert run({}) == 4
        for model in ("one", "two"):
            assert sql(f"select count(answer) from {{schema}}.{model}") == [(4,)]
