"""What the analysis says about one SELECT: frozen data, no behaviour beyond look-ups.

Levels are Teiid's levels of determinism plus one for AI functions; `ORDER_DEPENDENT` is for results that
depend on the order in which Spark happens to see rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.query_error import QueryError


@dataclass(frozen=True)
class Cause:
    """The call that gives an expression its level.

    `line` and `column` are 1-based positions in the text that was analysed. `path` leads from the call site to
    the place where it matters, outermost last, e.g. ("draws.bucket", "GROUP BY").
    """

    function: str
    line: int
    column: int
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnVerdict:
    """One output column. `levels` are all levels that occur in it; `level` is the worst of them.

    `kept`: the value is drawn once per unique key and read back afterwards (per-row level, or frozen).
    `fingerprint` is that of the column's own expression, seen through CTEs and subqueries. `draws` are the per-row calls that it
    reads, wherever they stand: columns that share one have their values of one draw. `type` is Spark's, where it was asked for and can be
    derived, else ''.
    """

    name: str
    level: Level
    levels: frozenset[Level]
    kept: bool
    frozen: bool
    expression: str
    fingerprint: str
    cause: Cause | None = None
    draws: frozenset[tuple[str, int, int]] = frozenset()  # function, line, column
    type: str = ""


@dataclass(frozen=True)
class PredicateVerdict:
    """One conjunct of a WHERE, HAVING, QUALIFY or JOIN ON.

    `valid_from` (inclusive) and `valid_to` (exclusive) are SQL expressions of type TIMESTAMP over the columns in
    scope: the conjunct holds exactly for the as-of instants T with valid_from <= T < valid_to; None is unbounded on
    that side. With `clock` set and `solved` False it could not be solved for the clock: bounds that are there all the same
    say only that it never holds outside them.
    """

    text: str
    clause: str
    scope: str
    line: int
    column: int
    level: Level
    clock: bool = False
    solved: bool = False
    valid_from: str | None = None
    valid_to: str | None = None
    cause: Cause | None = None
    guard: str | None = None  # SQL: a row for which it is not true never satisfies the solved predicate


@dataclass(frozen=True)
class ClauseVerdict:
    """One JOIN, GROUP BY, window, set operation, LIMIT, sample … and the worst level it depends on."""

    clause: str
    text: str
    scope: str
    line: int
    column: int
    level: Level
    cause: Cause | None = None


@dataclass(frozen=True)
class SourceTable:
    """A table the query reads. `name` as Spark resolves it (quotes removed, parts joined by dots), `occurrences` how
    often it stands in the query (looked-through views included). `f()` is a table function, `t@b()` a branch or tag of t by its name."""

    name: str
    occurrences: int = 1
    via: tuple[str, ...] = ()  # the views that were looked through to find it


@dataclass(frozen=True)
class Shape:
    """What kind of query it is, seen as a whole; decides which strategies can apply."""

    row_wise: bool = (
        True  # every output row comes from one row of each joined table: no grouping, DISTINCT, window, set operation
    )
    aggregate: bool = False
    distinct: bool = False
    window: bool = False
    unpartitioned_window: bool = False
    limit: bool = False
    set_operation: bool = False
    union_all_only: bool = False
    join: bool = False
    outer_join: bool = False
    subquery: bool = False  # EXISTS, IN (SELECT …), scalar
    generator: bool = False  # explode, LATERAL VIEW, TVF
    opaque: bool = False  # could not be seen through: complete recompute only
    pivot: bool = False
    sample: bool = False
    grouping_sets: bool = False  # ROLLUP, CUBE, GROUPING SETS
    nested: bool = False  # an aggregate, DISTINCT or window above another one
    order_dependent: bool = False
    group_keys: tuple[str, ...] | None = None  # output names of the GROUP BY keys, None if one is not in the output
    partition_keys: tuple[str, ...] | None = None  # output names of the PARTITION BY columns that all windows share


@dataclass(frozen=True)
class Analysis:
    """The verdict on one model's SELECT. Positions refer to `sql`."""

    sql: str
    fingerprint: str
    columns: tuple[ColumnVerdict, ...]
    predicates: tuple[PredicateVerdict, ...] = ()
    tables: tuple[SourceTable, ...] = ()
    functions: tuple[
        tuple[str, Level, int, int], ...
    ] = ()  # calls that are not deterministic: name, level, line, column
    shape: Shape = field(default_factory=Shape)
    errors: tuple[QueryError, ...] = ()
    clauses: tuple[ClauseVerdict, ...] = ()
    rows_level: Level = Level.DETERMINISTIC  # which rows there are: filters, joins, limits, samples
    rows_draw: Cause | None = None  # the first per-row call that decides which rows there are
    own_functions: tuple[str, ...] = ()  # called, and declared deterministic: as written, in lower case
    # offsets of the AI calls that read only columns of which equal values are the same
    told_apart: frozenset[int] = frozenset()
    # columns read by a name that is a function without parentheses, too, in lower case
    word_columns: tuple[str, ...] = ()
    # where the text names a column with a per-row value: start, end, and the fingerprint of the value
    drawn_reads: tuple[tuple[int, int, str], ...] = ()

    @property
    def levels(self) -> frozenset[Level]:
        """Every level that occurs anywhere in the query."""
        return frozenset({Level.DETERMINISTIC, *(level for _, level, _, _ in self.functions)})

    def column(self, name: str) -> ColumnVerdict | None:
        """The verdict on the column of that name (case does not matter), or None."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)
