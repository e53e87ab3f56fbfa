"""Cascades against an endpoint on loopback that counts: who is asked how often, who answers, what it costs; faults at each step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from integration_tests.ai.endpoint import Behaviour, Endpoint, Seen

from spark_mv.ai.cascade import confidence_of
from spark_mv.ai.here import ask_page
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.results import COLUMN_NAMES
from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.ai.work import build_job, with_shares
from spark_mv.maintenance.ai_context import AiContext
from spark_mv.query.ai_calls.ai_plan import AiCall, plan_ai

CASCADE = [{"model": "small", "accept_if": "confidence >= 0.9"}, {"model": "large"}]
PRICES = {"small": {"input": 1.0, "output": 4.0}, "large": {"input": 10.0, "output": 40.0}}
CLASSIFY = "SELECT ai_classify(body, array('good', 'bad', 'ugly')) AS kind FROM reviews"
TEXTS = [f"text {n}" for n in range(60)]
Row = dict[str, Any]


def settings(**more: Any) -> AiSettings:
    base = {
        "provider": "openai",
        "base_url": "http://127.0.0.1:1/v1",
        "api_key": "k",
        "cascade": CASCADE,
        "prices": PRICES,
    }
    return AiSettings.from_config({**base, "concurrency": 1, **more})


def calls_of(found: AiSettings, sql: str = CLASSIFY) -> tuple[AiCall, ...]:
    return plan_ai(sql, results_table="ai_results", identity=found.identity()).calls


class Bench:
    """Asks as dbt's own process does; keeps the rows."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def ask(self, sql: str = CLASSIFY, faults: Behaviour | None = None, **more: Any) -> tuple[AiOutcome, list[Row]]:
        self.endpoint.seen, self.endpoint.behaviour = Seen(), faults or Behaviour()
        found = settings(base_url=self.endpoint.url, **more)
        (call,) = calls_of(found, sql)
        job = with_shares(build_job([call], found, "run", "p"), found, 1, AiOutcome(), None)
        name = "prompt" if call.function == "ai_gen" else "content"
        pending = [
            (f"key {text}", json.dumps({"constant": dict(call.constant), "row": [{name: text}]}), 0, 0, f"hash {text}")
            for text in TEXTS
        ]
        rows: list[Row] = []
        keep = job.row

        def kept(*one: Any) -> tuple[Any, ...]:
            row = keep(*one)
            rows.append(dict(zip(COLUMN_NAMES, row, strict=True)))
            return row

        object.__setattr__(job, "row", kept)
        outcome = ask_page(pending, job, 20.0, lambda _: None)
        return outcome, rows

    def asked(self, model: str) -> int:
        return self.endpoint.seen.models[model]


@pytest.fixture(scope="module")
def served() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def bench(served: Endpoint) -> Bench:
    return Bench(served)


def steps(row: Row) -> list[Row]:
    return list(json.loads(row["steps"]))


@pytest.mark.parametrize("sql", [CLASSIFY, "SELECT ai_gen(body) AS said FROM reviews"])
def test_the_second_model_is_asked_where_the_first_is_unsure(bench: Bench, sql: str) -> None:
    outcome, rows = bench.ask(sql, Behaviour(unsure=0.3))
    unsure = [row for row in rows if len(steps(row)) == 2]
    assert 5 < len(unsure) < 35
    assert (bench.asked("small"), bench.asked("large")) == (60, len(unsure))
    assert (bench.endpoint.seen.with_logprobs["small"], bench.endpoint.seen.with_logprobs["large"]) == (60, 0)
    assert (outcome.ok, outcome.calls, outcome.further, outcome.charged_calls) == (
        60,
        60,
        len(unsure),
        60 + len(unsure),
    )
    for row in rows:
        *_, last = steps(row)
        assert (row["model"], row["model_version"]) == (last["model"], last["version"])
        assert row["status"] == "ok"
        if len(steps(row)) == 1:
            assert row["model"] == "small"
            assert row["confidence"] == pytest.approx(0.95)
        else:
            assert (row["model"], row["confidence"]) == ("large", None)
            assert steps(row)[0]["confidence"] == pytest.approx(0.4)
            assert steps(row)[0]["declined"] == "not confidence >= 0.9"


def test_each_model_is_paid_at_its_own_price(bench: Bench) -> None:
    outcome, rows = bench.ask(faults=Behaviour(unsure=0.3))
    for row in rows:
        price = {"small": (1.0, 4.0), "large": (10.0, 40.0)}
        paid = [
            (s["input_tokens"] * price[s["model"]][0] + s["output_tokens"] * price[s["model"]][1]) / 1000
            for s in steps(row)
        ]
        assert row["cost"] == pytest.approx(sum(paid))
        assert row["input_tokens"] == sum(s["input_tokens"] for s in steps(row))
    assert outcome.cost == pytest.approx(sum(row["cost"] for row in rows))


