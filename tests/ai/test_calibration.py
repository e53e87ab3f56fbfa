"""The threshold of a cascade: what the sequence of tests finds, how often it errs, what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from spark_mv.ai.calibration import Asked, Pair, calibrated, least, thresholds


def pairs(n: int, agree: Any, seed: int = 1) -> list[Pair]:
    draw = random.Random(seed)
    sure = [draw.random() for _ in range(n)]
    return [Pair(c, draw.random() < agree(c), 1.0, 10.0) for c in sure]


def test_the_lowest_threshold_of_an_unbroken_row_that_holds() -> None:
    found = calibrated(pairs(2000, lambda c: 0.995 if c > 0.4 else 0.5), 0.95)
    chosen = found.chosen
    assert chosen is not None
    assert 0.3 < chosen.threshold < 0.42
    assert chosen.interval[0] >= 0.95
    verdicts = [line.holds for line in found.lines]
    held = verdicts.index(False)
    assert verdicts == [True] * held + [False] + [None] * (len(verdicts) - held - 1)
    assert found.lines[held - 1] == chosen
    assert [line.threshold for line in found.lines] == sorted((line.threshold for line in found.lines), reverse=True)
    assert found.lines[0].accepted >= least(0.95)
    assert chosen.cost == pytest.approx(1000 + 10_000 * (1 - chosen.accepted / 2000))
    assert found.large_cost == pytest.approx(10_000)


def test_thresholds_do_not_look_at_answers() -> None:
    one, other = calibrated(pairs(500, lambda c: 1.0), 0.9), calibrated(pairs(500, lambda c: 0.0), 0.9)
    assert one.chosen is not None
    assert other.chosen is None
    sure = [pair.confidence or 0.0 for pair in pairs(500, lambda c: 1.0)]
    assert thresholds(sure, least(0.9))[0] == one.lines[0].threshold
    draw = random.Random(1)
    sample = [Pair(p.confidence, draw.random() < 0.5) for p in pairs(500, lambda c: 1.0)]
    assert [line.threshold for line in calibrated(sample, 0.9).lines] == [line.threshold for line in one.lines]
    assert len(one.lines) <= 20


def test_it_errs_no_more_often_than_it_says() -> None:
    """Where no threshold reaches the target, it finds one in at most 5 of 100 samples, though it looks at up to twenty."""
    for target in (0.9, 0.95):
        found = [calibrated(pairs(400, lambda c, t=target: t - 1e-9, seed), target) for seed in range(300)]
        wrong = sum(one.chosen is not None for one in found)
        # the best of all thresholds would err more often
        best = sum(any(line.interval[0] >= target for line in one.lines) for one in found)
        assert wrong / 300 <= 0.05
        assert best > wrong


def test_inputs_without_confidence_go_to_the_large_model() -> None:
    known = [Pair(0.9, True, 1.0, 10.0)] * 80
    found = calibrated([*known, *[Pair(None, True, 1.0, 10.0)] * 20], 0.9)
    assert [(line.threshold, line.accepted, line.holds) for line in found.lines] == [(0.9, 80, True)]
    assert found.lines[0].cost == pytest.approx(1000 * (100 + 200) / 100)
    assert calibrated(known[:60], 0.9).lines == ()
    assert calibrated([], 0.9).chosen is None


def test_equal_confidences_are_one_threshold() -> None:
    assert thresholds([1.0] * 500, 69) == [1.0]
    assert thresholds([0.99999] * 100 + [0.5] * 100, 69) == [0.99999, 0.5]
    assert thresholds([0.5] * 10, 69) == []


TWO = [{"model": "small"}, {"model": "large"}]
GIVEN = {"data": "t", "call": "c", "agree_with_large": 0.95, "sample": 400, "ai": {"cascade": TWO}}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"datas": 1}, "did you mean 'data'"),
        ({"call": ""}, "say `data`"),
        ({"sample": "many"}, "are numbers"),
        ({"agree_with_large": 1.0}, "no sample can show"),
        ({"agree_with_large": 0.99}, "it takes 726 accepted inputs at least, .*: say sample: 1452"),
        ({"sample": 20_000}, "10,000 at most: say less"),
        ({"ai": {"cascade": [*TWO, {"model": "larger"}]}}, "calibrate each with the last"),
        ({"ai": {}}, "there are 0"),
        ({"ai": ["cascade"]}, "words of the ai block"),
    ],
)
def test_what_cannot_be_calibrated_says_why(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Asked.of({**GIVEN, **values}, {})


def test_the_cascade_is_the_profiles_where_none_is_given() -> None:
    assert Asked.of({**GIVEN, "ai": None}, {"cascade": TWO}).models == ("small", "large")
