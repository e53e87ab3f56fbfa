"""Columns that a table cannot have, or cannot be found by: refused with the column, the reason and the cure, before anything is made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.maintenance.errors import ConfigError
from spark_mv.maintenance.facts import Column
from spark_mv.spark.run.prepare import stored_columns
from spark_mv.spark.session.error_texts import readable

pytestmark = pytest.mark.unit


def stored(key: str, *columns: tuple[str, str]) -> tuple[Column, ...]:
    invocation: Any = SimpleNamespace(name="m", config={})
    config: Any = SimpleNamespace(file_format="delta", unique_key=(key,))
    return stored_columns(invocation, config, [Column(*column) for column in columns])


@pytest.mark.parametrize("kind", ["map<int,string>", "variant", "struct<a:variant>", "array<map<int,int>>"])
def test_a_key_of_which_none_is_equal_to_another(kind: str) -> None:
    with pytest.raises(
        ConfigError,
        match=r"model m(.|\n)*unique_key ID is of type .*Take other columns, or a text of it: to_json\(ID\)",
    ):
        stored("ID", ("id", kind))
    assert stored("id", ("id", "array<struct<map:int,a:array<int>>>"), ("v", kind))


def test_a_struct_is_no_key() -> None:
    with pytest.raises(ConfigError, match=r"unique_key id is of type struct<a:int>.*id\.field AS name"):
        stored("id", ("id", "struct<a:int>"))


@pytest.mark.parametrize("kind", ["interval day to second", "INTERVAL YEAR", "time(6)"])
def test_types_that_delta_has_not(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"column v is of type .*Delta tables have no (interval|time); cast it"):
        stored("id", ("id", "int"), ("v", kind))
    assert stored("id", ("id", "timestamp"), ("v", "struct<interval:int>"), ("t", "timestamp_ntz"))


def test_an_expression_of_too_many_levels_has_a_cure() -> None:
    assert "-Xss16m" in readable(RuntimeError("java.lang.StackOverflowError"))
