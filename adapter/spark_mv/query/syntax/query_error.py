"""What is wrong with a query, and where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QueryError:
    """A refusal: `message` names the place, the reason and the cure."""

    code: str
    message: str
    line: int = 0
    column: int = 0
