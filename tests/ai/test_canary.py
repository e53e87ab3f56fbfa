"""The canary: its words, and its verdict."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.ai.canary import Canary, Compared
from spark_mv.ai.settings import AiConfigError, AiSettings

pytestmark = pytest.mark.unit

PROFILE = {"provider": "scripted", "canary": {"agreement": "0.9"}}


def test_words() -> None:
    assert AiSettings.from_config(PROFILE).canary == Canary(200, 0.9)
    assert AiSettings.from_config(PROFILE, {"canary": {}}).canary is None
    assert AiSettings.from_config(PROFILE, {"canary": {"inputs": 5, "agreement": 1}}).canary == Canary(5, 1.0)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (0.9, "canary must be like"),
        ({"agreement": 90}, "canary.agreement is a share"),
        ({"agreement": "most"}, "canary must have numbers"),
        ({"agreement": 0.9, "inputs": 0}, "canary.inputs must be from 1"),
        ({"agrement": 0.9}, "did you mean 'agreement'"),
    ],
)
def test_wrong_words(value: Any, why: str) -> None:
    with pytest.raises(AiConfigError, match=why):
        AiSettings.from_config(PROFILE, {"canary": value})


def test_a_verdict_stands_when_nothing_that_waits_can_change_it() -> None:
    rows = [
        ("good", "good", "ok", "old", 80),
        ("good", "bad", "ok", "old", 6),
        ("bad", "good", "ok", "older (2)", 3),
        (None, None, "ok", "old", 4),
        ("bad", None, "failed", "old", 2),
        ("bad", None, "waits", "old", 5),
    ]
    found = Compared.of(rows)
    assert (found.n, found.agreed, found.failed, found.waits) == (100, 84, 2, 5)
    assert found.pairs == (("good", "bad", 6), ("bad", "good", 3))
    assert [found.enough(share) for share in (0.84, 0.85, 0.89, 0.9)] == [True, None, None, False]
    assert str(found).startswith("of 100 inputs that old, older (2) had answered, 84 have the same answer (84.0%, ")
    assert "2 had no usable answer" in str(found)