def test_without_log_probabilities_the_next_model_is_asked(bench: Bench) -> None:
    _, rows = bench.ask(faults=Behaviour(silent=1.0))
    assert (bench.asked("small"), bench.asked("large")) == (60, 60)
    assert {steps(row)[0]["declined"] for row in rows} == {"confidence unknown"}


def test_an_answer_of_another_type_is_not_accepted_and_not_asked_again(bench: Bench) -> None:
    outcome, rows = bench.ask(faults=Behaviour(truncated=1.0, failures=9, models=frozenset({"small"})))
    assert (bench.asked("small"), bench.asked("large")) == (60, 60)
    assert (outcome.ok, outcome.errors) == (60, 0)
    assert all(steps(row)[0]["declined"].startswith("invalid_answer") for row in rows)
    assert set(bench.endpoint.seen.answered.values()) == {1}


def test_what_the_first_model_refuses_the_second_is_asked(bench: Bench) -> None:
    outcome, rows = bench.ask(faults=Behaviour(refused=0.3, models=frozenset({"small"})))
    refused = [row for row in rows if len(steps(row)) == 2]
    assert refused
    assert (bench.asked("small"), bench.asked("large")) == (60, len(refused))
    assert outcome.ok == 60
    assert all(steps(row)[0]["declined"].startswith("refused") for row in refused)


def test_a_limit_at_the_second_model_asks_the_first_once(bench: Bench) -> None:
    faults = Behaviour(unsure=1.0, rate_limit=0.2, retry_after=0.01, models=frozenset({"large"}))
    outcome, rows = bench.ask(faults=faults)
    again = [row for row in rows if steps(row)[1]["attempts"] == 2]
    assert again
    assert (bench.asked("small"), bench.asked("large")) == (60, 60 + len(again))
    assert (outcome.ok, outcome.errors) == (60, 0)


def test_a_second_model_that_fails_leaves_an_error_and_no_answer(bench: Bench) -> None:
    faults = Behaviour(unsure=1.0, server_error=0.05, failures=9, models=frozenset({"large"}))
    outcome, rows = bench.ask(faults=faults, max_attempts=1)
    failed = [row for row in rows if row["status"] == "error"]
    assert failed
    assert outcome.errors == len(failed)
    assert all(row["value"] is None and row["error_class"] == "server" for row in failed)
    assert all(row["cost"] == pytest.approx(steps(row)[0]["cost"]) for row in failed)
    assert (bench.asked("small"), bench.asked("large")) == (60, 60)


@pytest.mark.parametrize(("unsure", "most"), [(0.0, 40), (1.0, 40), (0.3, 41)])
def test_a_budget_of_calls_counts_every_request(bench: Bench, unsure: float, most: int) -> None:
    outcome, rows = bench.ask(faults=Behaviour(unsure=unsure), max_ai_calls=most, concurrency=4)
    asked = sum(bench.endpoint.seen.models.values())
    assert most - 1 <= asked <= most
    assert outcome.charged_calls == asked == sum(len(steps(row)) for row in rows)
    assert outcome.left_for_later == 60 - len(rows)
    assert all(row["status"] == "ok" for row in rows)  # none was begun that could not be ended


def test_where_money_ends_between_the_models_nothing_more_is_begun(bench: Bench) -> None:
    whole, _ = bench.ask(faults=Behaviour(unsure=1.0))
    outcome, rows = bench.ask(faults=Behaviour(unsure=1.0), max_ai_cost=whole.cost / 4)
    cut = [row for row in rows if row["status"] != "ok"]
    assert len(cut) <= 1
    assert outcome.left_for_later == 60 - outcome.ok
    assert outcome.errors == 0
    assert outcome.cost <= whole.cost / 4
    assert outcome.cost == pytest.approx(sum(row["cost"] for row in rows))
    assert bench.asked("small") == bench.asked("large") + len(cut)
    for row in cut:
        assert (row["error_class"], row["value"], row["status"]) == ("budget", None, "error")
        assert row["next_retry_at"] <= row["called_at"]  # the next run asks


def test_inputs_are_asked_alone(bench: Bench) -> None:
    bench.ask(rows_per_request=10)
    assert (bench.asked("small"), bench.asked("large")) == (60, 0)


