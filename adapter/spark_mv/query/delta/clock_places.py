"""Where the clock decides something in a query: the places at which its move can change a row.

A predicate decides rows, HAVING and an aggregate decide groups, a column of the result decides itself. A column of a CTE or
subquery that is computed from the clock row by row (`datediff(current_date(), d) AS age`) decides nothing where it is
written: it is carried to the places that read it (`WHERE age <= 30`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sqlglot import exp

from spark_mv.query.delta.names import Columns, FromColumns, Place, aliases, expand, listed, output
from spark_mv.query.syntax.aggregates import aggregates, is_aggregate, of_rows
from spark_mv.query.syntax.parser import Call
from spark_mv.query.syntax.select_tree import (
    Leaf,
    Node,
    NotIncremental,
    OutItem,
    Piece,
    SelectNode,
    SetNode,
    selects,
)
from spark_mv.query.syntax.source_blocks import span_of
from spark_mv.query.syntax.source_text import Span, inside_any, line_and_column

CLAUSES = ("group", "having", "qualify")


class Part(Enum):
    """What the clock decides: which rows of FROM pass (WHERE, ON of inner joins), which partners one outer, semi- or
    anti-join finds, the keys of groups, groups by their aggregates and HAVING, values of columns and windows."""

    ROWS = "rows"
    JOIN = "join"
    KEYS = "keys"
    GROUPS = "groups"
    VALUES = "values"


@dataclass(frozen=True, eq=False)
class ClockPlace:
    """`number`: of the join. `items`: the items of the select list that count, stars that give such columns among them. `own`:
    whether one of their values is the clock's own (`datediff(current_date(), d)`), and not a condition on it: such a value
    can be another one in every row whenever the clock moves."""

    node: SelectNode
    part: Part
    number: int = 0
    items: tuple[OutItem, ...] = ()
    own: bool = False


@dataclass
class ClockPlaces:
    """`uses`: where the clock is read, in the order of the text `sql` that the tree was built from; not those in columns that are kept."""

    sql: str
    uses: tuple[Span, ...]
    tables: Columns
    _carried: dict[int, dict[str, bool]] = field(default_factory=dict)
    _scopes: dict[int, tuple[SelectNode, FromColumns]] = field(
        default_factory=dict
    )  # by id, which is its own while it lives

    def scope(self, node: SelectNode) -> FromColumns:
        """The FROM items of a SELECT."""
        if id(node) not in self._scopes:
            self._scopes[id(node)] = node, FromColumns.of(node, self.tables)
        return self._scopes[id(node)][1]

    def reads(self, node: exp.Expr) -> bool:
        """Whether an expression reads the clock itself; queries inside it are places of their own."""
        return bool(self.uses_in(node))

    def uses_in(self, node: exp.Expr) -> list[Span]:
        """Where an expression reads the clock, queries inside it left out."""
        if not self.uses:
            return []
        met = {at for span in _spans(node) for at in self._met(span)}
        if not met:
            return []
        queries = (exp.Select, exp.SetOperation)
        inner = inside_any(span_of(part) for part in node.walk() if part is not node and isinstance(part, queries))
        return [use for use in (self.uses[at] for at in sorted(met)) if not inner(use)]

    def _met(self, span: Span) -> range:
        """The positions among the uses of those that a piece of the text has a part of."""
        start = bisect_right(self.uses, span.start, key=lambda use: use.end)
        return range(start, bisect_left(self.uses, span.end, key=lambda use: use.start))

    def depends(self, node: exp.Expr, select: SelectNode) -> bool:
        """Whether an expression of a SELECT reads the clock, or a column that carries it."""
        return bool(self.uses) and (self.reads(node) or bool(self.carried_in(node, select)))

    def carried_in(self, node: exp.Expr, select: SelectNode) -> frozenset[Place]:
        """The columns in an expression of a SELECT that carry the clock, those that its subqueries read from around
        included. Raises NotIncremental where these cannot be told."""
        offered = self.offered(select)
        if not offered:
            return frozenset()
        scope = self.scope(select)
        found, complete = scope.references(node)
        names = {column for _, column in offered}
        for query in node.find_all(exp.Query):
            if _called(query, names):
                raise NotIncremental("CLOCK_ELSEWHERE", "a subquery may read a column that follows the clock")
        if not complete and any(isinstance(part, exp.Star) for part in node.walk()):
            return offered
        return found & offered

    def offered(self, select: SelectNode) -> frozenset[Place]:
        """The columns of FROM that carry the clock."""
        return self._of_from(select, self.carried) if self.uses else frozenset()

    def _of_from(self, select: SelectNode, columns: Callable[[Leaf | Node], Iterable[str]]) -> frozenset[Place]:
        pairs = zip(aliases(select), select.sources, strict=True)
        return frozenset((alias.lower(), column) for alias, source in pairs for column in columns(source.item))

    def carried(self, item: Leaf | Node) -> frozenset[str]:
        """The output columns, lower case, that are computed from the clock row by row."""
        return frozenset(self._carried_by(item))

    def _owned(self, item: Leaf | Node) -> Iterator[str]:
        """Those whose value is the clock's own (see ClockPlace)."""
        return (column for column, own in self._carried_by(item).items() if own)

    def _carried_by(self, item: Leaf | Node) -> Mapping[str, bool]:
        """The columns that carry the clock, and whether their values are the clock's own."""
        if isinstance(item, Leaf) or not self.uses:
            return {}
        if id(item) not in self._carried:
            found = self._carried[id(item)] = dict[str, bool]()
            for column, own in self._carry(item):
                found[column] = own or found.get(column, False)
        return self._carried[id(item)]

    def _carry(self, node: Node) -> Iterator[tuple[str, bool]]:
        if not isinstance(node, SelectNode):
            names = output(node, self.tables)
            for arm in node.arms if node.all_ else ():
                inner, carried = output(arm, self.tables), self._carried_by(arm)
                pairs = zip(inner if node.by_name else names, (c.lower() for c in inner), strict=True)
                yield from ((name.lower(), carried[column]) for name, column in pairs if column in carried)
            return
        if node.aggregate or node.distinct:
            return
        offered, owned = self.offered(node), self._of_from(node, self._owned)
        for item in node.items:
            if item.name is None:
                yield from ((place[1], place in owned) for place in offered & self._given(item, node))
            elif not item.node.find(exp.Window) and self.depends(item.node, node):
                yield item.name.lower(), self._own((item,), node)

    def _given(self, star: OutItem, node: SelectNode) -> frozenset[Place]:
        """The columns of FROM that a star gives, in lower case."""
        return frozenset((alias.lower(), column.lower()) for alias, column in expand(node, star, self.tables))

    # --- the places

    def everywhere(self, node: Node, shown: bool = True) -> Iterator[tuple[SelectNode, tuple[ClockPlace, ...]]]:
        """The SELECTs of a query with their places. `shown` as in `of`. Raises NotIncremental."""
        if isinstance(node, SetNode):
            for arm in node.arms:
                yield from self.everywhere(arm, shown or not node.all_)
            return
        yield node, tuple(self.of(node, shown))
        for source in node.sources:
            if not isinstance(source.item, Leaf):
                yield from self.everywhere(source.item, False)
        for query in (*node.subqueries.values(), *node.deep):
            exists = isinstance(query, SelectNode) and isinstance(query.tree.parent, exp.Exists)
            yield from self.everywhere(query, not exists)

    def shown(self, root: Node) -> Iterator[str]:
        """The columns of the result that follow the clock."""
        if isinstance(root, SetNode):
            for arm in root.arms:
                inner = set(self.shown(arm))
                pairs = zip(output(root, self.tables), output(arm, self.tables), strict=True)
                yield from (name for name, column in pairs if column in inner)
            return
        for name, by in listed(root, self.tables):
            if self.depends(by.node, root) if isinstance(by, OutItem) else by in self.offered(root):
                yield name

    def of(self, node: SelectNode, shown: bool) -> Iterator[ClockPlace]:
        """The places of one SELECT. `shown`: whether its columns decide by themselves, as those of the result do. Raises
        NotIncremental for a place at which the clock cannot be followed."""
        if not self.uses:
            return
        self._check_clauses(node)
        rows = [*node.where, *(p for s in node.sources if s.inner for p in s.on)]
        if any(self.depends(piece.node, node) for piece in rows):
            yield ClockPlace(node, Part.ROWS)
        for number, source in enumerate(node.sources):
            if not source.inner and any(self.depends(piece.node, node) for piece in source.on):
                yield ClockPlace(node, Part.JOIN, number)
        yield from self._of_items(node, shown)

    def _of_items(self, node: SelectNode, shown: bool) -> Iterator[ClockPlace]:
        items = tuple(item for item in node.items if item.name is not None and self.depends(item.node, node))
        moved = {name for name in CLAUSES if any(self.depends(part, node) for part in clause(node, name))}
        self._check_aliases(node, items)
        if not node.aggregate:
            decide = shown or node.distinct
            counted = tuple(item for item in items if decide or item.node.find(exp.Window))
            counted += tuple(self._stars(node)) if decide else ()
            if counted or "qualify" in moved:
                yield ClockPlace(node, Part.VALUES, items=counted, own=self._own(counted, node))
            return
        if node.windowed and (items or moved):
            raise NotIncremental("CLOCK_ELSEWHERE", "the clock stands in windows over groups")
        keys = tuple(item for item in items if not aggregates(item.node))
        if keys or "group" in moved:
            yield ClockPlace(node, Part.KEYS, items=keys, own=self._own(keys, node))
        groups = tuple(item for item in items if aggregates(item.node))
        if keys or "group" in moved:
            self._check_keys([*(item.node for item in groups), *clause(node, "having")], node)
        if groups or "having" in moved:
            yield ClockPlace(node, Part.GROUPS, items=groups, own=self._own(groups, node))

    def _check_clauses(self, node: SelectNode) -> None:
        """Raises where a clause that is no place reads a column that follows the clock."""
        for part in (*(node.tree.args.get("windows") or []), *node.generators):
            for column in _called(part, {column for _, column in self.carried_in(part, node)}):
                raise self.elsewhere(column_span(column))
        offered = {column for _, column in self.offered(node)}
        if any(name.lower() in offered for source in node.sources for name in source.using):
            raise NotIncremental("CLOCK_ELSEWHERE", "USING compares a column that follows the clock")

    def _check_keys(self, parts: list[exp.Expr], node: SelectNode) -> None:
        """Raises where a group's columns read a key of the group that follows the clock: at the other instant it is no key."""
        for part in parts:
            calls = [call for item in part.walk() if is_aggregate(item) and isinstance(call := item.meta["call"], Call)]
            inside = inside_any(Span(call.start, call.end) for call in calls)
            columns = _called(part, {column for _, column in self.carried_in(part, node)})
            for use in (*self.uses_in(part), *map(column_span, columns)):
                if not inside(use):
                    raise self.elsewhere(use)

    def _check_aliases(self, node: SelectNode, items: tuple[OutItem, ...]) -> None:
        """Raises where another part of the SELECT reads a column of its own select list that follows the clock, or one that
        follows it reads any column of its own select list, which a query about two instants does not have."""
        names = {str(item.name).lower() for item in items}
        scope = self.scope(node)
        others = (item for item in node.items if not isinstance(item.node, exp.Column) or item.node.name != item.name)
        given = {item.name.lower() for item in others if item.name is not None}
        for column in (column for item in items for column in item.node.find_all(exp.Column)):
            if column.parts[0].name.lower() in given and scope.resolve(column) is None:
                raise self.elsewhere(column_span(column))
        for part in (*(item.node for item in node.items), *(p for name in CLAUSES for p in clause(node, name))):
            for column in part.find_all(exp.Column):
                if column.parts[0].name.lower() in names and scope.resolve(column) is None:
                    raise self.elsewhere(column_span(column))
        for column in (c for part in clause(node, "having") for c in part.find_all(exp.Column) if not of_rows(c)):
            # outside an aggregate, the column of the select list comes first, but before keys of groups
            if column.name.lower() in given and self.carried_in(column, node):
                raise self.elsewhere(column_span(column))

    def _stars(self, node: SelectNode) -> Iterator[OutItem]:
        """The stars that give a column which follows the clock."""
        offered = self.offered(node)
        for item in node.items if offered else ():
            if item.name is None and offered & self._given(item, node):
                yield item

    def _own(self, items: Iterable[OutItem], node: SelectNode) -> bool:
        """Whether a value of the select list is the clock's own, and not a condition on it."""
        owned = self._of_from(node, self._owned)
        for item in items:
            if item.name is None:
                if owned & self._given(item, node):
                    return True
                continue
            inside = inside_any(span_of(part) for part in item.node.find_all(exp.Predicate) if "span" in part.meta)
            columns = _called(item.node, {column for _, column in owned & self.carried_in(item.node, node)})
            if not all(inside(use) for use in (*self.uses_in(item.node), *map(column_span, columns))):
                return True
        return False

    def check(self, root: Node) -> None:
        """Raises NotIncremental for a use of the clock that stands at no place that is looked at."""
        looked_at = []
        for node in selects(root):
            parts = [piece.node for piece in _pieces(node)] + [item.node for item in node.items]
            parts += [part for name in CLAUSES for part in clause(node, name)]
            looked_at += [span_of(part) for part in parts]
        inside = inside_any(looked_at)
        for use in self.uses:
            if not inside(use):
                raise self.elsewhere(use)

    def elsewhere(self, use: Span) -> NotIncremental:
        """The refusal of a use of the clock."""
        line, column = line_and_column(self.sql, use.start)
        return NotIncremental(
            "CLOCK_ELSEWHERE",
            f"`{use.of(self.sql)}` (line {line}, column {column}) stands where a move of the clock can "
            "change any row; compare a column with the clock in WHERE, or freeze the column",
        )


