"""Publishing beside MERGE: keys as literals, and whether it was this run that published."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from spark_mv.maintenance.record import RunRecord, read_record
from spark_mv.query.syntax.select_tree import quoted
from spark_mv.spark.formats.commits import Query, commits

PREDICATE = "__mv_predicate__"
"""Stands for the predicate in the rendered statement, so that thousands of keys do not pass through Jinja."""


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
    """The value in SQL, or None where a literal would not be exact."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r") + "'"
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}BD"
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return f"DATE'{value.isoformat()}'"
    return None


def published_by(query: Query, table: str, record: RunRecord) -> bool:
    """Whether one of the newest commits carries this run's record. Delta skips, without a word, a write whose turn
    another run has taken."""
    base = record.base_version if record.base_version is not None else -1
    for few in (1, 10):
        for row in commits(query, table, few):
            found = read_record(row["userMetadata"])
            if int(row["version"]) > base and found is not None and found.to_json() == record.to_json():
                return True
    return False


@contextmanager
def tagged(session: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings for one statement. They tag every later commit of the session until they are reset."""
    conf = getattr(session.mv_spark(), "conf", None)
    try:
        for key, value in settings.items():
            if conf is not None:
                conf.set(key, value)
            else:
                session.query(f"set `{key}` = `{value.replace('`', '``')}`")
        yield
    finally:
        for key in settings:
            if conf is not None:
                conf.unset(key)
            else:
                session.query(f"reset `{key}`")
