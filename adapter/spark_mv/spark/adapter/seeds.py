"""Seeds: exact types for the columns of a CSV file, and its rows as they stand.

dbt-spark sends every value through text pasted into SQL, and every number through a float. Here the rows reach Spark as
a DataFrame of strings, and Spark casts each column to its type; other connection methods get exact literals.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.spark.adapter.handle import literal

_BIGINT = 2**63


@dataclass(frozen=True)
class SeedColumn:
    """`name` as in the CSV, `rendered` as it stands in the table's DDL, `declared` when the user named the type."""

    name: str
    rendered: str
    type: str
    declared: bool = False


class SeedError(Exception):
    """A value that its declared type cannot hold. The message names the column and the value."""


def number_type(values: Iterable[decimal.Decimal | None]) -> str:
    """The type that holds all numbers exactly.

    `bigint` for whole numbers, or `decimal(38,0)` beyond its range; `double` where every number is written the same
    way by a double (0.1 is, 12345678901234567.89 is not), else the decimal that fits, else `string`.

    >>> number_type([decimal.Decimal("1.5")]), number_type([decimal.Decimal("12345678901234567.89")])
    ('double', 'decimal(19,2)')
    """
    whole, scale = 0, 0
    as_double = True
    for value in values:
        if value is None:
            continue
        digits = value.as_tuple()
        exponent = int(digits.exponent)
        scale = max(scale, -exponent)
        whole = max(whole, len(digits.digits) + exponent)
        as_double = as_double and decimal.Decimal(repr(float(value))) == value
    if scale <= 0:
        fits = all(value is None or -_BIGINT <= value < _BIGINT for value in values)
        return "bigint" if fits else ("decimal(38,0)" if whole <= 38 else "string")
    if as_double:
        return "double"
    return f"decimal({max(whole, 0) + scale},{scale})" if max(whole, 0) + scale <= 38 else "string"


def text(value: Any) -> str | None:
    """The value as the string from which Spark's cast gets it back exactly."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def select_list(columns: Sequence[SeedColumn]) -> str:
    """The casts that turn the view of strings (columns c0, c1, …) into the table's columns."""
    return ", ".join(
        (f"c{i}" if column.type.lower() == "string" else f"cast(c{i} as {column.type})") + f" as {column.rendered}"
        for i, column in enumerate(columns)
    )


def make_view(spark: Any, view: str, columns: Sequence[SeedColumn], rows: Iterable[Sequence[Any]]) -> None:
    """A temporary view of the rows as strings, for one session. Raises SeedError for what a declared type refuses.

    A cast that fails gives NULL under `spark.sql.ansi.enabled = false`: a seed that loses a value must not pass.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField(f"c{i}", StringType()) for i in range(len(columns))])
    data = [tuple(text(value) for value in row) for row in rows]
    unchecked = {} if "connect" in type(spark).__module__ else {"verifySchema": False}  # Connect warns about it
    frame = spark.createDataFrame(data, schema, **unchecked)
    frame.createOrReplaceTempView(view)
    declared = [(i, c) for i, c in enumerate(columns) if c.declared and c.type.lower() != "string"]
    if not declared:
        return
    lost = ", ".join(
        f"min(case when c{i} is not null and try_cast(c{i} as {c.type}) is null then c{i} end)" for i, c in declared
    )
    (row,) = spark.sql(f"select {lost} from {view}").collect()
    bad = [
        f"column {c.name}: {value!r} is no {c.type}"
        for (_, c), value in zip(declared, row, strict=True)
        if value is not None
    ]
    if bad:
        raise SeedError("the seed has values that the types under column_types cannot hold: " + "; ".join(bad))


def values_batches(columns: Sequence[SeedColumn], rows: Sequence[Sequence[Any]], size: int = 500) -> Iterator[str]:
    """`values (…), (…)` texts for connection methods without a DataFrame, `size` rows each, every value cast."""
    for start in range(0, len(rows), size):
        yield "values\n" + ",\n".join(
            "("
            + ", ".join(
                f"cast({literal(text(value))} as {column.type})" for value, column in zip(row, columns, strict=True)
            )
            + ")"
            for row in rows[start : start + size]
        )


def columns_of(
    agate_table: Any, types: Mapping[str, str], rendered: Sequence[str], convert: Any
) -> tuple[SeedColumn, ...]:
    """The seed's columns; `types` is the config `column_types`, `convert` the adapter's type for the rest."""
    import agate

    found = []
    for index, name in enumerate(agate_table.column_names):
        own = types.get(name)
        if own is not None:
            found.append(SeedColumn(name, rendered[index], own, declared=True))
            continue
        data_type = agate_table.column_types[index]
        values = agate_table.columns[index].values()
        if isinstance(data_type, agate.Number) or type(data_type).__name__ == "Integer":
            inferred = number_type([None if v is None else decimal.Decimal(v) for v in values])
        else:
            inferred = convert(agate_table, index)
        found.append(SeedColumn(name, rendered[index], inferred))
    return tuple(found)