def clause(node: SelectNode, name: str) -> list[exp.Expr]:
    """The expressions of GROUP BY, HAVING or QUALIFY."""
    found = node.tree.args.get(name)
    if found is None:
        return []
    return list(found.expressions) if name == "group" else [found.this]


def _pieces(node: SelectNode) -> list[Piece]:
    return [*node.where, *(piece for source in node.sources for piece in source.on)]


def _spans(node: exp.Expr) -> list[Span]:
    """The place of an expression; where it has none of its own, those of its parts."""
    if "span" in node.meta:
        return [span_of(node)]
    call = node.meta.get("call")
    own = [Span(call.start, call.start + len(call.name))] if isinstance(call, Call) else []
    return own + [span for part in node.iter_expressions() for span in _spans(part)]


def _called(node: exp.Expr, names: Collection[str]) -> list[exp.Column]:
    """The columns in an expression of which some part has one of the names (lower case): fields of such columns, too."""
    return [c for c in node.find_all(exp.Column) if any(part.name.lower() in names for part in c.parts)]


def column_span(column: exp.Column) -> Span:
    """The place of a column with all its qualifiers. Raises NotIncremental."""
    first, last = column.parts[0].meta.get("start"), column.parts[-1].meta.get("end")
    if first is None or last is None:
        raise NotIncremental("STRUCTURE", f"the place of `{column.name}` in the text is not known")
    return Span(first, last + 1)
