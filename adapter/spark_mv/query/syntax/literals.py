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
