"""Model changes, budgets, errors asked again, pruning, views, native functions, the driver's own job, dry run."""

from __future__ import annotations

import json
import time
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Behaviour, Endpoint
from integration_tests.under_format import delta_only

from spark_mv.ai.driver_job import run_ai_round_on_driver
from spark_mv.ai.job import count_ai_round
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.upkeep import costs_view_sql, errors_view_sql, provenance_sql, prune_sql, recompute_sql
from spark_mv.maintenance.ai_context import AiContext
from spark_mv.spark.run.ai import AiRunner

SQL = "SELECT id, ai_gen(t) AS k FROM {s}.src"


def twelve(bench: Bench) -> None:
    bench.table("src", "id INT, t STRING", *(f"({n}, 'text {n}')" for n in range(12)))


def states(bench: Bench, settings: Any) -> dict[str, int]:
    calls = bench.plan(SQL, settings).calls
    return dict(bench.rows(f"SELECT state, count(*) FROM ({provenance_sql(calls, bench.results)}) GROUP BY state"))  # type: ignore[arg-type]


def test_a_model_change_under_a_budget_and_what_is_kept(bench: Bench) -> None:
    twelve(bench)
    old = bench.settings({"model": "m", "model_version": "1"})
    bench.run(SQL, old)
    keep = bench.settings({"model": "m", "model_version": "2"}, on_model_change="keep")
    outcome, rows = bench.run(SQL, keep)
    assert (outcome.calls, outcome.reused) == (0, 12)
    assert all(k for _, k in rows)

    bench.sql(f"INSERT INTO {bench.schema}.src VALUES (100, 'new')")
    budget = bench.settings({"model": "m", "model_version": "2"}, max_ai_calls=5)
    outcome, rows = bench.run(SQL, budget)
    assert (outcome.calls, outcome.left_for_later) == (5, 8)
    assert all(k for _, k in rows)  # the new text came first, the others show the old answer
    assert states(bench, budget) == {"current": 5, "old model": 8}
    assert bench.run(SQL, budget)[0].left_for_later == 3
    assert bench.run(SQL, budget)[0].left_for_later == 0
    assert bench.run(SQL, budget)[0].calls == 0
    outcome, _ = bench.run(SQL, bench.settings({"model": "m", "model_version": "3"}))
    assert outcome.calls == 13


def test_only_an_answer_to_the_same_question_stands_in_for_one_that_is_missing(bench: Bench) -> None:
    bench.table("src", "id INT, t STRING", "(1, 'a'), (2, 'b')")
    keep = bench.settings(on_model_change="keep")

    def asked(call: str, settings: Any = keep) -> int:
        return int(bench.run(f"SELECT id, {call} AS a FROM {{s}}.src", settings)[0].calls)

    city = "ai_query('m', t, returnType => 'STRUCT<city: STRING>')"
    assert [asked(city), asked(city)] == [2, 0]
    assert asked(city, bench.settings({"versions": {"m": "2"}}, on_model_change="keep")) == 0
    assert asked(city.replace("city:", "name:")) == 2
    assert asked(city.replace("'m'", "'large'")) == 2
    assert asked(city.replace("t,", "t, modelParameters => named_struct('temperature', 0.5),")) == 2
    # beside an answer, another question has none
    text, number = "ai_query('m', t)", "ai_query('m', t, returnType => 'INT')"
    assert asked(number) == 2
    plan = bench.plan(f"SELECT id, {number} AS a, {text} AS b FROM {{s}}.src", keep)
    assert all(row["a"] is not None and row["b"] is None for row in bench.spark.sql(plan.sql).collect())


@pytest.mark.parametrize("bench", ["executors", "auto"], indirect=True)
def test_budgets_of_tokens_and_cost_end_a_job_not_a_run(bench: Bench) -> None:
    twelve(bench)
    priced = {"price_per_1k_input_tokens": 1, "price_per_1k_output_tokens": 1, "concurrency": 1}
    for limit in ({"max_ai_tokens": 40}, {"max_ai_cost": 0.03}):
        bench.sql(f"DELETE FROM {bench.results}")
        settings = bench.settings(priced, **limit)
        total = AiOutcome()
        for _ in range(12):
            outcome, _ = bench.run(SQL, settings)
            assert outcome.input_tokens + outcome.output_tokens <= 40
            assert outcome.cost <= limit.get("max_ai_cost", 1)
            assert outcome.errors == 0
            total += outcome
            if not outcome.left_for_later:
                break
        assert total.calls == 12


