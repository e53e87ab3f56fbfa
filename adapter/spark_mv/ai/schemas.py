"""Spark types as JSON schemas, for structured output, and as what workers can read."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

_SCALARS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "number"),
    "BOOLEAN": "boolean",
}


def json_schema_of(ddl: str) -> dict[str, Any]:
    """The JSON schema of values of a Spark type, NULL allowed everywhere but in arrays and at the root.

    Dates and timestamps are strings. Raises ValueError for what is no Spark type.
    """
    try:
        return _schema(exp.DataType.build(ddl, dialect="spark"), nullable=False)
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(f"{ddl!r} is no Spark type") from error


def _schema(kind: exp.DataType, nullable: bool) -> dict[str, Any]:
    name = kind.this.value if isinstance(kind.this, exp.DataType.Type) else str(kind.this)
    if name == "STRUCT":
        properties = {f.name: _schema(f.args["kind"], True) for f in kind.expressions}
        return {
            "type": ["object", "null"] if nullable else "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    if name in {"ARRAY", "LIST"}:
        return {"type": ["array", "null"] if nullable else "array", "items": _schema(kind.expressions[0], False)}
    if name == "MAP":
        values = _schema(kind.expressions[1], True)
        return {"type": ["object", "null"] if nullable else "object", "additionalProperties": values}
    if name == "VARIANT":
        return {}
    word = _SCALARS.get(name, "string")
    return {"type": [word, "null"] if nullable else word}


def value_kind(ddl: str) -> list[Any]:
    """A Spark type as `Kind` of typed.py has it.

    >>> value_kind("ARRAY<STRUCT<a: INT, b: DECIMAL(5)>>")
    ['ARRAY', ['STRUCT', [['a', ['INT']], ['b', ['DECIMAL', 5, 0]]]]]
    """
    return _kind(exp.DataType.build(ddl, dialect="spark"))


def _kind(kind: exp.DataType) -> list[Any]:
    name = kind.this.value if isinstance(kind.this, exp.DataType.Type) else str(kind.this)
    if name == "STRUCT":
        return [name, [[f.name, _kind(f.args["kind"])] for f in kind.expressions]]
    if name in ("ARRAY", "LIST"):
        return ["ARRAY", _kind(kind.expressions[0])]
    if name == "MAP":
        return [name, _kind(kind.expressions[1])]
    if name == "DECIMAL":
        said = [int(part.name) for part in kind.expressions]
        return [name, *said, *(10, 0)[len(said) :]]
    return ["TIMESTAMP" if name.startswith("TIMESTAMP") else name]
