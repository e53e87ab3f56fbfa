"""The format of what runs write down, and what becomes of a format that this release does not know.

Each record in a commit (of the model's table, of its state table, of a request) names its format, and so do the tables beside the models, in
a property. A release reads the formats up to its own. What a later one wrote is not guessed at: nothing is run, because a record that is
not understood is not a lost one, and a run that took it for lost would draw and pay anew. A staging table needs no format: no other run
reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from spark_mv.maintenance.errors import RefusedError

FORMAT = 1
"""Raised where what was written before would be misread. Fields and columns that come are told by their names."""
FORMAT_PROPERTY = "spark_mv.format"
TABLE_PROPERTIES = f"'{FORMAT_PROPERTY}' = '{FORMAT}'"
"""In the statements that make the tables beside the models."""


def of_this_format(data: Any, key: str, what: str, shape: type, earlier: Iterable[str] = ()) -> dict[str, Any] | None:
    """The fields of a record, None where it is none. `key` names its format, `shape` is what it is read into, `earlier` are
    fields that only earlier releases wrote. Raises RefusedError for what a later release wrote."""
    if not isinstance(data, dict) or key not in data:
        return None
    found = data[key]
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    known = {field.name for field in fields(shape)} | {key, *earlier}
    strange = sorted(name for name in data if name not in known)
    if found > FORMAT or strange:
        raise newer(what, found, strange)
    return {name: value for name, value in data.items() if name != key} if found == FORMAT else None


def check_table(
    table: str, properties: Mapping[str, str], columns: Mapping[str, str], known: Mapping[str, str]
) -> None:
    """Raises RefusedError for a table beside the models that a later release made or brought up to date, and for one that is somebody
    else's or that somebody has changed: what is paid could not be kept in it. `columns`: its own, name and type; `known`: ours."""
    found = _of_property(properties.get(FORMAT_PROPERTY))
    there = {name.lower(): kind.lower() for name, kind in columns.items()}
    mine = {name.lower(): kind.lower() for name, kind in known.items()}
    if there and FORMAT_PROPERTY not in properties and next(iter(mine)) not in there:
        raise RefusedError(
            "NOT_OURS",
            f"{table} has the name of a table of dbt-spark-mv's and is none (it has no {next(iter(mine))}). Nothing was changed, and no model asked. "
            "Give it another name, or name another schema for answers (`ai: {result_schema: …}` in the profile)",
        )
    strange = sorted(there.keys() - mine.keys())
    if found > FORMAT or strange:
        raise newer(
            table,
            found,
            strange,
            f". If somebody has added {', '.join(strange)} to {table}, drop that" if strange else "",
        )
    other = [
        f"{n} is {there[n]}, not {mine[n]}"
        for n in mine
        if n in there and there[n] not in (mine[n], _WIDER.get(mine[n]))
    ]
    if other:
        raise RefusedError(
            "TABLE_CHANGED",
            f"{table} has columns of other types than it was made with: {', '.join(other)}. Nothing was changed, and no model asked: answers could not be "
            "kept in it. Restore the table, or give it another name: the next run makes a new one, and pays its answers again",
        )


_WIDER = {"int": "bigint"}


def check_rows(table: str, properties: Iterable[Sequence[Any]]) -> None:
    """Raises RefusedError for a table whose format is a later one, by what `ask_format` gave. Columns that came may stay: they are NULL
    in rows that name the others."""
    found = _of_property(next((str(row[1]) for row in properties if row[0] == FORMAT_PROPERTY), None))
    if found > FORMAT:
        raise newer(table, found)


def ask_format(table: str) -> str:
    """The statement whose rows are names and values of the table's properties."""
    return f"SHOW TBLPROPERTIES {table}"


def _of_property(value: str | None) -> int:
    """A format that is no number is one to come."""
    return FORMAT if value is None else int(value) if value.isdigit() else FORMAT + 1


def newer(what: str, found: int, strange: Iterable[str] = (), added: str = "") -> RefusedError:
    """The refusal of what a later release wrote. `added`: what to do where it was none."""
    unknown = ", ".join(strange)
    says = f"is in format {found}" if found > FORMAT else f"has what this release does not know ({unknown})"
    return RefusedError(
        "NEWER_FORMAT",
        f"{what} {says}: a later release of dbt-spark-mv wrote it. This one reads format {FORMAT}. Nothing was changed. Install the release "
        f"that wrote it, or a later one: with this one, values that are kept could be drawn again, and answers paid again{added}",
    )
