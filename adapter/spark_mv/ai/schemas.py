"""JSON schemas of Spark types, for structured output."""

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
