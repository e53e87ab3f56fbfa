"""Whether a JSON value is one of a Spark type, and what is to be kept of it: a number that the column cannot hold would be shown as NULL, and no run would
ask again. Workers do this, which have no parser of types: they are given the type as `value_kind` of schemas.py has it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

Kind = Sequence[Any]
"""A type: its name, and what it is of. `["INT"]`, `["DECIMAL", 10, 2]`, `["ARRAY", kind]`, `["MAP", kind]` (of its values), `["STRUCT", [[name, kind], …]]`."""
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_LARGEST = Decimal("3.4028234663852886e38")
"""FLOAT."""
_DAY = r"\s*[+-]?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\s*"
_TIME = r"(?:[01]?\d|2[0-3]):[0-5]?\d(?::[0-5]?\d(?:\.\d*)?)?(?!\d)"
_SHAPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"), (int, float, Decimal)),
    **dict.fromkeys(("STRUCT", "MAP"), (dict,)),
    **dict.fromkeys(("DATE", "TIMESTAMP"), (str,)),
    "ARRAY": (list,),
    "BOOLEAN": (bool,),
}
_FORMS = {
    "DATE": re.compile(_DAY, re.DOTALL),
    "TIMESTAMP": re.compile(_DAY.replace(".*", rf"(?:{_TIME}\s*(?:[A-Za-z+-].*)?)?"), re.DOTALL),
}


def kept_json(reply: str, kind: Kind, field: str = "") -> str | None:
    """The JSON of a reply, or of a `field` of it, as Spark reads it in the type; a text as it is, None for NULL. Digits stay as they are. Raises
    ValueError, which says what does not fit.

    >>> kept_json('{"answer": 5.0}', ["INT"], "answer"), kept_json('{"a": 12345678901234567890.12}', ["STRUCT", [["a", ["DECIMAL", 22, 2]]]])
    ('5', '{"a": 12345678901234567890.12}')
    """
    value = json.loads(reply, parse_float=Decimal)
    try:
        found = _typed(value[field] if field else value, kind, field or "the reply")
    except (ArithmeticError, AttributeError, TypeError):  # NaN, a list where a number belongs
        raise ValueError(f"the reply is no {kind[0]}") from None
    return found if found is None or isinstance(found, str) else _json(found)


def _typed(value: Any, kind: Kind, place: str) -> Any:
    if value is None:
        return None
    name, *of = kind
    shape = _SHAPES.get(name)
    if shape is not None and (not isinstance(value, shape) or (isinstance(value, bool) and name != "BOOLEAN")):
        raise ValueError(f"{place}: {_json(value)} is no {name}")  # a schema of the user's own lets it pass
    if name == "STRUCT":
        return {field: _typed(value.get(field), inner, f"{place}.{field}") for field, inner in of[0]}
    if name == "ARRAY":
        return [_typed(one, of[0], f"{place}[{n}]") for n, one in enumerate(value)]
    if name == "MAP":
        return {key: _typed(one, of[0], f"{place}.{key}") for key, one in value.items()}
    if name in _BITS:
        limit = 2 ** (_BITS[name] - 1)
        fits = -limit <= value < limit and int(value) == value  # of 1e1000000 no int is made
        value = int(value) if fits else value
    elif name == "DECIMAL":
        precision, scale = of
        rounded = Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=400))
        fits, name = abs(rounded) < Decimal(10) ** (precision - scale), f"DECIMAL({precision},{scale})"
    elif name == "FLOAT":
        fits = abs(Decimal(value)) <= _LARGEST
    else:
        fits = name not in _FORMS or _is_day(_FORMS[name].fullmatch(value))
    if not fits:
        raise ValueError(f"{place}: {_json(value)} is no {name}")
    return value


def _is_day(found: re.Match[str] | None) -> bool:
    if found is None:
        return False
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        date(2000 + year % 400, month, day)  # the calendar repeats itself after 400 years
    except ValueError:
        return False
    return True


def _json(value: Any) -> str:
    """JSON with all digits of a number."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_json(one)}" for key, one in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