@pytest.mark.parametrize(
    ("sql", "in_turn"),
    [
        (CLASSIFY, True),
        ("SELECT ai_gen(body) AS a FROM reviews", True),
        ("SELECT ai_query('large', body) AS a FROM reviews", False),
        ("SELECT ai_embed(body) AS a FROM reviews", False),
        ("SELECT ai_similarity(body, 'x') AS a FROM reviews", False),
    ],
)
def test_who_is_asked_in_turn(sql: str, in_turn: bool) -> None:
    (call,) = calls_of(settings(embedding_model="e"), sql)
    assert bool(call.cascade) is in_turn


def test_the_cascade_belongs_to_the_key_and_without_one_the_key_is_as_it_was() -> None:
    def hashed(**more: Any) -> str:
        found = AiSettings.from_config({"provider": "openai", "api_key": "k", **more})
        return calls_of(found)[0].identity_hash

    plain = hashed(model="large")
    assert plain == "3bebbce76742a1fc07bfcb3b98839e2fef4e9e43255bdc0bb1a25a45f6c44ffb"
    assert hashed(model="large", cascade=[]) == plain
    one = hashed(cascade=CASCADE)
    others = [
        hashed(cascade=[{"model": "small", "accept_if": "confidence >= 0.8"}, {"model": "large"}]),
        hashed(cascade=[{"model": "small", "accept_if": "confidence > 0.9"}, {"model": "large"}]),
        hashed(cascade=[{"model": "smaller", "accept_if": "confidence >= 0.9"}, {"model": "large"}]),
        hashed(cascade=CASCADE, versions={"small": "2"}),
    ]
    assert len({plain, one, *others}) == 6
    texts = [
        AiContext(
            "t", AiSettings.from_config({"provider": "openai", "api_key": "k", **more}).identity(), ()
        ).identity_text
        for more in ({"model": "large"}, {"cascade": CASCADE})
    ]
    assert texts[1].startswith(texts[0])
    assert "cascade" not in texts[0]
    assert "small" in texts[1]
    assert hashed(cascade=[{"model": "small", "accept_if": " confidence>=.90 "}, {"model": "large"}]) == one
    assert hashed(model="another", model_version="7", cascade=CASCADE) == one


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("small", "cascade must be a list"),
        ([{"model": "a"}], "cascade has one model"),
        ([{"model": "a"}, {"model": "b"}], r"cascade\[1\] needs accept_if"),
        ([{"model": "a", "accept_if": "sure"}, {"model": "b"}], r"cascade\[1\].accept_if: 'sure' is not of the form"),
        ([{"model": "a", "accept_if": "confidence >= 9"}, {"model": "b"}], "from 0 to 1"),
        ([{"model": "a", "acceptif": "x"}, {"model": "b"}], "did you mean 'accept_if'"),
        ([{"model": "a", "accept_if": "confidence > 0.5"}, {"accept_if": "x"}], r"cascade\[2\] needs model"),
        ([*CASCADE[:1], {"model": "b", "accept_if": "confidence > 0.5"}], "is the last"),
        ([*CASCADE[:1], {"model": "small"}], "twice"),
        ([*CASCADE[:1], "large"], r"cascade\[2\] must have model"),
    ],
)
def test_a_wrong_cascade_is_refused_with_its_place(value: Any, said: str) -> None:
    with pytest.raises(AiConfigError, match=said):
        settings(cascade=value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"mode": "batch"}, "cascade needs mode direct"),
        ({"provider": "local"}, "cascade needs provider openai"),
        ({"max_ai_calls": 1}, "no input would ever be asked"),
    ],
)
def test_what_does_not_go_with_a_cascade(more: dict[str, Any], said: str) -> None:
    with pytest.raises(AiConfigError, match=said):
        settings(**more)


class _Of:
    def __init__(self, **values: Any) -> None:
        vars(self).update(values)


def reply(*logs: Any) -> Any:
    return _Of(choices=[_Of(logprobs=_Of(content=[_Of(logprob=log) for log in logs]))])


def test_confidence_is_of_the_whole_typed_reply_and_of_the_mean_token_of_text() -> None:
    assert confidence_of(reply(-0.1, -0.3), typed=True) == pytest.approx(0.6703, abs=1e-4)
    assert confidence_of(reply(-0.1, -0.3), typed=False) == pytest.approx(0.8187, abs=1e-4)
    for nothing in (
        reply(),
        reply(None),
        reply(-0.1, float("nan")),
        _Of(choices=[]),
        _Of(choices=[_Of(logprobs=None)]),
    ):
        assert confidence_of(nothing, typed=True) is None


def test_the_first_partition_has_room_for_a_whole_input() -> None:
    from spark_mv.ai.work import partitions

    found = settings(max_ai_calls=7, concurrency=8)
    assert partitions(16, found, 100) == 3
    assert partitions(16, replace(found, max_ai_calls=None), 100) == 8
