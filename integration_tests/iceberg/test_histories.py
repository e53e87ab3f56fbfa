"""A few of the oracle's histories on Iceberg tables, sources and models; `FORMAT=iceberg` runs whole suites so (under_format.py)."""

from __future__ import annotations

from typing import Any

from direct import Pool
from test_oracle import World, explore


def test_every_table_equals_the_recompute(spark: Any) -> None:
    world = World(Pool(spark, 2, "iceberg"))
    explore(world, start=3, shapes=2, examples=1)
    assert world.pairs == 14
