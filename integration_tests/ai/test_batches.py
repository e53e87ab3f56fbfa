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
from spark_mv.ai.batches.round import Place, collect_batches, run_ai_round_in_batches
from spark_mv.ai.batches.store import SqlStore
from spark_mv.ai.job import run_ai_round
from spark_mv.ai.outcome import AiOutcome

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
