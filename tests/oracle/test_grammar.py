"""The grammar makes every shape that it is meant to make."""

from __future__ import annotations

import pytest
from grammar import draw_query
from shapes import shapes

pytestmark = pytest.mark.unit

QUERIES = 1000


def test_no_shape_dies_out() -> None:
    found = shapes(draw_query(seed).sql for seed in range(QUERIES))
    print(dict(found.most_common()))
    assert not [name for name, times in found.items() if times < 5], found
