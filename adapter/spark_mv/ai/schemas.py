"""JSON schemas for structured output, those of Spark types and those that a user gives; Spark types as workers can read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
    if name.startswith("TIMESTAMP"):
        return ["TIMESTAMP_NTZ" if name == "TIMESTAMPNTZ" else "TIMESTAMP"]
    return ["BINARY" if name == "VARBINARY" else name]


def given_schema(text: str) -> dict[str, Any]:
    """The JSON schema in a responseFormat: it may stand there as it is, or wrapped as endpoints take it. Raises ValueError where there is none.

    >>> given_schema('{"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}')
    {'type': 'object'}
    """
    given = json.loads(text)
    if "json_schema" in given:
        given = given["json_schema"]
        if not isinstance(given, dict) or "schema" not in given:
            raise ValueError('its json_schema has no schema: write {"json_schema": {"name": "…", "schema": {…}}}')
    schema = given.get("schema", given)
    if not isinstance(schema, dict):
        raise ValueError(f"its schema is no JSON object: {json.dumps(schema)}")
    return schema


def problem_of_schema(schema: dict[str, Any]) -> str | None:
    """Why no answer could be checked against it, None where it is a JSON schema.

    >>> problem_of_schema({"type": "objekt"})
    "$.type: 'objekt' is not valid under any of the given schemas"
    >>> problem_of_schema({"properties": {"a": {"$ref": "#/$defs/a"}}})
    "there is no '#/$defs/a', to which it refers"
    """
    from jsonschema import Draft202012Validator, SchemaError  # type: ignore[import-untyped]
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]

    try:
        kind = validator_for(schema, default=Draft202012Validator)
        kind.check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {error.message[:300]}"
    except Exception as error:  # a $schema that is no text
        return f"{type(error).__name__}: {error}"
    for name in dict.fromkeys(_references(schema)):
        if not name.startswith("#"):
            return f"it refers to {name!r}, and has to have all in itself"
        try:
            list(kind(schema).descend(None, {"$ref": name}))
        except Exception:
            return f"there is no {name!r}, to which it refers"
    return None


def _references(value: Any) -> Iterator[str]:
    """The $ref of a schema and of those in it; none where a part of it has an address of its own, by which they are meant."""
    if isinstance(value, list):
        for one in value:
            yield from _references(one)
    if isinstance(value, dict) and "$id" not in value:
        for name, one in value.items():
            if name == "$ref" and isinstance(one, str):
                yield one
            elif name in _OF_NAMES and isinstance(one, dict):
                yield from _references(list(one.values()))
            elif name not in {"const", "enum", "default", "examples"}:  # data
                yield from _references(one)


_OF_NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Words that hold a schema by each of the user's names."""
