"""The level of determinism of every function Spark knows, read from `functions.txt`.

Names are Spark 3.5 to 4.1's `SHOW FUNCTIONS`; a live test compares the two. What stands in no catalogue is a user's
function, which is nondeterministic until the user declares it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from spark_mv.query.functions.level import Level

# Functions that keep the order of rows only as aggregates: over a window with a total order they are deterministic.
LEVEL_WORDS = tuple(level.value for level in Level)


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, Level]:
    """Every known function or operator, lower case, with its level."""
    levels: dict[str, Level] = {}
    level: Level | None = None
    for line in resources.files(__package__).joinpath("functions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") or not line.strip():
            continue
        if line.startswith("[") and line.rstrip().endswith("]"):
            level = Level(line.strip()[1:-1])
            continue
        if level is None:
            raise ValueError(f"functions.txt: {line!r} stands before the first [level]")
        levels.update(dict.fromkeys(line.split(), level))
    return MappingProxyType(levels)


def level_of(name: str) -> Level | None:
    """The level of the built-in function `name` (case does not matter), None if Spark has no such function."""
    return catalogue().get(name.lower())


def declared_levels(functions: Mapping[str, Any] | None) -> tuple[dict[str, Level], list[str]]:
    """The user's declarations `{name: {"determinism": word}}` (or `{name: word}`) as levels, and what is wrong with
    them, as sentences. A declaration that is wrong leaves the function nondeterministic."""
    levels: dict[str, Level] = {}
    problems: list[str] = []
    for name, declaration in (functions or {}).items():
        if isinstance(declaration, Mapping):
            word = declaration.get("determinism", declaration.get("level"))
        else:
            word = declaration
        try:
            levels[name.lower()] = Level(str(getattr(word, "value", word)).lower().replace("_", "-"))
        except ValueError:
            levels[name.lower()] = Level.NONDETERMINISTIC
            problems.append(f"function {name}: determinism {word!r} is not one of {', '.join(LEVEL_WORDS)}")
    return levels, problems
