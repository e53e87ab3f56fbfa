"""`dedupe`: of inputs that differ in case or white space alone one is asked, counted at the endpoint; models without it see nothing of that."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from integration_tests.ai.batch_endpoint import BatchEndpoint as BatchServer
from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Behaviour, Endpoint
from integration_tests.ai.test_batches import Run
from integration_tests.under_format import FORMAT

from spark_mv.ai.driver_job import count_ai_round_on_driver, run_ai_round_on_driver
from spark_mv.ai.providers.local import LocalProvider
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.similar import find_similar
from spark_mv.ai.similar_table import create_similar_sql, forget_sql, similar_table
from spark_mv.ai.upkeep import provenance_sql, recompute_sql

FOLD = {"normalize": ["case", "whitespace"]}
SQL = "SELECT id, ai_classify(body, ARRAY('good', 'bad', 'other')) AS k FROM {s}.notes"
TEXTS = ["Hello there", "hello there", " HELLO\t\n there", "Größe", "GRÖSSE\u00a0", "größe\u00a0\u00a0", "it''s 1"]
"""Of these three are the first question, two the second (ß is no ss), and the last a question of its own."""


def notes(bench: Bench, *texts: str, name: str = "notes") -> None:
    bench.table(name, "id INT, body STRING", *(f"({n}, '{t}')" for n, t in enumerate(texts)))


def statuses(bench: Bench) -> Counter[str]:
    return Counter(
        {str(row[0]): int(row[1]) for row in bench.rows("SELECT status, count(*) FROM {results} GROUP BY 1")}
    )


def asked(endpoint: Endpoint) -> int:
    return sum(endpoint.seen.asked.values())


@pytest.mark.parametrize("bench", ["executors", "auto"], indirect=True)
def test_one_of_them_is_asked_and_its_answer_counts_for_all(bench: Bench) -> None:
    notes(bench, *TEXTS)
    with Endpoint(Behaviour()) as endpoint:
        folding, plain = bench.openai(endpoint.url, dedupe=FOLD), bench.openai(endpoint.url)
        (calls,) = bench.plan(SQL, folding).rounds
        expected = count_ai_round_on_driver(bench.rows, calls, settings=folding, results_table=bench.results)
        assert (expected.requested, expected.calls, expected.near) == (7, 4, 3)
        outcome, rows = bench.run(SQL, folding)
        assert (outcome.requested, outcome.calls, outcome.reused, outcome.near, outcome.pending) == (7, 4, 3, 3, 0)
        assert asked(endpoint) == 4
        labels = dict(rows)
        assert None not in labels.values()
        assert [len({labels[n] for n in group}) for group in ((0, 1, 2), (3, 5))] == [1, 1]
        assert statuses(bench) == {"ok": 4, "near": 3}
        (found,) = bench.rows(
            "SELECT count(*) FROM {results} n JOIN {results} o ON o.result_key = n.answered_by AND o.status = 'ok' "
            "AND o.near_key = n.near_key AND o.value = n.value WHERE n.status = 'near' AND n.attempts = 0 AND n.cost IS NULL"
        )
        assert found == (3,)
        states = bench.rows(
            f"SELECT state, count(answered_by) FROM ({provenance_sql(calls, bench.results)}) GROUP BY 1"
        )
        assert states == [("current", 3)]

        again, same = bench.run(SQL, folding)
        assert (again.calls, again.near, sorted(same)) == (0, 0, sorted(rows))
        # a run that sees the new row alone, as incremental strategies do: what was answered before is found by near_key
        notes(bench, "HELLO THERE", name="new")
        later, more = bench.run(SQL.replace("notes", "new"), folding)
        assert (later.calls, later.near, more[0][1]) == (0, 1, labels[0])
        assert asked(endpoint) == 4

        # without it every text is asked for itself, and what was asked already keeps its key
        keys = bench.rows("SELECT result_key FROM {results} WHERE status = 'ok'")
        exact, rows = bench.run(SQL, plain)
        assert (exact.calls, exact.reused, asked(endpoint)) == (3, 4, 7)
        assert set(keys) < set(bench.rows("SELECT result_key FROM {results} WHERE status = 'ok'"))

        bench.sql(recompute_sql(bench.results, "run-2"))
        fresh, rows = bench.run(SQL, folding)
        assert (fresh.calls, fresh.near, fresh.pending) == (4, 3, 0)
        assert None not in dict(rows).values()
        # what shares an answer is asked again with it, whichever of them is meant
        for status in ("ok", "near"):
            one = (
                f"near_key = (SELECT max(near_key) FROM {bench.results} WHERE status = 'near') AND status = '{status}'"
            )
            bench.sql(recompute_sql(bench.results, "run-3", where=one))
            fresh, rows = bench.run(SQL, folding)
            assert (fresh.calls, fresh.pending) == (1, 0)


@pytest.mark.slow
def test_the_driver_and_batches_fold_too(bench: Bench) -> None:
    notes(bench, *TEXTS)
    with Endpoint(Behaviour()) as endpoint:
        settings = bench.openai(endpoint.url, dedupe=FOLD)
        (calls,) = bench.plan(SQL, settings).rounds

        def execute(sql: str) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in bench.sql(sql).collect()]

        outcome = run_ai_round_on_driver(
            execute, calls, settings=settings, results_table=bench.results, invocation_id="run-1"
        )
        assert (outcome.requested, outcome.calls, outcome.reused, outcome.near) == (7, 4, 3, 3)
        assert (asked(endpoint), statuses(bench)) == (4, {"ok": 4, "near": 3})
        assert bench.rows("SELECT count(near_key) FROM {results}") == [(7,)]
    bench.sql(f"DELETE FROM {bench.results}")
    bench.table("reviews", "id INT, body STRING", "(1, 'One')", "(2, 'ONE')", "(3, 'two')")
    with BatchServer() as server:
        run = Run(bench, server, dedupe=FOLD)
        first = run.round()
        assert (first.submitted, first.under_way, first.near) == (4, 6, 0)
        server.finish()
        second = run.round()
        assert (second.submitted, second.near, second.pending, second.reused) == (0, 2, 0, 6)
        labels = run.labels()
        assert labels[0] == labels[1]
        assert all(None not in row for row in labels)


@pytest.mark.slow
def test_a_failing_question_is_not_asked_again_in_other_letters(bench: Bench) -> None:
    notes(bench, "No", "no", "NO ")
    with Endpoint(Behaviour(refused=1.0)) as endpoint:
        settings = bench.openai(endpoint.url, dedupe=FOLD)
        outcome, rows = bench.run(SQL, settings)
        assert (outcome.calls, outcome.errors, outcome.gave_up, outcome.left_for_later) == (1, 1, 1, 2)
        later, rows = bench.run(SQL, settings)
        assert (later.calls, later.refused, later.pending) == (0, 3, 0)
        assert {label for _, label in rows} == {None}
        assert asked(endpoint) == 1
        endpoint.behaviour.refused = 0.0
        bench.sql(recompute_sql(bench.results, "run-2", errors_only=True))
        healed, rows = bench.run(SQL, settings)
        assert (healed.calls, healed.near, len({label for _, label in rows}), asked(endpoint)) == (1, 2, 1, 2)


MEANT = {"normalize": ["case"], "semantic": 0.9}
SENTENCES = [
    "The delivery was late and nobody answered", "THE DELIVERY WAS LATE AND NOBODY ANSWERED",
    "The delivery was late, and nobody answered.", "My package 7 arrived broken", "My package 8 arrived broken", "I love it",
]  # fmt: skip
"""Of these three are one question in two ways, two differ in a number."""


def placed(bench: Bench, settings: AiSettings, sql: str = SQL) -> int:
    (calls,) = bench.plan(sql, settings).rounds
    return find_similar(bench.rows, calls, settings, bench.results, "shop", LocalProvider(None).vectors)


def test_what_means_the_same_is_asked_once(bench: Bench) -> None:
    bench.sql(create_similar_sql(bench.results, FORMAT))
    notes(bench, *SENTENCES)
    with Endpoint(Behaviour()) as endpoint:
        meaning, folding = bench.openai(endpoint.url, dedupe=MEANT), bench.openai(endpoint.url, dedupe=FOLD)
        assert placed(bench, meaning) == 1
        (calls,) = bench.plan(SQL, meaning).rounds
        outcome, rows = bench.run(SQL, meaning)
        assert (outcome.requested, outcome.calls, outcome.near, outcome.pending, asked(endpoint)) == (6, 4, 2, 0, 4)
        labels = dict(rows)
        assert None not in labels.values() and len({labels[n] for n in (0, 1, 2)}) == 1
        assert statuses(bench) == {"ok": 4, "near": 1, "similar": 1}
        assert placed(bench, meaning) == 0  # all of them are known

        # a later run sees a new row alone: it joins the one that leads, whoever of the others was asked
        notes(bench, "The delivery was late and no one answered", name="new")
        more = SQL.replace("notes", "new")
        assert placed(bench, meaning, more) == 1
        later, added = bench.run(more, meaning)
        assert (later.calls, later.near, added[0][1], asked(endpoint)) == (0, 1, labels[0], 4)
        (by,) = bench.rows(
            f"SELECT count(*) FROM {{results}} n JOIN {{results}} o ON o.result_key = n.answered_by AND o.status = 'ok' "
            f"JOIN {similar_table(bench.results)} s ON s.near_key = n.near_key AND s.leader = o.near_key AND s.similarity >= 0.9 "
            "WHERE n.status = 'similar' AND n.value = o.value"
        )
        assert by == (2,)
        states = bench.rows(
            f"SELECT state, count(answered_by) FROM ({provenance_sql(calls, bench.results)}) GROUP BY 1"
        )
        assert states == [("current", 2)]

        # who folds alone does not take what only means the same
        exact, _ = bench.run(SQL, folding)
        assert (exact.calls, exact.reused, asked(endpoint)) == (1, 5, 5)
        bench.sql(f"DELETE FROM {bench.results} WHERE value IS NOT NULL")
        bench.sql(forget_sql(bench.results))
        assert bench.rows(f"SELECT count(*) FROM {similar_table(bench.results)}") == [(0,)]


def test_answers_that_repeat_the_text_are_not_shared(bench: Bench) -> None:
    notes(bench, "Hello", "hello")
    with Endpoint(Behaviour()) as endpoint:
        outcome, rows = bench.run(
            "SELECT id, ai_fix_grammar(body) AS k FROM {s}.notes", bench.openai(endpoint.url, dedupe=FOLD)
        )
        assert (outcome.calls, outcome.near, len({answer for _, answer in rows})) == (2, 0, 2)
