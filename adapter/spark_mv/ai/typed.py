"""Whether a JSON value is one of a Spark type, and what is to be kept of it: a number that the column cannot hold would be shown as NULL, and no run would
ask again. Workers do this, which have no parser of types: they are given the type as `value_kind` of schemas.py has it."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from spark_mv.query.solver.zone import zone_of

Kind = Sequence[Any]
"""A type: its name, and what it is of. `["INT"]`, `["DECIMAL", 10, 2]`, `["ARRAY", kind]`, `["MAP", kind]` (of its values), `["STRUCT", [[name, kind], …]]`."""
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_LARGEST = Decimal("3.4028235677973366e38")
"""FLOAT: from here on a number is rounded to infinity."""
_YEARS = {"DATE": (-290307, 5881579), **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_NTZ"), (-290307, 294246))}
"""The first and the last whole year of the types of time."""
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory"})
"""Which Python has and Java has not."""
_DAY = r"\s*(?P<year>[+-]?\d{4,7})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})(?:[ T]%s)?)?)?\s*"
_TIME = r"(?:[01]?\d|2[0-3]):[0-5]?\d(?!\d)(?::[0-5]?\d(?:\.\d*)?(?!\d)(?:\s*(?P<zone>[A-Za-z+-]\S*))?|(?P<short>[A-Za-z+-]\S*))?"
_SHAPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"), (int, float, Decimal)),
    **dict.fromkeys(("STRUCT", "MAP"), (dict,)),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY"), (str,)),
    "ARRAY": (list,),
    "BOOLEAN": (bool,),
}
_FORMS = {
    "DATE": re.compile(_DAY % ".*", re.DOTALL | re.ASCII),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_NTZ"), re.compile(_DAY % _TIME, re.DOTALL | re.ASCII)),
}
_BLANKS = "".join(map(chr, range(33)))
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_NOT_FINITE = re.compile(r"nan|[+-]?(inf|infinity)", re.IGNORECASE)
_BOOLEANS = frozenset({"true", "t", "yes", "y", "1", "false", "f", "no", "n", "0"})
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"})


def kept_json(reply: str, kind: Kind, field: str = "") -> str | None:
    """The JSON of a reply, or of a `field` of it, as Spark reads it in the type; a text as it is, None for NULL. Digits stay as they are. Raises
    ValueError, which says what does not fit.

    >>> kept_json('{"answer": 5.0}', ["INT"], "answer"), kept_json('{"a": 12345678901234567890.12}', ["STRUCT", [["a", ["DECIMAL", 22, 2]]]])
    ('5', '{"a": 12345678901234567890.12}')
    """
    value = read_json(reply)
    try:
        found = _typed(value[field] if field else value, kind, field or "the reply", root=True)
    except (ArithmeticError, AttributeError, TypeError):  # NaN, a list where a number belongs
        raise ValueError(f"the reply is no {kind[0]}") from None
    if kind[0] == "BINARY" and found is not None:  # by itself a text, and in JSON it is in base64
        return base64.b64decode(found).decode()
    as_text = isinstance(found, str) and kind[0] != "VARIANT"
    return found if found is None or as_text else json_text(found)


def shown_text(value: str, kind: Kind) -> str | None:
    """What is kept of the value that a provider of the user's own gives for a type. Raises ValueError where a column of the type would show NULL."""
    name, text = kind[0], value.strip(_BLANKS)
    if name in ("STRUCT", "ARRAY", "MAP", "VARIANT"):
        found = _typed(read_json(value), kind, "the answer", ours=False)
        return None if found is None else json_text(found)
    fits = True
    if name == "BOOLEAN":
        fits = text.lower() in _BOOLEANS
    elif name in _BITS:
        fits = _WHOLE.fullmatch(text) is not None and _typed(int(text), kind, "the answer") is not None
    elif name in ("FLOAT", "DOUBLE") and _NOT_FINITE.fullmatch(text):
        return value
    elif name in _NUMBERS:
        fits = _NUMBER.fullmatch(text) is not None and _typed(Decimal(text), kind, "the answer") is not None
    elif name in _FORMS:
        _typed(value, kind, "the answer", root=True)
    if not fits:
        raise ValueError(f"the answer: {value} is no {name}")
    return value


