"""What one analysis carries along while it walks the tree: the text in hand, look-ups, and what it has found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import CLEAN, Origin, Relation, Taint
from spark_mv.query.analysis.verdict import ClauseVerdict, PredicateVerdict
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.parse import Parsed
from spark_mv.query.syntax.parser import first_offset
from spark_mv.query.syntax.query_error import QueryError


@dataclass
class ReadCte:
    """A CTE, analysed when first read (one that nobody reads has no effect)."""

    node: exp.Expr
    env: Env
    relation: Relation | None = None
    busy: bool = False


@dataclass(frozen=True)
class Env:
    """Where a query stands: the CTEs it sees, the scope around it (None for a FROM item), and its label."""

    ctes: Mapping[str, ReadCte] = field(default_factory=dict)
    outer: Scope | None = None
    label: str = ""
    top: bool = False  # the outermost SELECT
    exists: bool = False  # inside EXISTS: only whether there is a row matters
    preserved: bool = False  # its rows are the model's rows, so `unique_key` is unique in them


@dataclass(frozen=True)
class WalkedText:
    """The statement in hand: the model itself, or a view underneath (then `anchor` is the place of its name)."""

    parsed: Parsed
    via: tuple[str, ...] = ()
    anchor: tuple[int, int] | None = None


@dataclass
class Frame:
    """What one query block read and is, before it becomes part of its Relation."""

    reads: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)


def _not_set(*_: Any) -> Relation:
    raise NotImplementedError("analyze() puts the walkers of relations.py here")


@dataclass
class Walk:
    """The state of one analysis. Findings are appended in the order of discovery; `finish` in analyze.py sorts them."""

    text: WalkedText
    model: str
    declared: Mapping[str, Level]
    schemas: Mapping[str, Mapping[str, str]] | None
    views: Mapping[str, str]
    unique_key: tuple[str, ...] = ()
    key_fingerprints: frozenset[str] = frozenset()  # set before the second pass, see analyze.py
    errors: dict[tuple[str, int, int], QueryError] = field(default_factory=dict)
    predicates: dict[tuple[object, ...], PredicateVerdict] = field(default_factory=dict)
    clauses: dict[tuple[object, ...], ClauseVerdict] = field(default_factory=dict)
    functions: dict[tuple[str, int, int], tuple[str, Level, int, int]] = field(default_factory=dict)
    query: Callable[[Walk, exp.Expr, Env], Relation] = _not_set
    cte: Callable[[Walk, ReadCte], Relation] = _not_set
    tainted_names: set[str] = field(default_factory=set)  # lower case names of columns that are not deterministic
    seen: set[int] = field(default_factory=set)  # ids of the call nodes that were judged
    # what nodes stand for, by id (the node is kept, so that its id stays its own), see fingerprint.py
    prints: dict[int, tuple[exp.Expr, str]] = field(default_factory=dict)
    notes: dict[int, tuple[exp.Expr, str]] = field(default_factory=dict)
    unordered: set[int] = field(default_factory=set)  # ids of queries whose ORDER BY decides nothing
    named_tables: set[int] = field(default_factory=set)  # ids of tables whose name is in `notes`
    own_functions: set[str] = field(default_factory=set)  # called, and declared deterministic
    told_apart: dict[int, bool] = field(default_factory=dict)  # AI calls by their offset, see Analysis.told_apart
    # columns read by a name that is a function without parentheses, too
    word_columns: set[str] = field(default_factory=set)
    drawn_reads: dict[tuple[int, int], str] = field(default_factory=dict)  # places of drawn columns: fingerprint
    ties: set[frozenset[str]] = field(
        default_factory=set
    )  # what rows may tie in, for all that is known without the key
    total_window: int | None = None  # id of the function node whose window has a total order
    frames: list[Frame] = field(default_factory=lambda: [Frame()])
    ctes: list[ReadCte] = field(default_factory=list)  # all that were defined, read or not
    cte_names: set[str] = field(default_factory=set)
    view_names: set[str] = field(default_factory=set)

    # -- places ---------------------------------------------------------------------------------------------------

    def place(self, node: exp.Expr | None) -> tuple[int, int]:
        """Line and column of the first token under `node`; (0, 0) if it has none."""
        if self.text.anchor is not None:
            return self.text.anchor
        start = first_offset(node)
        return (0, 0) if start is None else self.text.parsed.position(start)

    def at(self, offset: int) -> tuple[int, int]:
        return self.text.anchor or self.text.parsed.position(offset)

    # -- findings -------------------------------------------------------------------------------------------------

    def error(self, code: str, message: str, place: tuple[int, int] = (0, 0)) -> None:
        self.errors.setdefault((code, *place), QueryError(code, f"model {self.model}: {message}", *place))

    def origin(self, name: str, level: Level, place: tuple[int, int]) -> Taint:
        """The taint of one call, which is also listed among the query's functions."""
        if level == Level.DETERMINISTIC:
            return CLEAN
        self.functions.setdefault((name, *place), (name, level, *place))
        return Taint((Origin(name, level, *place, path=self.text.via),))

    def level(self, name: str) -> Level | None:
        """The declared or catalogued level of a function, None if nobody knows it."""
        return self.declared.get(name.lower()) or level_of(name)

    # -- frames ---------------------------------------------------------------------------------------------------

    @contextmanager
    def frame(self) -> Iterator[Frame]:
        frame = Frame()
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()

    def flag(self, *words: str) -> None:
        self.frames[-1].flags.update(words)

    def absorb(self, relation: Relation) -> None:
        """Count a FROM item's tables and shape into the query that reads it."""
        self.frames[-1].reads.extend(relation.reads)
        self.frames[-1].flags.update(relation.flags)

    @contextmanager
    def reading(self, text: WalkedText) -> Iterator[None]:
        before, self.text = self.text, text
        try:
            yield
        finally:
            self.text = before
