"""Batches over the tables themselves: what is claimed is nobody else's, and a process that dies loses and doubles nothing."""

from __future__ import annotations

import time
from typing import Any

import pytest
from integration_tests.ai.batch_endpoint import BatchEndpoint as Server
from integration_tests.ai.batch_endpoint import BatchFaults
from integration_tests.ai.conftest import SECRET, Bench
from integration_tests.under_format import FORMAT

from spark_mv.ai.batches import state
from spark_mv.ai.batches.remote import BatchEndpoint
from spark_mv.ai.batches.round import Place, batchable, collect_batches, run_ai_round_in_batches
from spark_mv.ai.batches.store import SqlStore
from spark_mv.ai.chat import EMBEDDINGS
from spark_mv.ai.forecast import forecast
from spark_mv.ai.job import run_ai_round
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.project_budget import Spent, spent_so_far, within_periods
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.upkeep import costs_view_sql
from spark_mv.spark.run.project_tables import ai_use

SQL = "SELECT id, ai_classify(body, ARRAY('good', 'bad')) AS label, ai_gen(body) AS said FROM {s}.reviews"


class Killed(BaseException):
    """The process is gone."""


class Run:
    """Processes that come and go over one schema and one endpoint."""

    def __init__(self, bench: Bench, server: Server, **more: Any) -> None:
        self.bench, self.server = bench, server
        self.settings = bench.openai(
            server.url, mode="batch", batch_inputs=9, prices={"m": {"input": 1, "output": 4}}, **more
        )
        self.said: list[str] = []
        self.ahead = 0.0

    def place(self) -> Place:
        return Place(
            self.bench.rows, self.bench.results, self.settings, "run-1", "p", self.said.append, self.now, FORMAT
        )

    def now(self) -> float:
        return time.time() + self.ahead

    def round(self) -> AiOutcome:
        (calls,) = self.bench.plan(SQL, self.settings).rounds
        found = run_ai_round_in_batches(self.place(), calls)
        assert found is not None
        return found

    def labels(self) -> list[Any]:
        plan = self.bench.plan(SQL, self.settings)
        return [row[1:] for row in self.bench.rows(plan.sql)]


def reviews(bench: Bench, texts: int) -> None:
    bench.sql(
        f"CREATE TABLE {bench.schema}.reviews USING delta AS SELECT id, concat('text ', id % {texts}) AS body FROM range({2 * texts})"
    )


def test_submitted_once_collected_once_whatever_the_mode(bench: Bench) -> None:
    reviews(bench, 5)
    with Server() as server:
        run = Run(bench, server)
        first = run.round()
        assert (first.requested, first.submitted, first.under_way, first.left_for_later) == (10, 10, 10, 0)
        assert first.cost > 0
        assert len(server.batches) == 2  # of at most nine inputs
        assert set(run.labels()) == {(None, None)}

        again = run.round()
        assert (again.submitted, again.under_way, len(server.batches)) == (0, 10, 2)
        direct = bench.openai(server.url)
        (calls,) = bench.plan(SQL, direct).rounds
        asked = {"settings": direct, "results_table": bench.results, "invocation_id": "run-2"}
        found = run_ai_round(bench.spark, calls, **asked)
        assert (found.calls, found.under_way) == (0, 10)

        server.finish()
        collected = collect_batches(run.place())
        assert (collected.batches, collected.answers, collected.errors) == (2, 10, 0)
        done = run.round()
        assert (done.reused, done.under_way, done.submitted) == (10, 0, 0)
        assert all(None not in row for row in run.labels())
        assert set(server.paid.values()) == {2}  # two questions about each text
        ok = "SELECT count(*), sum(cost), min(batch IS NOT NULL), max(project) FROM {results} WHERE status = 'ok'"
        ((number, cost, in_batch, project),) = bench.rows(ok)
        assert (number, in_batch, project) == (10, True, "p")
        assert cost == pytest.approx(collected.cost)  # half of the direct price
        ((tokens,),) = bench.rows("SELECT sum(input_tokens + 4 * output_tokens) FROM {results} WHERE status = 'ok'")
        assert cost == pytest.approx(tokens / 2000)
        states = bench.rows("SELECT state, count(*), sum(inputs) FROM {s}.ai_batches GROUP BY state ORDER BY state")
        assert states[0] == ("collected", 2, 0)
        assert states[2] == ("submitted", 2, 10)
        leak = bench.rows("SELECT * FROM {s}.ai_batches") + bench.rows("SELECT * FROM {results}")
        assert SECRET not in str(leak)
        assert "text 1" not in str(bench.rows("SELECT * FROM {results} WHERE status = 'submitted'"))