class Digits(float):
    """A number of JSON that is a float to whoever has it, and keeps the digits that it was written with."""

    def __new__(cls, text: str) -> Digits:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def read_json(text: str) -> Any:
    """A JSON value with all digits of its numbers."""
    return json.loads(text, parse_float=Decimal)


def _typed(value: Any, kind: Kind, place: str, ours: bool = True, root: bool = False) -> Any:
    """`ours`: the value is a reply's, of which bytes are a text; else it is as from_json reads it, which takes them in base64, decimals as texts and instants as
    seconds, too. `root`: it is cast by itself."""
    if value is None:
        return None
    name, *of = kind
    if not ours and name == "DECIMAL" and isinstance(value, str) and _NUMBER.fullmatch(value):
        _typed(Decimal(value), kind, place)
        return value
    if not ours and name == "TIMESTAMP" and isinstance(value, int) and not isinstance(value, bool):
        return _typed(value, ["INT"], place)
    shape = _SHAPES.get(name)
    if shape is not None and (not isinstance(value, shape) or (isinstance(value, bool) and name != "BOOLEAN")):
        raise ValueError(f"{place}: {json_text(value)} is no {name}")  # a schema of the user's own lets it pass
    if name == "STRUCT":
        return {field: _typed(value.get(field), inner, f"{place}.{field}", ours) for field, inner in of[0]}
    if name == "ARRAY":
        return [_typed(one, of[0], f"{place}[{n}]", ours) for n, one in enumerate(value)]
    if name == "MAP":
        return {key: _typed(one, of[0], f"{place}.{key}", ours) for key, one in value.items()}
    if name == "VARIANT":
        check_numbers(value, place)
        return value
    if name == "BINARY":
        return base64.b64encode(value.encode()).decode() if ours else base64.b64decode(value, validate=True) and value
    if name in _BITS:
        limit = 2 ** (_BITS[name] - 1)
        fits = -limit <= value < limit and int(value) == value  # of 1e1000000 no int is made
        value = int(value) if fits else value
    elif name == "DECIMAL":
        precision, scale = of
        rounded = Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=400))
        fits, name = abs(rounded) < Decimal(10) ** (precision - scale), f"DECIMAL({precision},{scale})"
    elif name == "FLOAT":
        fits = abs(Decimal(value)) < _LARGEST
    elif name == "DOUBLE":
        fits = math.isfinite(float(value))
    else:
        fits = name not in _FORMS or _is_time(_FORMS[name].fullmatch(value), name, root)
    if not fits:
        raise ValueError(f"{place}: {json_text(value)} is no {name}")
    return value


def check_numbers(value: Any, place: str) -> None:
    """Raises ValueError for numbers that JSON, or a VARIANT, does not have: NaN, 1e400."""
    if isinstance(value, dict):
        for key, one in value.items():
            check_numbers(one, f"{place}.{key}")
    elif isinstance(value, list):
        for n, one in enumerate(value):
            check_numbers(one, f"{place}[{n}]")
    elif isinstance(value, float | Decimal) and not math.isfinite(float(value)):
        raise ValueError(f"{place}: {value} is no number that a column can hold")


def _is_time(found: re.Match[str] | None, name: str, root: bool) -> bool:
    if found is None:
        return False
    year, month, day = (int(found[part] or 1) for part in ("year", "month", "day"))
    groups = found.groupdict()
    zone = groups.get("zone") or groups.get("short")
    try:
        date(2000 + year % 400, month, day)  # the calendar repeats itself after 400 years
        if zone:
            zone_of(zone)
    except ValueError:
        return False
    if zone and (zone in _NO_ZONES or (name == "TIMESTAMP_NTZ" and not root)):  # from_json reads none with a zone
        return False
    first, last = _YEARS[name]
    return first <= year <= last


def json_text(value: Any) -> str:
    """JSON with all digits of a number."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {json_text(one)}" for key, one in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, Digits):
        return value.text
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
