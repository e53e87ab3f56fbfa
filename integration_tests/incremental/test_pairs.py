"""Two runs at once on one Delta model (racing_pairs.py). `PAIRS=20 pytest -m slow` for fewer than the 500 of the slow test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from racing_pairs import Pairs, racing_pairs


@pytest.fixture
def pairs(spark: Any) -> Iterator[Pairs]:
    with racing_pairs(spark, "delta") as found:
        yield found


def test_a_few(pairs: Pairs) -> None:
    for number in range(7, 10):
        pairs.one(number)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many(pairs: Pairs) -> None:
    for number in range(1, 1 + int(os.environ.get("PAIRS", "500"))):  # the rows of number 0 would repeat the first keys
        pairs.one(number)
