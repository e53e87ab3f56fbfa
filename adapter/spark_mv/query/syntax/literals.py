"""Values as literals in a statement."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from spark_mv.query.syntax.table_name import quoted

NOT_UTF8 = "\ufffd"
"""Stands in a row for bytes that are no UTF-8: Spark's strings hold any, and rows carry only text. Which bytes they were is not known."""
_NOT_AS_IT_STANDS = re.compile(rf"[\\'\x00-\x1f{NOT_UTF8}]|\$\{{")
"""What a string may hold that Spark reads in more than one way: escapes by `spark.sql.parser.escapedStringLiterals`, `${…}` by
`spark.sql.variable.substitute`. Or other bytes than these."""

LISTS = 64
"""Of values in one condition, up to which Spark looks through them quicker than through rows."""
COMPARED = 2_000
"""Rows up to which one condition has Spark compare rows."""


def in_list(key: str, values: Sequence[Any]) -> str | None:
    """`key IN (…)` with exactly these values, or None for a type whose literals are not exact (floats, times)."""
    return in_rows([key], [(value,) for value in values])


def in_rows(keys: Sequence[str], rows: Sequence[Sequence[Any]], table: str = "") -> str | None:
    """The condition that holds where the columns `keys` have the values of one of these rows, and nowhere else; None as for in_list. Spark
    finds a value in a list at once, and compares rows one by one. So there is a list of the column that tells most of them apart for each
    of the values that the others have together. Where these are more than LISTS, single columns are looked at before rows; None where the rows
    are more than COMPARED then.

    >>> in_rows(["id"], [(1,), (2,)], "t."), in_rows(["id"], [(0.5,)])
    ('t.`id` IN (1, 2)', None)
    >>> in_rows(["kind", "id"], [("a", 1), ("b", 3), ("a", 2)])
    "(`kind` = 'a' AND `id` IN (1, 2) OR `kind` = 'b' AND `id` IN (3))"
    """
    texts = [tuple(text for value in row if (text := literal(value)) is not None) for row in rows]
    if not texts or any(len(row) < len(keys) for row in texts):
        return None
    names = [f"{table}{quoted(key)}" for key in keys]
    by_worth = sorted(range(len(keys)), key=lambda n: len({row[n] for row in texts}))
    *others, last = by_worth
    lists: dict[tuple[str, ...], dict[str, None]] = {}
    for row in texts:
        lists.setdefault(tuple(row[n] for n in others), {})[row[last]] = None
    if len(lists) > LISTS:
        return None if len(rows) > COMPARED else _one_by_one(names, texts, by_worth)
    found = [
        " AND ".join(
            [*(f"{names[n]} = {value}" for n, value in zip(others, values, strict=True)), _in(names[last], listed)]
        )
        for values, listed in lists.items()
    ]
    return found[0] if len(keys) == 1 else f"({' OR '.join(found)})"


def _in(expression: str, values: Iterable[str]) -> str:
    return f"{expression} IN ({', '.join(values)})"


def _one_by_one(names: Sequence[str], rows: Sequence[Sequence[str]], by_worth: Sequence[int]) -> str:
    tests = [_in(names[n], dict.fromkeys(row[n] for row in rows)) for n in reversed(by_worth)]
    return " AND ".join([*tests, _in(_struct(names), dict.fromkeys(_struct(row) for row in rows))])


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
