"""What a strategy needs to know of a query: which anchors a change touches, and the query for these anchors alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import filterfalse, pairwise

from sqlglot import exp

from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.affected import Affected
from spark_mv.query.delta.below import ExactTypes, Types, part_below
from spark_mv.query.delta.clock_places import ClockPlaces
from spark_mv.query.delta.expressions import may_be_of_all, where_texts
from spark_mv.query.delta.leaf_clock import LeafClock, leaf_clock
from spark_mv.query.delta.names import Columns, output, written_texts
from spark_mv.query.delta.narrowed import KnownColumns
from spark_mv.query.delta.tables import Move, Tables, Window
from spark_mv.query.delta.texts import emptied, idle_arms, idle_arms_below, restricted, with_condition
from spark_mv.query.delta.top_rows import Limited, limited
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_split import ClockSplit
from spark_mv.query.syntax.aggregates import groups_or_windows
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.select_tree import (
    Leaf,
    Node,
    NotIncremental,
    SelectNode,
    children,
    quoted,
    reads,
    selects,
)
from spark_mv.query.syntax.source_blocks import Block, Context, select_blocks
from spark_mv.query.syntax.source_text import SourceTextError, Span, inside_any, line_and_column, tokenize
from spark_mv.query.syntax.table_columns import by_path
from spark_mv.query.syntax.tree_builder import build

__all__ = ["AffectedQuery", "LeafClock", "Move", "NotIncremental", "QueryTree", "Window", "kept_spans", "read_tree"]


_COVERED = frozenset({"NO_JOIN_CONDITION", "NO_ANCHOR", "LATERAL_VIEW", "WINDOW_COLUMN", "SUBQUERY"})
"""What is said where a column would be needed that an outer join covers."""


@dataclass(frozen=True)
class AffectedQuery:
    """`sql` gives the distinct affected values of `anchors`, as columns `__mv_a0`, `__mv_a1`, … in that order. `arms`:
    places of the query at which something changed, each of which reads the query's tables once. `texts`: anchors (lower
    case) that a star of the outermost select list gives, as they may stand in its WHERE. `read`: how often it reads each table
    (lower case) as a whole."""

    sql: str
    anchors: tuple[str, ...]
    arms: int = 1
    texts: Mapping[str, str] = field(default_factory=dict)
    read: Mapping[str, int] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str]:
        """Output column → column of the affected table."""
        return {anchor: anchor_column(k) for k, anchor in enumerate(self.anchors)}


def anchor_column(number: int) -> str:
    """The column of the affected rows that holds the anchor of this number."""
    return f"__mv_a{number}"


@dataclass(frozen=True)
class QueryTree:
    """A query and its tree. `unstable` are the names of functions that no query about changes may evaluate, `windows` the
    predicates on the clock that are solved, by their offset; `uses` all places where the clock is read, but for columns that
    are kept. With `limited`, the rows of the result are the first ones of those that `sql` gives."""

    sql: str
    node: Node
    unstable: frozenset[str]
    windows: Mapping[int, Window]
    uses: tuple[Span, ...] = ()
    all_solved: bool = True
    limited: Limited | None = None

    def shape(self, changed: Collection[str] | None = None, moved: bool = True) -> str:
        """ROW_BASED, GROUP_AGGREGATE or WINDOW_FUNCTION, by what the query does with what changed. `changed`: the tables (lower
        case; None: all of them), `moved`: whether the clock moved a row. What groups or orders other tables only, by no clock
        that moved, gives the rows that it gave."""
        try:
            found = list(self._moving(changed, moved))
        except SourceTextError:  # where the clock stands is not known
            found = list(selects(self.node))
        if any(s.windowed for s in found):
            return "WINDOW_FUNCTION"
        if any(s.aggregate or s.distinct for s in found):
            return "GROUP_AGGREGATE"
        return "ROW_BASED"

    def _moving(self, changed: Collection[str] | None, moved: bool) -> Iterator[SelectNode]:
        """The SELECTs that read what changed, or stand around one that does."""
        clock = ClockPlaces(self.sql, self.uses, {})
        stack: list[Leaf | Node] = [self.node]
        while stack:
            item = stack.pop()
            if isinstance(item, Leaf):
                continue
            still = changed is not None and not any(name in changed for name in reads(item))
            if still and not (moved and any(clock.reads(select.tree) for select in selects(item))):
                continue
            if isinstance(item, SelectNode):
                yield item
            stack += children(item)

    def occurrences(self, name: str) -> int:
        return reads(self.node)[name.lower()]

    def linear(self, name: str) -> bool:
        """Whether the result is linear in the table, which the query reads once, and the whole query gives what its rows give."""
        return self.occurrences(name) == 1 and idle_arms(self.node, frozenset({name.lower()})) == ()

    def on_changed(self, names: Collection[str]) -> str | None:
        """The text that gives, of changed rows of these tables alone, all rows that come and go; None where the result is not
        linear in them, each of which the query reads once."""
        once = all(self.occurrences(name) == 1 for name in names)
        arms = idle_arms(self.node, frozenset(name.lower() for name in names)) if once else None
        return None if arms is None else emptied(self.sql, arms)

    def linear_below_groups(self, name: str) -> bool:
        """Whether the rows that the outermost SELECT groups are linear in the table, which the query reads once."""
        if self.occurrences(name) != 1 or not isinstance(self.node, SelectNode):
            return False
        return idle_arms_below(self.node, frozenset({name.lower()})) == ()

    def leaf_clock(self, tables: Columns) -> LeafClock | None:
        """All that the clock decides, if it is said of rows of one table by the SELECT that reads it."""
        try:
            return leaf_clock(self.node, ClockPlaces(self.sql, self.uses, tables), self.unstable, self.windows)
        except SourceTextError:
            return None

    def follows_clock(self, tables: Columns) -> bool:
        """Whether a value of the result is, or may be, the clock's own, so that a move of the clock changes every row."""
        try:
            found = list(ClockPlaces(self.sql, self.uses, tables).everywhere(self.node))
        except (NotIncremental, SourceTextError):
            return True
        return any(place.own for _, places in found for place in places)

    @deep
    def affected(
        self, tables: Tables, unique_key: Sequence[str], comparable: Collection[str], move: Move | None = None
    ) -> AffectedQuery:
        """The anchors touched by the changes that `tables` knows and by the clock's `move`.

        The anchors are the unique key where a change can be followed to it, else whichever output columns it can be
        followed to. `comparable` are the columns (lower case) of a type that can be compared. Raises NotIncremental.
        """
        try:
            return self._affected(tables, unique_key, comparable, move, False)
        except NotIncremental as error:
            if error.code not in _COVERED:
                raise
            try:
                return self._affected(tables, unique_key, comparable, move, True)
            except NotIncremental:
                raise error from None

    def _affected(
        self,
        tables: Tables,
        unique_key: Sequence[str],
        comparable: Collection[str],
        move: Move | None,
        by_absence: bool,
    ) -> AffectedQuery:
        clock = ClockPlaces(self.sql, self.uses, tables.columns)
        try:
            rendered = self._followed(tables, clock, move, by_absence).queries(self.node)
        except SourceTextError as error:
            raise NotIncremental("STRUCTURE", f"the structure of the SQL was not understood: {error}") from error
        if not rendered:
            raise NotIncremental("NOTHING_CHANGED", "no table of the query changed")
        names = output(self.node, tables.columns)
        for name in clock.shown(self.node) if move is not None else ():
            if name.lower() not in comparable:
                sentence = f"`{name}` follows the clock, and is of a type that cannot be compared at two instants, or no longer of the table's"
                raise NotIncremental("CLOCK_ELSEWHERE", sentence)
        usable = [
            k for k, name in enumerate(names)
            if name.lower() in comparable and all(r.columns[k] is not None for r in rendered)
        ]  # fmt: skip
        position = {names[k].lower(): k for k in usable}
        if all(key.lower() in position for key in unique_key):
            chosen = [position[key.lower()] for key in unique_key]
        else:
            chosen = usable
        if not chosen:
            raise NotIncremental(
                "NO_ANCHOR",
                "no output column tells which rows a change touches; select the unique_key, the GROUP BY keys or the "
                "PARTITION BY columns as they are (those of the optional side of a join tell it only where no clock stands in its ON)",
            )
        return self._anchored(self.node, names, chosen, tables, self._followed(tables, clock, move, by_absence))

    def _anchored(
        self, node: Node, names: Sequence[str], chosen: Sequence[int], tables: Tables, followed: Affected
    ) -> AffectedQuery:
        """The query for the anchors `chosen` among the columns `names` of the node."""
        rendered = followed.queries(node, frozenset(names[k].lower() for k in chosen))
        arms = []
        for r in rendered:
            columns = ", ".join(f"{quoted(str(r.columns[k]))} AS {anchor_column(n)}" for n, k in enumerate(chosen))
            arms.append(f"SELECT {columns} FROM (\n{r.text}\n)")
        listed = ", ".join(anchor_column(n) for n in range(len(chosen)))
        sql = f"SELECT DISTINCT {listed} FROM (\n" + "\nUNION ALL\n".join(arms) + "\n)"
        return AffectedQuery(
            sql, tuple(names[k] for k in chosen), len(rendered), _starred(node, tables.columns), followed.read
        )

    @deep
    def touched_part(
        self, tables: Tables, changed: Collection[str], types: Types, touched: str
    ) -> tuple[AffectedQuery, str]:
        """For a query that is linear in a part which groups or orders what `changed` (lower case): the part's keys that the change
        touches, and the text of the query with the part restricted to those in the table `touched`. Raises NotIncremental."""
        part = part_below(self.node, changed, self.unstable, ExactTypes(types, tables.columns))
        clock = ClockPlaces(self.sql, self.uses, tables.columns)
        try:
            rendered = self._followed(tables, clock, None).queries(part)
        except SourceTextError as error:
            raise NotIncremental("STRUCTURE", f"the structure of the SQL was not understood: {error}") from error
        names = output(part, tables.columns)
        texts = {**_starred(part, tables.columns), **where_texts(part.items)}
        chosen = [
            k for k, name in enumerate(names)
            if all(r.columns[k] is not None for r in rendered) and texts.get(name.lower()) is not None
        ]  # fmt: skip
        if not chosen or part.start < 0 or len({name.lower() for name in names}) < len(names):
            raise NotIncremental(
                "NO_ANCHOR", "no column of the part below the groups tells which of its rows a change touches"
            )
        found = self._anchored(part, names, chosen, tables, self._followed(tables, clock, None))
        said = {column: str(texts[name.lower()]) for name, column in found.columns.items()}
        return found, with_condition(self.sql, part, touched, said)

    def _followed(self, tables: Tables, clock: ClockPlaces, move: Move | None, by_absence: bool = False) -> Affected:
        return Affected(tables, self.unstable, clock, move, frozenset(self.windows), by_absence)

    @deep
    def restricted(self, affected: str, query: AffectedQuery, known: KnownColumns | None = None) -> str:
        """The rows of the query whose anchors are in the table `affected`; tables are still as the user wrote them. `known` as in
        `texts.restricted`."""
        texts: dict[str, str | None] = dict(query.texts)
        if isinstance(self.node, SelectNode):
            texts |= where_texts(self.node.items)
        return restricted(self.sql, self.node, affected, query.columns, texts, known)

    def among(self, keys: str, query: AffectedQuery) -> str:
        """The rows of the query whose anchors, any columns of the output, are in the table `keys`. Of the other columns,
        what stands over a partition may be another value then."""
        root, wanted = self.node, {anchor.lower() for anchor in query.anchors}
        if isinstance(root, SelectNode) and root.windowed:
            over = [item for item in root.items if item.name is None or item.name.lower() in wanted]
            if "QUALIFY" in root.clauses or any(groups_or_windows(item.node) for item in over):
                return restricted(self.sql, root, keys, query.columns, {})  # it needs all rows of the partition
        return self.restricted(keys, query)