STEPS = ("claim", "create", "take_in")


@pytest.mark.slow
def test_killed_where_it_hurts(bench: Bench, monkeypatch: Any) -> None:
    """The steps after which the two sides differ most, one after the other; all of them are in tests/ai/test_batches.py."""
    reviews(bench, 4)
    with Server(BatchFaults()) as server:
        run = Run(bench, server)
        for step in STEPS:
            # each time, there are four new texts to ask about
            bench.sql(f"UPDATE {bench.schema}.reviews SET body = concat('text ', id % 4, ' of {step}')")
            with monkeypatch.context() as patched:
                _die_after(patched, step)
                with pytest.raises(Killed):
                    run.round()
                    server.finish()
                    run.round()
            run.ahead += state.LOST_AFTER + 1
            run.round()
            server.finish()
            done = run.round()
            assert (step, done.reused, done.under_way) == (step, 8, 0)
            assert set(server.paid.values()) == {2}
        assert SqlStore(bench.rows, bench.results, run.settings, run.place().address).open() == []


def test_budgets_and_the_threshold_of_auto(bench: Bench) -> None:
    reviews(bench, 10)
    with Server() as server:
        assert Run(bench, server, max_ai_calls=9).round().submitted == 9
        tokens = Run(bench, server, max_ai_tokens=400).round()
        assert 0 < tokens.submitted < 11
        assert tokens.tokens <= 400
        assert (tokens.left_for_later, tokens.message) == (11 - tokens.submitted, "the budget of this run is used up")
        auto = bench.openai(server.url, mode="auto", batch_from=12)
        (calls,) = bench.plan(SQL, auto).rounds
        batches = len(server.batches)
        place = Place(bench.rows, bench.results, auto, "run-1", "p", lambda line: None, file_format=FORMAT)
        assert run_ai_round_in_batches(place, calls) is None
        assert len(server.batches) == batches
        waiting = Run(bench, server, wait_minutes=1, batch_poll_seconds=0.5)
        server.ends_when_looked_at = True
        done = waiting.round()
        assert (done.left_for_later, done.under_way, done.reused) == (0, 0, 20)


def _die_after(patched: Any, step: str) -> None:
    owner = SqlStore if hasattr(SqlStore, step) else BatchEndpoint
    method = getattr(owner, step)

    def die(self: Any, *args: Any, **more: Any) -> Any:
        method(self, *args, **more)
        raise Killed

    patched.setattr(owner, step, die)


def asked(bench: Bench, sql: str, settings: AiSettings, invocation: str = "run-1") -> AiOutcome:
    (calls,) = bench.plan(sql, settings).rounds
    place = Place(bench.rows, bench.results, settings, invocation, "p", lambda line: None, file_format=FORMAT)
    found = run_ai_round_in_batches(place, calls)
    assert found is not None
    return found


def test_what_cannot_be_asked_is_an_error_and_holds_nothing_up(bench: Bench) -> None:
    reviews(bench, 2)
    sql = (
        "SELECT id, ai_embed(body) AS v, ai_query('m', named_struct('messages', array(body))) AS odd, ai_query('big', body) AS q, "
        "ai_classify(body, ARRAY('good', 'bad')) AS label FROM {s}.reviews"
    )
    with Server() as server:
        settings = bench.openai(server.url, mode="batch", parameters={"max_tokens": "many"})
        (calls,) = bench.plan(sql, settings).rounds
        assert [one.function for one in calls if not batchable(one)] == ["ai_embed"]  # no model gives vectors
        assert [one.calls for one in forecast(bench.rows, calls, settings, bench.results)] == [2, 2, 2, 2]
        first = asked(bench, sql, settings)
        assert (first.requested, first.submitted, first.errors, first.blocked, first.left_for_later) == (8, 4, 4, 0, 0)
        assert first.error_classes == {"unsupported": 2, "provider_bug": 2}
        same = asked(bench, sql, settings)  # a text that failed is asked once by a `dbt run`
        assert (same.errors, same.blocked, same.under_way) == (0, 4, 4)
        again = asked(bench, sql, settings, "run-2")
        assert (again.errors, again.blocked, again.submitted, again.under_way) == (4, 0, 0, 4)
        assert len(server.batches) == 2
        errors = "SELECT DISTINCT function, error_class, error FROM {results} WHERE status = 'error' ORDER BY function"
        assert [row[:2] for row in bench.rows(errors)] == [("ai_embed", "unsupported"), ("ai_query", "provider_bug")]
        assert "set embedding_model" in bench.rows(errors)[0][2]
        assert bench.rows("SELECT count(*) FROM {results} WHERE status = 'released'") == [(0,)]


