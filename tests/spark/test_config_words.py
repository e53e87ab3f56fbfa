"""Config words of dbt, of its macros and of this materialization are known; others are refused with the nearest one."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.config import read_config
from spark_mv.maintenance.errors import ConfigError
from spark_mv.spark.run.config_words import declared_words

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "word",
    ["materialized", "tags", "meta", "buckets", "merge_update_columns", "merge_exclude_columns", "post-hook", "begin"],
)
def test_words_of_dbt(word: str) -> None:
    assert read_config("m", {"unique_key": "id", word: None}, declared_words()).unique_key == ("id",)


def test_strange_words() -> None:
    with pytest.raises(ConfigError, match="did you mean 'tags'"):
        read_config("m", {"unique_key": "id", "tagz": 1}, declared_words())
    with pytest.raises(ConfigError, match="there is no such setting"):
        read_config("m", {"unique_key": "id", "_extra": 1}, declared_words())
