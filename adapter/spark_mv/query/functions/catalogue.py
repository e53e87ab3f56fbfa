"""The one table of functions, `functions.txt`: every function that Spark knows, and what kind of function it is.

Names are Spark 3.5 to 4.1's `SHOW FUNCTIONS`; a live test compares the table with Spark's own registry. What stands in no
catalogue is a user's function, which is nondeterministic until the user declares it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from spark_mv.query.functions.level import Level

LEVEL_WORDS = tuple(level.value for level in Level)


class Kind(str, Enum):
    """What a function takes and gives: a row's value, a group's, several rows of one, a value beside a window's rows, a
    table; operators are functions too."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    GENERATOR = "generator"
    WINDOW = "window"
    TABLE = "table"
    OPERATOR = "operator"


class Mark(str, Enum):
    """What else is known of some functions; `functions.txt` says what each mark means."""

    KEYWORD = "keyword"
    FOLLOWS_ORDER = "follows-order"
    FORGETS_ORDER = "forgets-order"
    BY_POSITION = "by-position"
    PICKS = "picks"
    READS = "reads"


@dataclass(frozen=True)
class Function:
    """One line of the table. `since`: the first Spark that has it ('3.5' or before), '' for none of open-source Spark."""

    name: str
    level: Level
    kind: Kind
    since: str
    marks: frozenset[Mark]


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, Function]:
    """Every known function or operator by its name in lower case."""
    found: dict[str, Function] = {}
    for line in resources.files(__package__).joinpath("functions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        name, level, kind, since, *marks = line.split()
        if name in found:
            raise ValueError(f"functions.txt: {name} stands twice")
        found[name] = Function(name, Level(level), Kind(kind), since.strip("-"), frozenset(map(Mark, marks)))
    return MappingProxyType(found)


def level_of(name: str) -> Level | None:
    """The level of the built-in function `name` (case does not matter), None if Spark has no such function."""
    found = catalogue().get(name.lower())
    return found.level if found else None


def is_kind(name: str, *kinds: Kind) -> bool:
    """Whether `name` (case does not matter) is a built-in function of one of these kinds."""
    found = catalogue().get(name.lower())
    return found is not None and found.kind in kinds


def is_marked(name: str, mark: Mark) -> bool:
    """Whether `name` (case does not matter) is a built-in function with the mark."""
    found = catalogue().get(name.lower())
    return found is not None and mark in found.marks


@lru_cache(maxsize=1)
def ai_aggregates() -> frozenset[str]:
    """The AI functions that take a group's values."""
    return frozenset(f.name for f in catalogue().values() if f.level is Level.AI and f.kind is Kind.AGGREGATE)


def is_clock(name: str) -> bool:
    """Whether the function reads the clock; unix_timestamp only does without arguments."""
    return level_of(name) == Level.COMMAND


def declarations(said: Any) -> Mapping[str, Any]:
    """What a profile or a project says of its functions. Raises ValueError where that is no mapping.

    >>> declarations(["f"])
    Traceback (most recent call last):
    ValueError: functions: expected a mapping of names to levels, such as {my_udf: {determinism: deterministic}}, got ['f']
    """
    if said and not isinstance(said, Mapping):
        raise ValueError(
            f"functions: expected a mapping of names to levels, such as {{my_udf: {{determinism: deterministic}}}}, got {said!r}"
        )
    return said or {}


def declared_levels(functions: Mapping[str, Any] | None) -> tuple[dict[str, Level], list[str]]:
    """The user's declarations `{name: {"determinism": word}}` (or `{name: word}`) as levels, and what is wrong with
    them, as sentences. A declaration that is wrong leaves the function nondeterministic; one of Spark's own stays what it is, where a lesser
    level is declared: what was drawn for rows would be lost.

    >>> declared_levels({"Rand": "deterministic"})
    ({}, ['function Rand is one of Spark, and nondeterministic: only functions of your own are declared as something less. Take the declaration out'])
    """
    levels: dict[str, Level] = {}
    problems: list[str] = []
    for name, declaration in (functions or {}).items():
        if isinstance(declaration, Mapping):
            word = declaration.get("determinism", declaration.get("level"))
        else:
            word = declaration
        try:
            level = Level(str(getattr(word, "value", word)).lower().replace("_", "-"))
            own = catalogue().get(str(name).lower())
            if own is not None and level < own.level:
                problems.append(
                    f"function {name} is one of Spark, and {own.level.value}: only functions of your own are declared as something less. "
                    "Take the declaration out"
                )
                continue
            levels[name.lower()] = level
        except ValueError:
            levels[name.lower()] = Level.NONDETERMINISTIC
            problems.append(f"function {name}: determinism {word!r} is not one of {', '.join(LEVEL_WORDS)}")
    return levels, problems
