"""Which rows of a result a change can touch: queries for the affected values of its anchor columns.

For an occurrence X of a changed table, `Q⁺` is the query with X := the changed rows, before and after; every other
changed table := its rows now and those it lost; the outer join that X is the optional side of made an inner one; what
does not decide *which* anchors exist left out (other columns, HAVING, QUALIFY, predicates on the clock, on AI answers
and on columns that an outer join may have emptied, see `joined`). Then every row that differs between the old and the new
result has its anchor in Q⁺'s result, because the row has a derivation in one of the two states that uses a changed row,
and Q⁺ has that derivation too. An anchor is a column of each side's own rows: never a function of other rows (aggregates,
window functions, `session_window`) nor of whatever columns there are (`hash(*)`), because Q⁺ has other ones. For
the clock, the changed rows are those that pass at one of the two instants only (`instants`). This is the delta rule of counting-free
incremental view maintenance (Gupta, Mumick and Subrahmanian 1993, DRed's over-estimate; Larson and Zhou 2007 for outer
joins), with affected keys recomputed instead of derivations counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from spark_mv.query.delta.anchors import Anchors
from spark_mv.query.delta.clock_places import ClockPlace, ClockPlaces, Part
from spark_mv.query.delta.column_types import ColumnTypes
from spark_mv.query.delta.expressions import shortened
from spark_mv.query.delta.idle_joins import Asked, asked
from spark_mv.query.delta.instants import Instants, verbatim
from spark_mv.query.delta.joined import FromItem, Joined, JoinedItem, put_together
from spark_mv.query.delta.names import FromColumns, Place, aliases, is_whole_row, output
from spark_mv.query.delta.outer import before_in, is_tied, outer_columns, shown_query, with_outer
from spark_mv.query.delta.rendered import Rendered, united
from spark_mv.query.delta.strict import needed
from spark_mv.query.delta.tables import Move, Tables, Window
from spark_mv.query.syntax.select_tree import (
    Leaf,
    Node,
    NotIncremental,
    Piece,
    SelectNode,
    SetNode,
    call_of,
    children,
    quoted,
    reads,
    selects,
    subquery_texts,
)

__all__ = ["Affected", "Focus", "Move", "Rendered", "Tables", "Window"]

Focus = Leaf | ClockPlace


_MOST_SELECTS = 1000
"""What the queries about changes may have together: more costs more to plan than a recompute costs to run."""


@dataclass
class Affected:
    """`unstable`: names of functions whose value may differ between evaluations, the clock and AI included, and of
    those about which it is not known whether they aggregate. `move` is None when the clock moved no row: then the predicates
    at the offsets `solved` are true for the same rows as before. `by_absence`: where a changed table is the optional side of a join, rows
    without a partner are looked for beside those with one (see joined), which finds more columns in more queries."""

    tables: Tables
    unstable: frozenset[str]
    clock: ClockPlaces
    move: Move | None = None
    solved: frozenset[int] = frozenset()
    by_absence: bool = False
    read: Counter[str] = field(default_factory=Counter)
    """How often the queries read each table (lower case) as a whole."""
    _static: dict[int, bool] = field(default_factory=dict)
    _places: dict[int, tuple[ClockPlace, ...]] = field(default_factory=dict)
    _path: frozenset[int] = frozenset()
    _made: int = 0

    # --- what to focus on

    def focuses(self, node: Node, path: tuple[int, ...] = ()) -> Iterator[tuple[Focus, frozenset[int]]]:
        """Every place of the query at which something changed, and the ids of all that contains it, itself included."""
        path = (*path, id(node))
        yield from ((place, frozenset(path)) for place in self._places.get(id(node), ()))
        for child in children(node):
            if isinstance(child, Leaf):
                if self.tables.changed(child):
                    yield child, frozenset((*path, id(child)))
            elif not self.static(child):
                yield from self.focuses(child, path)

    def static(self, node: Leaf | Node) -> bool:
        """Whether nothing below has changed."""
        if isinstance(node, Leaf):
            return not self.tables.changed(node)
        if id(node) not in self._static:
            below = all(self.static(child) for child in children(node))
            self._static[id(node)] = below and not (self._places.get(id(node)) or self._carries(node))
        return self._static[id(node)]

    def _carries(self, node: Node) -> bool:
        return self.move is not None and bool(self.clock.carried(node))

    # --- the queries

    def queries(self, node: Node, wanted: Collection[str] | None = None) -> list[Rendered]:
        """One query per place of change, each with the output columns that can serve as anchors, or those of them that are
        `wanted` (lower case). Raises NotIncremental."""
        found = []
        if self.move is not None:
            self.clock.check(node)
            self._places = {id(select): places for select, places in self.clock.everywhere(node)}
        for focus, path in self.focuses(node):
            self._path = path
            found.append(self._node(node, focus, wanted))
        return found

    def _node(self, node: Node, focus: Focus | None, wanted: Collection[str] | None = None) -> Rendered:
        if isinstance(node, SelectNode):
            return self._select(node, focus, wanted=wanted)
        names = output(node, self.tables.columns)
        if node.by_name:
            raise NotIncremental("UNION_BY_NAME", "UNION BY NAME is not understood")
        arms = [arm for arm in node.arms if focus is not None and self._contains(arm)] or list(node.arms)
        rendered = [self._node(arm, focus) for arm in arms]
        if len(arms) < len(node.arms) and not self.types.alike(node):
            rendered += [self._empty(arm) for arm in node.arms if not self._contains(arm)]
        return united(names, rendered)

    def _empty(self, arm: Node) -> Rendered:
        """No row of an arm in which nothing is followed: a column of a set operation has the common type of all arms, and a text made of it
        is another one in another type."""
        if isinstance(arm, SetNode):
            if arm.by_name:
                raise NotIncremental("UNION_BY_NAME", "UNION BY NAME is not understood")
            return united(output(arm, self.tables.columns), [self._empty(one) for one in arm.arms])
        names = [f"__mv_c{k}" for k in range(len(output(arm, self.tables.columns)))]
        text = f"SELECT * FROM (\n{verbatim(arm, self.tables)}\n) AS `__mv_e`({', '.join(names)}) WHERE false"
        return Rendered(text, list(names))

    def _select(
        self,
        node: SelectNode,
        focus: Focus | None,
        exists: SelectNode | None = None,
        wanted: Collection[str] | None = None,
    ) -> Rendered:
        """`exists`: the SELECT of an EXISTS that `node` was made of. `wanted`: the columns that matter; all of them if None."""
        self._made += 1
        if self._made > _MOST_SELECTS:
            sentence = (
                f"following the changes would take more than {_MOST_SELECTS:,} SELECTs, each use of a CTE counted"
            )
            raise NotIncremental("TOO_MANY_READS", sentence)
        scope = self.clock.scope(node)
        self.types.check_using(node, scope)
        shown = shown_query(node, self.static, self._contains, isinstance(focus, Leaf), self.tables.columns)
        place = focus if isinstance(focus, ClockPlace) and focus.node is (exists or node) else None
        if place is not None and (place.part is not Part.ROWS or self._instants.exact(node)):
            return self._at_place(node, place, scope)
        outweighs = self.tables.outweighs if isinstance(focus, Leaf) else None
        needs = asked(node, scope, self.clock.tables, wanted, self._contains, outweighs)
        before, selects_before = Counter(self.read), self._made
        items = list(self._items(node, focus, needs))

        def made(absent: bool | None) -> Rendered:
            joined = put_together(items, scope, self.anchors.is_unstable, self.by_absence, absent)
            for piece in node.where:
                joined.prove(
                    needed(piece.node, scope)
                )  # true for every row that is looked for, whatever becomes of its text
            self._check_laterals(node, scope, joined)
            conditions = [text for piece in node.where if (text := self._where(node, piece, focus, scope, joined))]
            if place is not None:
                conditions.append(self._crossing(node, scope, joined))
            if shown is not None and isinstance(focus, Leaf):
                if not joined.believed(outer_columns(shown, scope, self.tables.columns)):
                    raise NotIncremental(
                        "SUBQUERY", "a subquery of the select list uses a column that an outer join may empty"
                    )
                conditions.append(self._tied(shown, focus))
            return self._project(node, scope, joined, conditions, focus, wanted)

        if not self.by_absence or exists is not None or not any(i.inside and i.source.kind == "LEFT" for i in items):
            return made(None)
        found, both = _either(made, wanted)
        if both:  # what the items read is read twice
            self.read.update(self.read - before)
            self._made += 1 + self._made - selects_before
        return found

    # --- where the clock moves

    @cached_property
    def anchors(self) -> Anchors:
        """What can be said of the output columns."""
        return Anchors(self.unstable, self.clock, self.move is not None, self.types)

    @cached_property
    def types(self) -> ColumnTypes:
        return ColumnTypes(self.tables.types, self.tables.columns, self.clock.scope)

    @cached_property
    def _instants(self) -> Instants:
        assert self.move is not None
        return Instants(self.tables, self.clock, self.move, self.unstable)

    def _at_place(self, node: SelectNode, place: ClockPlace, scope: FromColumns) -> Rendered:
        """What a move of the clock changes at one place, of the rows that are there now."""
        instants = self._instants
        self.read.update(reads(node))
        if place.node is not node and place.part not in (Part.ROWS, Part.JOIN):
            raise NotIncremental("SUBQUERY", "an EXISTS over groups that the clock decides")
        if place.part in (Part.GROUPS, Part.VALUES):
            everything = Joined(columns={a.lower(): columns for a, columns in scope.sources.items()})
            entries, columns = self.anchors.listed(node, scope, everything, True)
            if place.part is Part.VALUES:
                text = instants.values(node, place.items, entries)
            else:
                text = instants.groups(node, place.items)
            listed = ", ".join(quoted(name) for _, name in entries) or "1 AS `__mv_none`"
            return Rendered(f"SELECT {listed} FROM (\n{text}\n)", columns)
        joined, conditions = instants.rows(node, place)
        if place.part is Part.JOIN:
            self._check_laterals(node, scope, joined)
        return self._project(node, scope, joined, conditions, place)

    # --- FROM

    def _items(self, node: SelectNode, focus: Focus | None, needs: Asked | None) -> Iterator[FromItem]:
        for number, (alias, source) in enumerate(zip(aliases(node), node.sources, strict=True)):
            if needs is not None and number in needs.idle:
                continue
            inside = focus is not None and self._contains(source.item)
            item = self._item(source.item, focus if inside else None, needs.of(alias) if needs is not None else None)
            yield FromItem(alias, source, item, inside)

    def _item(self, item: Leaf | Node, focus: Focus | None, wanted: Collection[str] | None) -> JoinedItem:
        if isinstance(item, Leaf):
            columns = frozenset(c.lower() for c in output(item, self.tables.columns))
            if item is focus:
                return JoinedItem(self.tables.changes_text(item), columns, False)
            self.read.update(reads(item))
            changed = self.tables.changed(item)
            return JoinedItem(
                self.tables.now_and_before(item) if changed else self.tables.now(item), columns, not changed
            )
        if self.static(item) and all(self._steady(select) for select in selects(item)):
            text = verbatim(item, self.tables)
            self.read.update(reads(item))
            return JoinedItem(f"(\n{text}\n)", frozenset(c.lower() for c in output(item, self.tables.columns)), True)
        rendered = self._node(item, focus, wanted)
        return JoinedItem(f"(\n{rendered.text}\n)", frozenset(c.lower() for c in rendered.columns if c), False)

    def _steady(self, node: SelectNode) -> bool:
        """Whether a SELECT over unchanged tables gives the same rows as before: the clock stands in solved predicates only,
        and no row crossed a bound of theirs."""
        pieces = (*node.where, *(p for s in node.sources for p in s.on))
        solved = [p.node for p in pieces if self.move is None and p.start in self.solved]
        if self.anchors.moves(node.tree):
            return False
        return sum(map(self._unstable_calls, solved)) == self._unstable_calls(node.tree)

    def _unstable_calls(self, node: exp.Expr) -> int:
        inside = node.walk(prune=lambda n: isinstance(n, exp.Query) and n is not node)
        return sum(call_of(part) in self.unstable for part in inside)

    def _check_laterals(self, node: SelectNode, scope: FromColumns, joined: Joined) -> None:
        """LATERAL VIEW stays as it is, and makes rows of what it reads."""
        for lateral in node.generators:
            used, _ = scope.references(lateral.this)
            if is_whole_row(lateral.this) or self.anchors.is_unstable(lateral.this) or not joined.believed(used):
                raise NotIncremental(
                    "LATERAL_VIEW", f"`{shortened(lateral.sql('spark'))}` reads what cannot be followed"
                )

    # --- WHERE

    def _where(
        self, node: SelectNode, piece: Piece, focus: Focus | None, scope: FromColumns, joined: Joined
    ) -> str | None:
        """The conjunct as far as it decides which anchors a change touches; None where it is left out."""
        texts = subquery_texts(piece.text)
        focused = next((t for t in texts if focus is not None and self._contains(node.subqueries[t])), None)
        if focused is not None and focus is not None:
            return self._subquery(node, piece, focused, focus, scope, joined)
        if self.anchors.is_unstable(piece.node) or is_whole_row(piece.node):
            return None
        used, complete = scope.references(piece.node)
        if not joined.believed(used):
            return None
        if texts:
            if not all(self.static(node.subqueries[t]) for t in texts):
                return None
            if not joined.believed(self._outer(node, texts, scope)):
                return None
            try:
                text = f"({self.tables.pinned(piece.text)})"
                self.read.update(name for t in texts for name in reads(node.subqueries[t]).elements())
                return text
            except NotIncremental:
                return None  # it reads a CTE; leaving it out finds more rows, never fewer
        return f"({piece.text})" if complete or node.laterals else None

    def _outer(self, node: SelectNode, texts: Iterable[str], scope: FromColumns) -> set[Place]:
        return {c for t in texts for c in outer_columns(node.subqueries[t], scope, self.tables.columns)}

    def _subquery(
        self, node: SelectNode, piece: Piece, text: str, focus: Focus, scope: FromColumns, joined: Joined
    ) -> str:
        """EXISTS, IN and what an equality ties to its row: only rows for which a changed row is among those found can change."""
        query = node.subqueries[text]
        if not isinstance(query, SelectNode):
            raise NotIncremental("SUBQUERY", f"`{shortened(piece.text)}`: a set operation in a subquery")
        condition = piece.node.unnest()
        while isinstance(condition, exp.Not) and isinstance(condition.this.unnest(), exp.Exists):
            condition = condition.this.unnest()
        outer = outer_columns(query, scope, self.tables.columns)
        used, complete = scope.references(piece.node)
        if not joined.believed(outer | used) or not (complete or node.laterals):
            raise NotIncremental("SUBQUERY", f"`{shortened(piece.text)}` uses a column that an outer join may empty")
        outside = piece.node.walk(prune=lambda n: isinstance(n, exp.Query))
        if any(call_of(part) in self.unstable for part in outside) or self.anchors.moves(piece.node):
            raise NotIncremental(
                "SUBQUERY", f"`{shortened(piece.text)}` compares what no query about changes may evaluate"
            )
        if isinstance(condition, exp.Exists):
            if query.aggregate and not query.grouped:
                raise NotIncremental("SUBQUERY", f"`{shortened(piece.text)}`: an aggregate in EXISTS")
            inner = self._select(with_outer(query), focus, query)
            return f"EXISTS (\n{inner.text}\n)"
        if isinstance(condition, exp.In) and condition.args.get("query") is not None and not outer:
            inner = self._select(query, focus)
            if len(inner.columns) == 1 and inner.columns[0]:
                left = before_in(piece.text, text)
                if left is not None:
                    return f"{left.lstrip('(') if piece.node is not condition else left} IN (\n{inner.text}\n)"
        if isinstance(focus, Leaf) and is_tied(query, self.tables.columns):
            return self._tied(query, focus)
        raise NotIncremental(
            "SUBQUERY",
            f"`{shortened(piece.text)}`: of subqueries, only EXISTS, NOT EXISTS, IN and those with an equality to their row in WHERE can "
            "follow a change",
        )

    def _tied(self, query: SelectNode, focus: Leaf) -> str:
        """Condition of the rows for which a subquery reads a changed row: whatever is made of what it gives, without one it is as it was."""
        return f"EXISTS (\n{self._select(replace(with_outer(query), aggregate=False, grouped=False), focus, query).text}\n)"

    def _crossing(self, node: SelectNode, scope: FromColumns, joined: Joined) -> str:
        """Rows that pass at one of the two instants only, where not all that the SELECT reads can be evaluated once more."""
        pieces = [*node.where, *(p for s in node.sources for p in s.on)]
        moving = [piece for piece in pieces if self.clock.depends(piece.node, node)]
        for piece in moving:
            used, complete = scope.references(piece.node)
            if not (complete or node.laterals) or not joined.believed(used):
                raise NotIncremental(
                    "WINDOW_COLUMN", f"`{shortened(piece.text)}` stands on a column that cannot be followed"
                )
        return self._instants.differs([(piece.text, piece.node) for piece in moving], node, {})

    # --- the select list

    def _project(
        self,
        node: SelectNode,
        scope: FromColumns,
        joined: Joined,
        conditions: list[str],
        focus: Focus | None,
        wanted: Collection[str] | None = None,
    ) -> Rendered:
        entries, columns = self.anchors.listed(node, scope, joined, focus is not None, wanted)
        if not node.sources:
            raise NotIncremental("STRUCTURE", "a SELECT without FROM beside tables that changed")
        listed = ", ".join(f"{text} AS {quoted(name)}" for text, name in entries) or "1 AS `__mv_none`"
        unique = "DISTINCT " if node.aggregate or node.windowed or node.distinct else ""
        where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
        laterals = f"\n{node.laterals}" if node.laterals else ""
        return Rendered(f"SELECT {unique}{listed}\nFROM {' '.join(joined.text)}{laterals}{where}", columns)

    def _contains(self, item: Leaf | Node) -> bool:
        """Whether the place that is followed is here."""
        return id(item) in self._path


def _either(made: Callable[[bool | None], Rendered], wanted: Collection[str] | None) -> tuple[Rendered, bool]:
    """The rows with a changed partner and those without one, where both together show more `wanted` columns; and whether they do. `made`: the
    query for one kind of them, or for either (None)."""
    try:
        each = made(False), made(True)
    except NotIncremental:
        return made(None), False
    both = united([name or "" for name in each[0].columns], each)
    try:
        plain = made(None)
    except NotIncremental:
        return both, True
    return (both, True) if both.gains(plain, wanted) else (plain, False)
