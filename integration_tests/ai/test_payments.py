"""What an endpoint is asked and paid for, counted by the endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from integration_tests.ai.conftest import SECRET, Bench
from integration_tests.ai.endpoint import Behaviour, Endpoint
from integration_tests.under_format import COMMITS, FORMAT

THREE_MODELS = (
    "SELECT id, ai_summarize(body) AS s FROM {s}.reviews",
    "SELECT id, upper(ai_summarize(body)) AS s, stars FROM {s}.reviews WHERE stars < 100",
    "SELECT ai_summarize(body) AS s, count(*) AS n FROM {s}.reviews GROUP BY ai_summarize(body)",
)


def reviews(bench: Bench, rows: int, texts: int) -> None:
    bench.sql(
        f"CREATE TABLE {bench.schema}.reviews USING delta AS "
        f"SELECT id, concat('text ', id % {texts}) AS body, cast(id % 5 AS int) AS stars FROM range({rows})"
    )


@pytest.mark.parametrize("bench", ["executors", "auto"], indirect=True)
def test_a_text_is_paid_once_across_rows_models_and_runs(bench: Bench) -> None:
    reviews(bench, 10_000, 2_000)
    with Endpoint() as endpoint:
        settings = bench.openai(endpoint.url, concurrency=32)
        for sql in THREE_MODELS:
            bench.run(sql, settings)
        assert (len(endpoint.seen.asked), sum(endpoint.seen.asked.values())) == (2_000, 2_000)

        for sql in THREE_MODELS:
            outcome, rows = bench.run(sql, settings)
            assert (outcome.calls, outcome.reused) == (0, 2_000)
            assert all(r[0] is not None for r in rows)
        bench.sql(f"UPDATE {bench.schema}.reviews SET stars = stars + 1 WHERE id < 5000")
        bench.run(THREE_MODELS[0], settings)
        assert sum(endpoint.seen.asked.values()) == 2_000

        bench.sql(f"UPDATE {bench.schema}.reviews SET body = concat('new ', id) WHERE id < 7")
        outcome, rows = bench.run(THREE_MODELS[0], settings)
        assert outcome.calls == 7
        assert sum(endpoint.seen.asked.values()) == 2_007
        assert len(rows) == 10_000
        assert all(s.startswith("answer to") for _, s in rows)


@pytest.mark.parametrize("window", [None, (20, 2.0)])
def test_a_chunk_ends_by_its_time_and_leaves_the_rest_to_the_next(
    bench: Bench, window: tuple[int, float] | None
) -> None:
    """What a killed run loses: no more than it can ask in a chunk. Nothing is asked twice, and a pause that the endpoint asks for goes on behind a chunk."""
    reviews(bench, 60, 60)
    with Endpoint(Behaviour(seconds=0.2, window=window)) as endpoint:
        settings = bench.openai(endpoint.url, concurrency=4, chunk_seconds=1)
        outcome, rows = bench.run(THREE_MODELS[0], settings)
        assert (outcome.calls, outcome.errors, outcome.left_for_later) == (60, 0, 0)
        assert (
            set(endpoint.seen.answered.values()) == {1}
            and sum(endpoint.seen.asked.values()) == 60 + endpoint.seen.refused
        )
        # a partition knows what it sent itself, not what the other one is about to send
        assert endpoint.seen.refused <= (0 if window is None else 6)
    assert all(answer is not None for _, answer in rows)
    file = "_metadata.file_name" if FORMAT == "delta" else "_file"
    appended = bench.rows(f"SELECT count(*) FROM {{results}} GROUP BY {file}")
    most = 4 * 5 + 4  # four at once for a second, each 0.2 s, and those under way at its end
    assert sum(n for (n,) in appended) == 60 and max(n for (n,) in appended) <= most


@pytest.mark.parametrize("bench", ["executors", "auto"], indirect=True)
def test_every_input_ends_with_one_status_and_is_paid_once(bench: Bench) -> None:
    reviews(bench, 600, 300)
    faults = Behaviour(
        rate_limit=0.1,
        server_error=0.1,
        time_out=0.02,
        malformed=0.05,
        truncated=0.1,
        refused=0.03,
        hang_seconds=2.0,
        retry_after=0.1,
    )
    sql = "SELECT id, ai_classify(body, ARRAY('good', 'bad', 'unclear')) AS label FROM {s}.reviews"
    with Endpoint(faults) as endpoint:
        settings = bench.openai(endpoint.url, timeout_seconds=1)
        outcome, rows = bench.run(sql, settings)
        assert (outcome.requested, outcome.calls, outcome.left_for_later) == (300, 300, 0)
        assert outcome.error_classes == {"refused": outcome.errors}
        assert 0 < outcome.errors < 30
        assert set(endpoint.seen.answered.values()) == {1}
        assert len(endpoint.seen.answered) == outcome.ok
        statuses = bench.rows("SELECT result_key, count(*), count(DISTINCT status) FROM {results} GROUP BY result_key")
        assert len(statuses) == 300
        assert {s[1:] for s in statuses} == {(1, 1)}
        assert sum(label is None for _, label in rows) == 2 * outcome.errors

        asked = sum(endpoint.seen.asked.values())
        again, _ = bench.run(sql, settings)
        assert (again.calls, again.blocked) == (0, outcome.errors)
        assert sum(endpoint.seen.asked.values()) == asked


@pytest.mark.parametrize("bench", ["executors", "auto"], indirect=True)
def test_after_the_endpoint_died_the_next_run_pays_the_rest(bench: Bench) -> None:
    reviews(bench, 400, 400)
    with Endpoint(Behaviour(die_after=150)) as endpoint:
        settings = bench.openai(endpoint.url, max_attempts=2, concurrency=8)
        outcome, rows = bench.run(THREE_MODELS[0], settings)
        answered = len(endpoint.seen.answered)
        assert outcome.ok == answered
        assert 150 <= answered < 400
        assert outcome.ok + outcome.errors + outcome.left_for_later == 400
        assert outcome.left_for_later > 0
        assert "connection" in outcome.error_classes
        assert sum(s is not None for _, s in rows) == answered
        endpoint.behaviour.die_after, endpoint._dead = None, False
        second, rows = bench.run(THREE_MODELS[0], settings)
        assert second.ok == 400 - answered
        assert set(endpoint.seen.answered.values()) == {1}
        assert all(s is not None for _, s in rows)


@pytest.mark.parametrize("bench", ["executors", "auto"], indirect=True)
def test_the_key_is_nowhere_to_be_seen(bench: Bench, warehouse: Path, capfd: Any) -> None:
    reviews(bench, 20, 20)
    with Endpoint(Behaviour(refused=0.3)) as endpoint:
        settings = bench.openai(endpoint.url, keep_requests=True)
        outcome, _ = bench.run(THREE_MODELS[0], settings)
        assert outcome.errors > 0  # their texts repeat the key, as some endpoints do
        assert any(SECRET in h.get("authorization", "") for h in endpoint.seen.headers)
    plan = bench.plan(THREE_MODELS[0], settings)
    errors = bench.rows("SELECT error FROM {results} WHERE error IS NOT NULL")
    assert all("***" in error for (error,) in errors)
    seen = {
        "settings": repr(settings) + str(settings),
        "plan": repr(plan),
        "output": "".join(capfd.readouterr()),
        "results": str(bench.rows("SELECT * FROM {results}")),
        "properties": str(bench.rows("SHOW TBLPROPERTIES {results}")),
        "history": str(bench.rows(COMMITS[FORMAT].format(table="{results}"))),
        "query plan": str(bench.rows(f"EXPLAIN EXTENDED {plan.sql}")),
        "conf": str(bench.rows("SET -v")),
        "files": "".join(
            f.read_bytes().decode("utf-8", "ignore")
            for f in warehouse.parent.rglob("*")
            if f.is_file() and f.stat().st_size < 1 << 24
        ),
    }
    assert [where for where, text in seen.items() if SECRET in text] == []
