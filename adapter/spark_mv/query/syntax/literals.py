"""Values as literals in a statement."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from spark_mv.query.syntax.table_name import quoted

NOT_UTF8 = "\ufffd"
"""Stands in a row for bytes that are no UTF-8: Spark's strings hold any, and rows carry only text. Which bytes they were is not known."""
_NOT_AS_IT_STANDS = re.compile(rf"[\\'\x00-\x1f{NOT_UTF8}]|\$\{{")
"""What a string may hold that Spark reads in more than one way: escapes by `spark.sql.parser.escapedStringLiterals`, `${…}` by
`spark.sql.variable.substitute`. Or other bytes than these."""


def in_list(key: str, values: Sequence[Any]) -> str | None:
    """`key IN (…)` with exactly these values, or None for a type whose literals are not exact (floats, times)."""
    texts = [literal(value) for value in values]
    if not texts or any(text is None for text in texts):
        return None
    return f"{quoted(key)} IN ({', '.join(dict.fromkeys(text for text in texts if text is not None))})"


def in_rows(keys: Sequence[str], rows: Sequence[Sequence[Any]], table: str = "") -> str | None:
    """The condition that holds where the columns `keys` have the values of one of these rows, and nowhere else; None as for in_list. Spark
    finds a value in a list at once, and compares rows one by one: so single columns are looked at first.

    >>> in_rows(["id"], [(1,), (2,)], "t."), in_rows(["id"], [(0.5,)])
    ('t.`id` IN (1, 2)', None)
    >>> in_rows(["kind", "id"], [("a", 1), ("a", 2)])
    "`id` IN (1, 2) AND `kind` IN ('a') AND named_struct('k0', `kind`, 'k1', `id`) IN (named_struct('k0', 'a', 'k1', 1), named_struct('k0', 'a', 'k1', 2))"
    """
    columns = list(zip(*rows, strict=True))
    lists = [in_list(key, values) for key, values in zip(keys, columns, strict=False)]
    if not columns or None in lists:
        return None
    by_worth = sorted(range(len(keys)), key=lambda n: -len(set(columns[n])))
    tests = [f"{table}{lists[n]}" for n in by_worth]
    if len(keys) > 1:
        of_table = _struct([f"{table}{quoted(key)}" for key in keys])
        listed = dict.fromkeys(_struct([str(literal(value)) for value in row]) for row in rows)
        tests.append(f"{of_table} IN ({', '.join(listed)})")
    return " AND ".join(tests)


def _struct(values: Sequence[str]) -> str:
    fields = (f"'k{number}', {value}" for number, value in enumerate(values))
    return f"named_struct({', '.join(fields)})"


def between(column: str, low: Any, high: Any, table: str = "") -> str | None:
    """`column BETWEEN low AND high` with literals, or None where they are not exact or there is nothing between."""
    texts = [literal(value) for value in (low, high)]
    if None in texts:
        return None
    return f"{table}{quoted(column)} BETWEEN {texts[0]} AND {texts[1]}"


def literal(value: Any) -> str | None:
    """The value in SQL, or None where a literal would not be exact.

    >>> literal("a {b} $1"), literal("${env:HOME}"), literal("O'Brien"), literal(True)
    ("'a {b} $1'", None, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return None if _NOT_AS_IT_STANDS.search(value) else f"'{value}'"
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}BD"
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return f"DATE'{value.isoformat()}'"
    return None


def json_text(value: str, kind: str) -> str:
    """A value of the type `kind` as JSON text that differs whenever the value does: NULL fields are written, instants to the microsecond (Spark's
    default is milliseconds). For types that Spark cannot compare, or compares loosely (maps, variants, collations). Keys of a map that are bytes
    are written by Spark as where they stand in memory, so such a map is written as its entries."""
    if kind.strip().lower().startswith("map<binary"):
        value = f"map_entries({value})"
    return (
        f"to_json(named_struct('v', {value}), map('ignoreNullFields', 'false', 'timestampFormat', "
        "\"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", 'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\"))"
    )
