"""Columns with Spark's own type names, which dbt-spark leaves to the names of PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.spark.column import SparkColumn

from spark_mv.query.syntax.table_name import quoted

_INTEGERS = frozenset({"tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"})
_FLOATS = frozenset({"float", "real", "double"})
_NUMERICS = frozenset({"decimal", "dec", "numeric"})
_STRINGS = frozenset({"string", "varchar", "char", "character", "text"})


@dataclass
class SparkMvColumn(SparkColumn):
    """A column whose predicates know `int`, `bigint`, `decimal(10,2)`, `varchar(20)` and the like."""

    def _base(self) -> str:
        return str(self.dtype).split("(")[0].strip().lower()

    def is_integer(self) -> bool:
        return self._base() in _INTEGERS

    def is_float(self) -> bool:
        return self._base() in _FLOATS

    def is_numeric(self) -> bool:
        return self._base() in _NUMERICS

    def is_string(self) -> bool:
        return self._base() in _STRINGS

    def string_size(self) -> int:
        """The length of a varchar or char; a plain string has none, and counts as Spark's longest varchar."""
        if not self.is_string():
            return super().string_size()
        inside = str(self.dtype).partition("(")[2].rstrip(") ")
        return int(inside) if inside.isdigit() else 2**31 - 1

    def can_expand_to(self, other_column: SparkColumn) -> bool:
        """Only varchar and char have a length to widen; string holds everything already."""
        return (
            self._base() in {"varchar", "char"}
            and self.is_string()
            and other_column.is_string()
            and other_column.string_size() > self.string_size()
        )

    @classmethod
    def string_type(cls, size: int) -> str:
        return "string" if size >= 2**31 - 1 else f"varchar({size})"

    @property
    def quoted(self) -> str:
        return quote(str(self.column))


def quote(identifier: str) -> str:
    """The name between backticks, as Spark reads it whatever it holds.

    >>> quote("a`b")
    '`a``b`'
    """
    return quoted(str(identifier))
