"""Accuracy, intervals and agreement, against figures of the literature and by hand."""

from __future__ import annotations

import pytest

from spark_mv.ai.evaluation import agreement, judged, mcnemar, wilson
from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.run.ai_eval import Asked

RIGHT = {"1": "a", "2": "a", "3": "b", "4": "b"}


def test_the_interval_is_wilsons() -> None:
    # Newcombe (1998), table I, method 3
    for part, of, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert wilson(part, of) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_rows_without_an_answer_are_not_right() -> None:
    found = judged(RIGHT, {"1": "a", "2": "b", "3": None, "5": "a"})
    assert (found.n, found.correct, found.accuracy) == (4, 1, 0.25)
    assert found.confusion == {("a", "a"): 1, ("a", "b"): 1, ("b", None): 2}


def test_two_variants_on_the_same_rows() -> None:
    found = agreement(RIGHT, {"1": "a", "2": "a", "3": "a", "4": None}, {"1": "a", "2": "b", "3": "b", "4": None})
    assert (found.n, found.agreed, found.only_first, found.only_second) == (4, 1, 1, 1)
    assert mcnemar(0, 8) == pytest.approx(0.0078125)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "either `label`"),
        ({"label": "l", "judge": "x"}, "either `label`"),
        ({"label": "l", "call": ""}, "say `call`"),
        ({"judge": "x", "call": "c", "variants": {"a": {}}}, "none of the variants"),
        ({"judge": "a", "call": "c", "variants": {"a": {}}}, "another variant"),
        ({"label": "l", "call": "c", "variants": ["a"]}, "map names to words"),
    ],
)
def test_what_cannot_be_evaluated_says_what_is_missing(values: dict[str, object], said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        Asked.of({"data": "t", "key": "id", **values})
