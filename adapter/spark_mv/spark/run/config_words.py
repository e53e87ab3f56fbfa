"""Config words that a model may carry beside this materialization's own, as dbt itself declares them."""

from __future__ import annotations

from dataclasses import fields
from functools import cache

from dbt.adapters.spark.impl import SparkConfig
from dbt.artifacts.resources import ModelConfig


@cache
def declared_words() -> frozenset[str]:
    """The fields of dbt-core's and dbt-spark's config classes. What only macros ask for is in maintenance/config.py.

    >>> sorted(declared_words() & {"tags", "buckets", "on_row_update", "_extra"})
    ['buckets', 'tags']
    """
    names = (field.name for declared in (ModelConfig, SparkConfig) for field in fields(declared))
    return frozenset(name for name in names if not name.startswith("_"))
