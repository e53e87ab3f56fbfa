"""A canary through Spark, as a run asks it: agreement, a stop that costs the sample and no more, budgets, an endpoint that is down."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from integration_tests.ai.batch_endpoint import BatchEndpoint
from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Behaviour, Endpoint, Seen

from spark_mv.ai.settings import AiSettings
from spark_mv.maintenance.ai_context import AiContext
from spark_mv.maintenance.errors import RunFailed
from spark_mv.spark.run.ai import AiRunner

SQL = "SELECT id, ai_classify(body, ARRAY('good', 'bad')) AS kind, ai_gen(body) AS said FROM {s}.reviews"
CANARY = {"inputs": 40, "agreement": 0.9}


class Session:
    """What a run needs of the adapter: this Spark."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.said = bench, ""

    def query(self, sql: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in self.bench.sql(sql).collect()]

    def mv_spark(self) -> None:
        return None  # dbt's own process asks: quicker for so few

    def say(self, text: str) -> None:
        self.said += text + "\n"

    def note(self, model: str, text: str) -> None: ...


def ask(bench: Bench, settings: AiSettings) -> tuple[Any, Session]:
    """One run of the model's calls."""
    session, when = Session(bench), datetime.now(timezone.utc)
    context = AiContext(bench.results, settings.identity(), ())
    runner = AiRunner(session, "m", settings, context, "run", when, "p")
    (calls,) = bench.plan(SQL, settings).rounds
    return runner.run(calls), session


@pytest.mark.slow
def test_a_new_model_answers_a_sample_first(bench: Bench) -> None:
    bench.sql(
        f"CREATE TABLE {bench.schema}.reviews USING delta AS SELECT id, concat('text ', id) AS body FROM range(100)"
    )

    def run(settings: AiSettings) -> tuple[Any, Session]:
        return ask(bench, settings)

    with Endpoint(Behaviour(differs=0.6)) as endpoint:

        def model(name: str, **more: Any) -> AiSettings:
            return bench.openai(endpoint.url, **{"model": name, "canary": CANARY, "concurrency": 4, **more})

        outcome, session = run(model("old"))
        assert (outcome.calls, "canary" in session.said) == (200, False)  # there is nothing to compare with

        endpoint.seen = Seen()
        for asked in (40, 0):  # the sample is paid once
            with pytest.raises(RunFailed) as stopped:
                run(model("new"))
            assert sum(endpoint.seen.models.values()) == asked
            endpoint.seen = Seen()
        said = str(stopped.value)
        assert said.startswith("[AI_CANARY] model m: ai_classify (line 1, kind): of 40 inputs that old had answered, ")
        assert "fewer than canary.agreement (0.9)" in said
        assert "'good' before and 'bad' now (" in said

        outcome, session = run(model("new", canary={"inputs": 40, "agreement": 0.4}))
        assert (endpoint.seen.models["new"], outcome.requested, outcome.calls) == (160, 200, 160)
        assert outcome.reused == 40
        assert "canary: ai_classify (line 1, kind): of 40 inputs that old had answered" in session.said
        assert "canary: ai_gen (line 1, said) gives free text" in session.said
        _, session = run(model("new"))
        assert "canary" not in session.said  # all was asked

        endpoint.behaviour, endpoint.seen = Behaviour(), Seen()
        about = {"canary": {"inputs": 40, "agreement": 0.85}}
        outcome, session = run(model("newer", max_ai_calls=30, canary={"inputs": 40, "agreement": 0.4}))
        assert (sum(endpoint.seen.models.values()), outcome.calls, outcome.left_for_later) == (30, 30, 170)
        assert "of 30 inputs that new had answered" in session.said

        endpoint.behaviour = Behaviour(server_error=1.0, failures=9)
        with pytest.raises(RunFailed, match=r"10 have no answer yet .*undecided and nothing was changed"):
            run(model("newer", max_attempts=1, **about))
        outcome, session = run(model("newer", max_attempts=1, max_ai_calls=1000, **about))
        assert "10 wait, and nothing else is asked before" in session.said
        assert outcome.requested == outcome.reused + outcome.calls + outcome.blocked + outcome.left_for_later


@pytest.mark.slow
def test_batches_wait_for_the_canary(bench: Bench) -> None:
    bench.sql(
        f"CREATE TABLE {bench.schema}.reviews USING delta AS SELECT id, concat('text ', id) AS body FROM range(60)"
    )
    with BatchEndpoint(behaviour=Behaviour(differs=0.6)) as server:

        def run(name: str, agreement: float) -> tuple[Any, Session]:
            canary = {"inputs": 20, "agreement": agreement}
            return ask(bench, bench.openai(server.url, model=name, mode="batch", canary=canary, concurrency=4))

        assert run("old", 0.9)[0].submitted == 120
        server.finish()
        assert (run("old", 0.9)[0].reused, len(server.batches)) == (120, 1)
        with pytest.raises(RunFailed, match="of 20 inputs that old had answered"):
            run("new", 0.9)
        assert (server.seen.models["new"], len(server.batches)) == (20, 1)  # asked directly, and nothing submitted
        outcome, session = run("new", 0.3)
        assert (outcome.submitted, outcome.under_way, outcome.reused, len(server.batches)) == (100, 100, 20, 2)
        assert "canary: ai_classify (line 1, kind): of 20 inputs" in session.said
        # while the batch is under way the inputs are another model's still, and their sample is asked no second time
        again, _ = run("new", 0.3)
        assert (again.submitted, again.under_way, server.seen.models["new"]) == (0, 100, 20)
        server.finish()
        last, _ = run("new", 0.3)
        assert (last.reused, last.pending, len(server.batches)) == (120, 0, 2)
