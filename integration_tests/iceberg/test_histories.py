"""A few of the oracle's histories on Iceberg tables, sources and models; `FORMAT=iceberg` runs whole suites so (under_format.py)."""

from __future__ import annotations

import os
from typing import Any

import pytest
from direct import Pool
from test_oracle import World, explore


def test_every_table_equals_the_recompute(spark: Any) -> None:
    world = World(Pool(spark, 2, "iceberg"))
    explore(world, start=3, shapes=2, examples=1)
    assert world.pairs == 14


@pytest.mark.slow
def test_a_thousand(spark: Any) -> None:
    """Twenty histories (`WORLDS`) of eight models, each compared after each of seven runs."""
    worlds = int(os.environ.get("WORLDS", "20"))
    world = World(Pool(spark, 2, "iceberg"))
    for number in range(worlds):
        explore(world, start=8 * number + 1, shapes=8, examples=1)
    assert world.pairs == 56 * worlds
