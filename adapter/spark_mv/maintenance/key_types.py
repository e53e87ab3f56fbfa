"""Types of which no value is equal to another for Spark, so that none can be a key."""

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
    >>> key_type_problems(["id"], [Column("id", "struct<map:int,`variant`:array<int>>")])
    []
    """
    types = {column.name.lower(): column.type for column in columns}
    return [
        f"unique_key {key} is of type {kind}, of which Spark cannot tell whether two are equal. Take other columns, or a text of it: "
        f"to_json({key})"
        for key in keys
        if _NO_EQUALITY.search(_FIELD_NAMES.sub("", kind := types.get(key.lower(), "")))
    ]
