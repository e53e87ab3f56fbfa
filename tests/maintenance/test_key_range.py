"""What the keys of a table and the staged ones say of each other."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.key_bound import bound_text
from spark_mv.maintenance.key_range import KeyRange


@pytest.mark.parametrize(
    ("low", "high", "far", "spread"),
    [
        (0, 9_000_000, True, True),
        (0, 1_000_000, False, True),  # a few keys far from all others would make ten million rows look like these
        (100_000, 110_000, False, False),
    ],
)
def test_how_far_keys_lie_apart(low: int, high: int, far: bool, spread: bool) -> None:
    keys = KeyRange(bound=bound_text(10_000_000), floor=bound_text(0), highest=high, lowest=low)
    assert (keys.far(low, high), keys.spread) == (far, spread)


def test_without_bounds_nothing_is_far() -> None:
    assert not KeyRange(highest=9, lowest=0).spread