def _starred(node: Node, tables: Columns) -> dict[str, str]:
    """The columns that stars of the outermost select list give, by name in lower case."""
    found: dict[str, str] = {}
    if isinstance(node, SelectNode):
        for item in node.items:
            if item.name is None:
                found |= written_texts(node, item, tables)
    return found


@deep
def kept_spans(sql: str, analysis: Analysis) -> tuple[Span, ...]:
    """The kept columns in the select list of a model's text: what they say of the clock is said once, when a row comes."""
    kept = {c.name.lower() for c in analysis.columns if c.kept}
    try:
        outermost = [block for block in select_blocks(sql) if block.context == Context.OUTERMOST]
    except SourceTextError:
        return ()
    if not kept or not outermost:
        return ()
    if len(outermost) > 1 or outermost[0].set_operand:
        return _kept_in_arms(sql, outermost, [c.name.lower() for c in analysis.columns], kept)
    block = outermost[0]
    named = [
        (item.span, node, (node.alias_or_name or item.span.of(sql)).lower())
        for item, node in zip(block.items, block.tree.expressions, strict=True)
    ]
    return tuple(span for span, node, name in named if name in kept and not _read_beside(block, node, name))


def _kept_in_arms(sql: str, arms: Sequence[Block], columns: Sequence[str], kept: Collection[str]) -> tuple[Span, ...]:
    """The same for a UNION ALL, whose arms give their columns by place. Nothing where a star hides places."""
    try:
        root = build(sql)
    except NotIncremental:
        return ()
    starred = any(node.is_star for arm in arms for node in arm.tree.expressions)
    if starred or not _by_place(root) or any(len(arm.items) != len(columns) for arm in arms):
        return ()
    named = (
        (arm, item, node, name)
        for arm in arms
        for item, node, name in zip(arm.items, arm.tree.expressions, columns, strict=True)
    )
    return tuple(
        item.span
        for arm, item, node, name in named
        if name in kept and not _read_beside(arm, node, (node.alias_or_name or name).lower())
    )


