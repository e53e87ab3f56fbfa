"""What queries about changes are made of: the texts that stand for tables, and the move of the clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from spark_mv.query.delta.names import Columns
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.syntax.select_tree import Leaf


class Tables(Protocol):
    """The texts that stand for a table. Each is a FROM item without an alias. `outweighs`: whether a table (lower case) is so much larger than all
    changes that these are better followed without reading it. `types`: those of its columns, all in lower case."""

    @property
    def columns(self) -> Columns: ...
    def changed(self, leaf: Leaf) -> bool: ...
    def now(self, leaf: Leaf) -> str: ...
    def changes_text(self, leaf: Leaf) -> str: ...
    def now_and_before(self, leaf: Leaf) -> str: ...
    def pinned(self, sql: str) -> str: ...
    def outweighs(self, name: str) -> bool: ...
    def types(self, name: str) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Window:
    """Bounds of one predicate on the clock (TIMESTAMP expressions, None = unbounded)."""

    valid_from: str | None
    valid_to: str | None


@dataclass(frozen=True)
class Move:
    """The clock moved from `before` to `now`. `windows`: offset of a conjunct → its bounds, for those that are solved."""

    windows: Mapping[int, Window]
    before: Pins
    now: Pins