def test_what_is_in_batches_counts_with_its_estimate_and_then_once(bench: Bench, monkeypatch: Any) -> None:
    reviews(bench, 4)
    sql = "SELECT id, ai_query('big', body) AS said, ai_classify(body, ARRAY('good', 'bad')) AS label FROM {s}.reviews"
    with Server() as server:
        prices = {"m": {"input": 0.001, "output": 0.001}, "big": {"input": 10.0, "output": 40.0}}
        settings = bench.openai(
            server.url, mode="batch", prices=prices, max_ai_cost_per_day=20.0, parameters={"max_tokens": 32}
        )
        done = asked(bench, sql, settings)
        assert (done.submitted, done.output_tokens) == (8, 8 * 32)

        def day() -> Spent:
            return spent_so_far(bench.rows, settings, bench.results, "p", 64)["day"]

        assert (day().calls, day().tokens, day().cost) == (8, done.tokens, pytest.approx(done.cost))
        assert done.cost > 4 * 32 * 20 / 1000  # half of the large model's price
        assert within_periods(bench.rows, settings, bench.results, "p", 64, done).max_ai_cost == pytest.approx(20.0)

        server.finish()
        place = Place(bench.rows, bench.results, settings, "run-2", "p", lambda line: None, file_format=FORMAT)
        take_in, others = SqlStore.take_in, [collect_batches]

        def late(self: SqlStore, rows: Any) -> None:
            while others:  # another process collects between this one's look at the claims and its write
                others.pop()(place)
            take_in(self, rows)

        monkeypatch.setattr(SqlStore, "take_in", late)
        collect_batches(place)
        ((rows, once),) = bench.rows("SELECT count(*), count(DISTINCT result_key) FROM {results} WHERE status = 'ok'")
        assert rows > once == 8
        ((cost,),) = bench.rows(
            "SELECT sum(cost) FROM (SELECT DISTINCT result_key, cost FROM {results} WHERE status = 'ok')"
        )
        assert (day().calls, day().cost) == (8, pytest.approx(cost))
        use = ai_use(lambda sql: [row.asDict() for row in bench.spark.sql(sql).collect()], bench.schema)
        assert (sum(one.answers for one in use), sum(one.cost for one in use)) == (8, pytest.approx(cost))
        bench.sql(costs_view_sql(f"{bench.schema}.ai_costs", bench.results))
        assert bench.rows("SELECT sum(calls), sum(cost) FROM {s}.ai_costs") == [(8, pytest.approx(cost))]


def test_a_batch_that_may_have_been_made_counts(bench: Bench) -> None:
    reviews(bench, 5)
    picture = "cast(repeat('x', 40000) AS BINARY)"
    sql = f"SELECT id, ai_query('m', body, files => {picture}) AS said FROM {{s}}.reviews"
    with Server(BatchFaults(lose_reply_of="batches")) as server:
        settings = bench.openai(server.url, mode="batch", max_ai_calls=5, prices={"m": {"input": 1, "output": 4}})
        done = asked(bench, sql, settings)
        assert (len(server.batches), done.charged_calls, done.under_way) == (1, 5, 5)
        assert (done.output_tokens, 5_000 < done.input_tokens < 5_300) == (5 * 64, True)
        assert done.cost == pytest.approx((done.input_tokens * 0.5 + done.output_tokens * 2) / 1000)
        asked(bench, sql, settings, "run-2")
        ((inputs, tokens, cost),) = bench.rows(
            "SELECT inputs, tokens, cost FROM {s}.ai_batches WHERE state = 'submitted'"
        )
        assert (inputs, tokens, cost) == (5, done.tokens, pytest.approx(done.cost))


def test_a_kind_of_which_the_endpoint_takes_no_batches_holds_nothing_up(bench: Bench) -> None:
    reviews(bench, 2)
    with Server(BatchFaults(refuse=EMBEDDINGS)) as server:
        settings = bench.openai(server.url, mode="batch", embedding_model="embed")
        done = asked(bench, "SELECT id, ai_embed(body) AS v, ai_gen(body) AS said FROM {s}.reviews", settings)
        assert (done.submitted, done.under_way, done.left_for_later) == (2, 2, 2)
        assert "no batches of this kind" in done.message