@pytest.mark.parametrize("bench", ["executors", "auto"], indirect=True)
def test_the_oldest_answers_are_renewed_first(bench: Bench, tmp_path: Path) -> None:
    ages = {"never asked": 0, "a": 1, "c": 1, "b": 2, "d": 2}
    old = bench.settings({"model": "m", "model_version": "1"})
    bench.table("src", "id INT, t STRING", "(1, 'c')", "(2, 'a')")
    bench.run(SQL, old)
    bench.sql(f"INSERT INTO {bench.schema}.src VALUES (3, 'b'), (4, 'd')")
    bench.run(SQL, old)
    bench.sql(f"INSERT INTO {bench.schema}.src VALUES (5, 'never asked')")

    def asked(version: str, **limit: Any) -> list[int]:
        """The ages of the texts that a run asks for, in its order."""
        file = tmp_path / uuid.uuid4().hex
        new = {"model": "m", "model_version": version, "concurrency": 1, "price_per_1k_input_tokens": 100}
        settings = bench.settings({**new, "options": {"count_file": str(file)}}, **limit)
        outcome, rows = bench.run(SQL, settings)
        assert all(k for id_, k in rows if id_ < 5)  # the old answers stay in sight
        assert bool(outcome.left_for_later) == bool(outcome.message)
        lines = file.read_text().splitlines() if file.exists() else []  # none when nothing was left to ask
        return [ages[json.loads(line)[1]["prompt"]] for line in lines]

    assert asked("2", max_ai_calls=1) == [0]
    assert asked("2", max_ai_calls=2) == [1, 1]
    assert asked("2", max_ai_calls=2) == [2, 2]
    bench.sql(f"DELETE FROM {bench.results} WHERE model_version = '2'")
    for limit in ({"max_ai_tokens": 12}, {"max_ai_cost": 0.5}):
        found = [*asked("3", **limit), *asked("3", **limit), *asked("3")]
        assert found == [0, 1, 1, 2, 2]
        bench.sql(f"DELETE FROM {bench.results} WHERE model_version = '3'")


@pytest.mark.parametrize("bench", ["executors", "auto"], indirect=True)
def test_errors_wait_and_can_be_asked_again(bench: Bench) -> None:
    twelve(bench)
    failing = bench.settings({"options": {"fail": {"refused": 0.5}}})
    first, rows = bench.run(SQL, failing)
    assert 0 < first.errors < 12
    assert sum(k is None for _, k in rows) == first.errors
    bench.sql(errors_view_sql(f"{bench.schema}.ai_errors", bench.results))
    assert bench.rows("SELECT error_class, inputs FROM {s}.ai_errors") == [("refused", first.errors)]
    working = bench.settings()
    assert bench.run(SQL, working)[0].blocked == first.errors
    bench.sql(recompute_sql(bench.results, "op", errors_only=True))
    second, rows = bench.run(SQL, working)
    assert (second.calls, second.errors) == (first.errors, 0)
    assert all(k for _, k in rows)
    assert bench.rows("SELECT * FROM {s}.ai_errors") == []
    for errors_only in (False, True):  # they were refused, and have an answer now
        bench.sql(recompute_sql(bench.results, "op", errors_only=errors_only, where="error_class = 'refused'"))
    assert bench.run(SQL, working)[0].calls == 0

    bench.sql(recompute_sql(bench.results, "op", where="value LIKE '%text 1%'"))
    count = count_ai_round(
        bench.spark, bench.plan(SQL, working).rounds[0], settings=working, results_table=bench.results
    )
    assert (count.calls, count.reused) == (3, 9)
    assert count.input_tokens > 0
    assert all(k for _, k in bench.rows(bench.plan(SQL, working).sql))  # stale answers stay visible
    assert bench.run(SQL, working)[0].calls == 3
    bench.sql(costs_view_sql(f"{bench.schema}.ai_costs", bench.results))
    (calls,) = bench.rows("SELECT sum(calls) FROM {s}.ai_costs")
    assert calls == (12 + first.errors + 3,)


