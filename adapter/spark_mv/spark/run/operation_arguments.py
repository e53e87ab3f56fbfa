"""Arguments of operations as YAML gives them: what is none of the values that are meant is refused, instead of counting as one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_mv.maintenance.errors import RefusedError


def flag(name: str, value: Any) -> bool:
    """A text such as "false" would count as true."""
    if not isinstance(value, bool):
        raise _refused(name, value, "is neither true nor false")
    return value


def condition_text(value: Any) -> str | None:
    """Of `where`: None asks for all rows; an empty text, which a variable that is not set gives, does not."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise _refused("where", value, "is no condition. Leave it out to mean all rows")
    return value


def number(name: str, value: Any) -> float:
    """A number, not a text of one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(name, value, "is no number")
    return float(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of the choices."""
    if value not in choices:
        raise _refused(name, value, f"is none of {', '.join(choices)}")
    return str(value)


def _refused(name: str, value: Any, why: str) -> RefusedError:
    return RefusedError("OPERATION_ARGUMENT", f"{name}: {value!r} {why}. Nothing was changed")
