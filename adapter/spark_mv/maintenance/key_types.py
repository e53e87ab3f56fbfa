"""Types of key columns that are refused: those of which Spark calls no two values equal, and structs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from spark_mv.maintenance.facts import Column

_NO_EQUALITY = re.compile(r"\b(map|variant)\b", re.IGNORECASE)
_FIELD_NAMES = re.compile(r"(?<=[<,])\s*(?:`(?:[^`]|``)*`|\w+)\s*(?=:)")


def key_type_problems(keys: Iterable[str], columns: Sequence[Column]) -> list[str]:
    """What is wrong with the types of key columns, with the cure.

    >>> key_type_problems(["ID"], [Column("id", "map<int,int>")])[0]
    'unique_key ID is of type map<int,int>, of which Spark cannot tell whether two are equal. Take other columns, or a text of it: to_json(ID)'
    >>> key_type_problems(["id"], [Column("id", "array<struct<map:int,`variant`:array<int>>>")])
    []
    """
    types = {column.name.lower(): column.type for column in columns}
    found = ((key, types.get(key.lower(), "")) for key in keys)
    return [f"unique_key {key} is of type {kind}{why}" for key, kind in found if (why := _why_not(key, kind))]


def _why_not(key: str, kind: str) -> str:
    if _NO_EQUALITY.search(_FIELD_NAMES.sub("", kind)):
        return (
            f", of which Spark cannot tell whether two are equal. Take other columns, or a text of it: to_json({key})"
        )
    if kind.lower().startswith("struct<"):
        return (
            f", which is never NULL because a field is, and of which files keep no bounds. Take its fields as columns of the query ({key}.field AS name), "
            "and name those"
        )
    return ""