def test_a_refusal_is_final_and_an_error_of_the_moment_waits_longer_each_time(bench: Bench) -> None:
    twelve(bench)
    with Endpoint(Behaviour(refused=0.4, server_error=0.5, failures=100)) as endpoint:
        settings = bench.openai(endpoint.url, max_attempts=1, retry_errors_times=3)
        first, _ = bench.run(SQL, settings)
        refused, failing = first.gave_up, first.errors - first.gave_up
        assert refused > 0 and failing > 0
        assert bench.rows("SELECT status, count(*), count(next_retry_at) FROM {results} WHERE value IS NULL GROUP BY 1 ORDER BY 1") == [
            ("error", failing, failing), ("refused", refused, 0)
        ]  # fmt: skip
        asked = [dict(endpoint.seen.asked)]
        for waits_hours in (1, 2, None):
            # the first repetition is up to the next run; each further one waits twice as long
            again, _ = bench.run(SQL, settings)
            assert (again.calls, again.errors, again.blocked, again.refused) == (failing, failing, refused, refused)
            assert again.gave_up == (failing if waits_hours is None else 0)
            asked.append(dict(endpoint.seen.asked))
            waiting, _ = bench.run(SQL, settings)
            assert (waiting.calls, waiting.blocked) == (0, refused + failing)
            assert dict(endpoint.seen.asked) == asked[-1]  # nothing is asked before its time
            if waits_hours is not None:
                assert again.retry_at is not None and waiting.retry_at == again.retry_at
                assert abs(again.retry_at - time.time() - waits_hours * 3600) < 600
                assert waiting.pending == failing
                bench.sql(f"UPDATE {bench.results} SET next_retry_at = called_at WHERE status = 'error'")
        assert waiting.pending == 0 and waiting.retry_at is None
        assert sorted(endpoint.seen.asked.values())[-1] == 4  # once, and three times again
        refused_texts = [text for text, number in endpoint.seen.asked.items() if number == 1]
        assert len(refused_texts) == 12 - failing

        # only recompute_ai asks again, and counts from the start; rows of earlier releases are as final
        bench.sql(f"UPDATE {bench.results} SET status = 'error', next_retry_at = called_at WHERE status = 'refused'")
        assert bench.run(SQL, settings)[0].calls == 0
        bench.sql(recompute_sql(bench.results, "op", errors_only=True))
        last, _ = bench.run(SQL, settings)
        assert (last.calls, last.gave_up) == (refused + failing, refused)


def test_a_wrong_address_is_no_refusal_of_the_input(bench: Bench) -> None:
    bench.table("src", "id INT, t STRING", "(1, 'a')")
    with Endpoint(Behaviour(missing=1.0)) as endpoint:
        settings = bench.openai(endpoint.url, max_attempts=1)
        assert bench.run(SQL, settings)[0].error_classes == {"unsupported": 1}
        endpoint.behaviour.missing = 0.0
        assert bench.run(SQL, settings)[0].ok == 1


def test_pruning_leaves_what_another_project_uses(bench: Bench) -> None:
    twelve(bench)
    settings = bench.settings()
    assert bench.run(SQL, settings, project="shop")[0].calls == 12
    bench.sql(f"CREATE TABLE {bench.schema}.other USING delta AS SELECT * FROM {bench.schema}.src WHERE id < 6")
    other = SQL.replace("src", "other")
    for _ in range(2):
        assert bench.run(other, settings, project="club")[0].calls == 0
    claimed = "SELECT project, status, count(*) FROM {results} GROUP BY ALL ORDER BY 1"
    assert bench.rows(claimed) == [("club", "used", 6), ("shop", "ok", 12)]  # said once

    # shop needs only 0 to 3 now: 4 and 5 are club's from now on, the rest goes
    bench.sql(f"DELETE FROM {bench.schema}.src WHERE id > 3")
    bench.sql(prune_sql(bench.results, bench.plan(SQL, settings).calls, "2100-01-01", "shop"))
    assert bench.rows(claimed) == [("club", "ok", 2), ("club", "used", 6), ("shop", "ok", 4)]
    assert bench.run(other, settings, project="club")[0].calls == 0
    # club needs none: what shop uses stays with shop
    bench.sql(f"DELETE FROM {bench.schema}.other")
    bench.sql(prune_sql(bench.results, bench.plan(other, settings).calls, "2100-01-01", "club"))
    assert bench.rows(claimed) == [("shop", "ok", 4)]
    assert bench.run(SQL, settings, project="shop")[0].calls == 0

    # answers without a project are left alone, unless they are said to be this project's
    bench.sql(f"UPDATE {bench.results} SET project = NULL")
    bench.sql(f"DELETE FROM {bench.schema}.src")
    bench.sql(prune_sql(bench.results, bench.plan(SQL, settings).calls, "2100-01-01", "shop"))
    assert bench.rows("SELECT count(*) FROM {results}") == [(4,)]
    bench.sql(prune_sql(bench.results, bench.plan(SQL, settings).calls, "2100-01-01", "shop", unowned=True))
    assert bench.rows("SELECT count(*) FROM {results}") == [(0,)]


