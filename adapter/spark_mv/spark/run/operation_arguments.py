"""Arguments of operations as YAML gives them: what is none of the values that are meant is refused, instead of counting as one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_mv.maintenance.errors import RefusedError

_MOST_DAYS = 36_500


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


def days(name: str, value: Any) -> float:
    """A number of days that have passed, not a text of one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(name, value, "is no number")
    if not 0 <= value <= _MOST_DAYS:
        raise _refused(name, value, f"is no number of days from 0 to {_MOST_DAYS:,}")
    return float(value)


def texts(name: str, value: Any) -> list[str]:
    """One text, or a list of them; None is none."""
    given = [value] if isinstance(value, str) else value
    if given is None:
        return []
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) and one.strip() for one in given):
        raise _refused(name, value, "is neither a name nor a list of names")
    return list(given)


def model_name(value: Any) -> str:
    """The name of one model: an argument that is given and empty, as a variable of a shell may be, does not stand for all models."""
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        given = "nothing" if not value else repr(value)
        raise RefusedError(
            "OPERATION_ARGUMENT",
            f"model: {given} is no name of a model. Name one: --args '{{model: NAME}}'; an operation that takes all models without one needs no argument at all. Nothing was changed",
        )
    return str(value)


def one_of(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of the choices."""
    if value not in choices:
        raise _refused(name, value, f"is none of {', '.join(choices)}")
    return str(value)


def _refused(name: str, value: Any, why: str) -> RefusedError:
    return RefusedError("OPERATION_ARGUMENT", f"{name}: {value!r} {why}. Nothing was changed")