def _read_beside(block: Block, item: exp.Expr, name: str) -> bool:
    """Whether another part of the SELECT may read the item by its name, and with it the clock of each run, whatever is kept."""
    own = {id(part) for part in item.walk()}
    parts = block.tree.walk(prune=lambda part: isinstance(part, exp.Query) and part is not block.tree)
    return any(isinstance(c, exp.Column) and id(c) not in own and c.parts[0].name.lower() == name for c in parts)


def _by_place(node: Node) -> bool:
    return isinstance(node, SelectNode) or (node.all_ and not node.by_name and all(map(_by_place, node.arms)))


_OF_FILES = ("_metadata", "input_file_name", "input_file_block_start", "input_file_block_length")
"""What tells of the file that a row is read from, as the analysis calls it."""


@deep
def read_tree(
    analysis: Analysis, split: ClockSplit | None, clock_uses: Sequence[Span], sampled: bool = False
) -> QueryTree:
    """The tree of an analysed query. `split` and `clock_uses` say where the clock stands (None, () without one). `sampled`: that draws
    decide which rows there are is known, and taken care of. Raises NotIncremental with the reason.
    """
    for wrong, code, sentence in (
        (analysis.shape.opaque, "OPAQUE", "a part of the query cannot be seen through"),
        (
            analysis.rows_level is Level.NONDETERMINISTIC and not sampled,
            "DRAWN_ROWS",
            "a draw decides which rows there are",
        ),
    ):
        if wrong:
            raise NotIncremental(code, sentence)
    if any(name.lower() in _OF_FILES for name, *_ in analysis.functions):
        raise NotIncremental(
            "FILE_METADATA",
            "it asks which file a row is read from, which rows that are taken from among others do not know",
        )
    words = tokenize(analysis.sql)
    if any(a.text.lower() == "identifier" and b.text == "(" for a, b in pairwise(words)):
        raise NotIncremental("STRUCTURE", "IDENTIFIER(…) stands for a name")
    top = limited(analysis)
    tree = build(top.text if top is not None else analysis.sql)
    for node in selects(tree):
        if (column := by_path(node.tree)) is not None:
            raise NotIncremental(
                "STRUCTURE",
                f"{column.sql('spark')} is called by schema and table, and another table has that name; give them aliases",
            )
        if (own := may_be_of_all(node)) is not None:
            sentence = f"{own} may be an aggregate, as nothing beside it in its select list reads a column; select one there, or GROUP BY"
            raise NotIncremental("OWN_FUNCTION", sentence)
    unstable = frozenset(name.lower() for name, level, _, _ in analysis.functions if level > Level.USER)
    solved = {(p.line, p.column): p for p in (split.predicates if split else ()) if p.solved}
    windows: dict[int, Window] = {}
    spans: list[Span] = []
    for node in selects(tree):
        for piece in (*node.where, *(p for s in node.sources for p in s.on)):
            if piece.start < 0:
                continue
            found = solved.get(line_and_column(analysis.sql, piece.start))
            if found is not None:
                windows[piece.start] = Window(found.valid_from, found.valid_to)
                spans.append(Span(piece.start, piece.start + len(piece.text)))
    kept = kept_spans(analysis.sql, analysis) if clock_uses else ()
    uses = tuple(filterfalse(inside_any(kept), clock_uses))
    sql = top.text if top is not None else analysis.sql
    return QueryTree(sql, tree, unstable, windows, uses, all(map(inside_any(spans), uses)), top)