def test_pruning_takes_what_nobody_refers_to(bench: Bench) -> None:
    twelve(bench)
    settings = bench.settings()
    bench.run(SQL, settings)
    bench.sql(f"DELETE FROM {bench.schema}.src WHERE id < 4")
    calls = bench.plan(SQL, settings).calls
    bench.sql(prune_sql(bench.results, calls, "2020-01-01"))
    assert bench.rows("SELECT count(*) FROM {results}") == [(12,)]
    bench.sql(prune_sql(bench.results, calls, "2100-01-01"))
    assert bench.rows("SELECT count(*) FROM {results}") == [(8,)]
    assert bench.run(SQL, settings)[0].calls == 0


@delta_only("functions written in SQL, which Iceberg's extensions cannot read")
def test_native_functions_answer_through_the_result_table(bench: Bench) -> None:
    twelve(bench)
    bench.sql("CREATE OR REPLACE TEMPORARY FUNCTION ai_gen(x STRING) RETURNS STRING RETURN upper(x)")
    bench.sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION ai_classify(x STRING, l ARRAY<STRING>) RETURNS STRING RETURN l[length(x) - 6]"
    )
    sql = "SELECT ai_gen(t) AS k, ai_classify(t, ARRAY('it''s', 'b')) AS c FROM {s}.src WHERE id IN (1, 11)"
    outcome, rows = bench.run(sql, bench.settings({"provider": "native", "model": "engine"}))
    assert (outcome.calls, outcome.ok) == (4, 4)
    assert sorted(rows) == [("TEXT 1", "it's"), ("TEXT 11", "b")]
    assert bench.run(sql, bench.settings({"provider": "native", "model": "engine"}))[0].calls == 0


def test_the_driver_can_do_it_over_plain_sql(bench: Bench, tmp_path: Path, monkeypatch: Any) -> None:
    from spark_mv.ai import driver_job

    monkeypatch.setattr(driver_job, "_PAGE", 5)
    bench.table("src", "id INT, t STRING", *(f"({n}, 'it''s \\\\\\\\ \"{n}\"')" for n in range(12)), "(99, NULL)")
    settings = bench.settings({"options": {"fail": {"refused": 0.3}, "count_file": str(tmp_path / "asked")}})
    plan = bench.plan(SQL, settings)

    def execute(sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in bench.sql(sql).collect()]

    more: dict[str, Any] = {"settings": settings, "results_table": bench.results, "invocation_id": "i"}
    outcome = run_ai_round_on_driver(execute, plan.rounds[0], **more)
    assert (outcome.requested, outcome.calls, outcome.ok + outcome.errors) == (12, 12, 12)
    rows = dict(bench.rows(plan.sql))
    good = {n: k for n, k in rows.items() if k}
    assert len(good) == outcome.ok
    texts = dict(bench.rows("SELECT id, t FROM {s}.src"))
    assert texts[3] == 'it\'s \\\\ "3"'
    assert good == {n: f"ai_gen: {texts[n]}" for n in good}
    assert len((tmp_path / "asked").read_text().splitlines()) == 12
    assert run_ai_round_on_driver(execute, plan.rounds[0], **more).calls == 0


def test_a_users_own_provider(bench: Bench) -> None:
    twelve(bench)
    settings = bench.settings({"provider": "integration_tests.ai.own_provider.Shouting"})
    outcome, rows = bench.run(SQL, settings)
    assert outcome.ok == 12
    assert {k for _, k in rows} == {f"TEXT {n}" for n in range(12)}


def test_where_the_workers_lack_a_package_the_driver_asks(bench: Bench) -> None:
    twelve(bench)
    settings = bench.settings({"provider": "integration_tests.ai.own_provider.NeedsMore"})
    plan = bench.plan(SQL, settings)
    said: list[str] = []

    class Adapter:
        def mv_spark(self) -> Any:
            return bench.spark

        def query(self, sql: str) -> list[dict[str, Any]]:
            return [row.asDict() for row in bench.sql(sql).collect()]

        def warn(self, text: str) -> None:
            said.append(text)

        def say(self, text: str) -> None:
            said.append(text)

        def note(self, model: str, text: str) -> None:
            said.append(text)

    context = AiContext(results_table=bench.results, identity=settings.identity(), functions=())
    runner = AiRunner(Adapter(), "tickets", settings, context, "i", datetime.now(timezone.utc))
    outcome = runner.run(plan.rounds[0])
    assert (outcome.requested, outcome.calls, outcome.ok, outcome.reused, outcome.left_for_later) == (12, 12, 12, 0, 0)
    assert "lacks a_package_that_is_nowhere" in said[0]
    assert "dbt's own process asks instead" in said[0]
    assert said[-1].startswith("AI answers 12 / 12 (")
    assert {k for _, k in bench.rows(plan.sql)} == {f"TEXT {n}" for n in range(12)}
