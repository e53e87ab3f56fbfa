"""The ways in which a run says no. Each text names the place, the reason and the cure, and begins with its code, as Spark's own do:
docs/reference/codes.md lists them all, read from the places that give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_mv.query.syntax.query_error import QueryError

_PREFACE = re.compile(r"(?:\w+ )+Error(?: in .*)?")
"""The first line of dbt's own errors: their kind, and perhaps the node."""


class ConfigError(ValueError):
    """One or more settings of a model are wrong; the text lists all of them with their cures."""

    code = "CONFIG"

    def __init__(self, model: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(
            f"[{self.code}] model {model}: the configuration of this nondeterministic_mv needs a change:\n{lines}"
        )


class RefusedError(ValueError):
    """The run stops before it touches anything."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(f"[{code}] {text}")


class NotOurs(RefusedError):
    """A table is in the way that this materialization did not make. Nothing is wrong with the model."""


class RunFailed(RuntimeError):
    """The run stopped on its way; the table was not touched, or another run's state of it stands."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(f"[{code}] {text}")


class NotFollowed(RunFailed):
    """The data is of a kind that the plan's steps do not follow; those of its fallback do."""


class TurnTaken(RunFailed):
    """Another writer published first from the same state of a table; this one has written nothing to it."""

    def __init__(self, table: str) -> None:
        super().__init__("TURN_TAKEN", f"{table}: another writer published first; nothing was written")


def refused(errors: Sequence[QueryError], about: str = "") -> RefusedError:
    """What is wrong with a query, each with its code. `about` comes before every message."""
    first, *others = errors
    more = "".join(f"\n[{error.code}] {about}{error.message}" for error in others)
    return RefusedError(first.code, f"{about}{first.message}{more}")


def first_line(error: BaseException) -> str:
    """The line that says what is wrong, of any error."""
    return telling_line(str(error)) or type(error).__name__


def telling_line(message: str) -> str:
    """The line of an error's text that says what is wrong: above it, dbt writes only of which kind it is. A list goes with the line that announces it.

    >>> telling_line("Database Error\\n  [DIVIDE_BY_ZERO] Division by zero.\\n  line 1")
    '[DIVIDE_BY_ZERO] Division by zero.'
    >>> telling_line("[CONFIG] model m needs a change:\\n  - freeze: …\\n  - refresh: …")
    '[CONFIG] model m needs a change: freeze: …; refresh: …'
    >>> telling_line("Exception thrown in awaitResult:\\nCaused by: [FAILED_READ_FILE] A file is gone.")
    '[FAILED_READ_FILE] A file is gone.'
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if len(lines) > 1 and _PREFACE.fullmatch(lines[0]):
        del lines[0]
    if not lines:
        return ""
    caused = next((line for line in lines[1:] if line.startswith("Caused by: ")), "")
    if caused and lines[0].endswith(":"):  # Java's preface to it
        return caused.removeprefix("Caused by: ")
    listed = "; ".join(line[2:] for line in takewhile(lambda line: line.startswith("- "), lines[1:]))
    return f"{lines[0]} {listed}" if listed and lines[0].endswith(":") else lines[0]


def unread(error: Exception, what: str) -> str:
    """Why Spark does not let a model be looked at. `what`: what for, as `planned`."""
    missing = "TABLE_OR_VIEW_NOT_FOUND" in str(error) or "SCHEMA_NOT_FOUND" in str(error)
    cure = ". What it reads has to be there: run the models above it first" if missing else ""
    return f"it cannot be {what}: {first_line(error)}{cure}"
