"""The rows, groups and values that a move of the clock changes: a query's own expressions, evaluated at both instants.

A predicate p(row, now) need not be solved for the clock: it is asked at the instant of the last run and at this run's, both
as literals, and rows for which the answers differ came or went. The same holds for an aggregate of a group and a column of
the result. The steps are: first the sources change, at the old instant; then the clock moves at one place of the query
after the other, those below first. So all that a place reads is the query's own text over the tables as they are now, and a
column that is computed from the clock below it is handed up twice, once for each instant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from spark_mv.query.delta.clock_places import ClockPlace, ClockPlaces, Part, clause, column_span
from spark_mv.query.delta.expressions import has_query
from spark_mv.query.delta.joined import Joined, JoinedItem, Kept, kept_on
from spark_mv.query.delta.names import Place, aliases, output, star_texts
from spark_mv.query.delta.strict import needed
from spark_mv.query.delta.tables import Move, Tables
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_move import is_comparison, pinned_condition
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.syntax.aggregates import generates
from spark_mv.query.syntax.select_tree import (
    Leaf,
    Node,
    NotIncremental,
    OutItem,
    SelectNode,
    SetNode,
    calls,
    quoted,
    selects,
    subquery_spans,
)
from spark_mv.query.syntax.source_blocks import span_of
from spark_mv.query.syntax.source_text import Edit, apply_edits

Pairs = Mapping[Place, tuple[str, str]]
"""A column that carries the clock → its value at the last run's instant and at this one's, as texts."""


@dataclass
class Instants:
    """Texts of a query's parts as they are now, and at two instants. `unstable` as in Affected."""

    tables: Tables
    places: ClockPlaces
    move: Move
    unstable: frozenset[str]
    _made: int = field(default=0)

    # --- as they are now

    def exact(self, node: SelectNode) -> bool:
        """Whether all that the SELECT reads can be evaluated once more: no draw, no AI call, no order of rows decides it."""
        below = [s for source in node.sources if not isinstance(source.item, Leaf) for s in selects(source.item)]
        return not any(self._draws(select.tree) for select in below)

    def _draws(self, node: exp.Expr) -> bool:
        return draws(node, self.unstable)

    def from_(self, node: SelectNode, rows: bool = False, turning: int | None = None) -> tuple[Joined, Pairs]:
        """FROM of a SELECT. With `rows`, without what the clock decides in ON of inner joins; of the join `turning`, the
        pairs of rows that are partners at one of the two instants only."""
        joined, pairs, earlier, left_out = Joined(), {}, False, False
        for number, (alias, source) in enumerate(zip(aliases(node), node.sources, strict=True)):
            before = dict(joined.columns)
            text, columns, carried = self._item(source.item)
            own = {
                column: (f"{quoted(alias)}.{was}", f"{quoted(alias)}.{now}") for column, (was, now) in carried.items()
            }
            pairs.update({(alias.lower(), column): texts for column, texts in own.items()})
            joined.columns[alias.lower()] = columns
            moving = [piece for piece in source.on if self.places.depends(piece.node, node)]
            outer = not source.inner
            if left_out and source.fills_left:
                raise NotIncremental("CLOCK_ELSEWHERE", f"the clock stands in ON before a {source.kind} JOIN")
            stay = [piece for piece in source.on if piece not in moving or not (rows or number == turning)]
            left_out = left_out or (len(stay) < len(source.on) and not outer)
            texts = [f"({piece.text})" for piece in (source.on if outer and number != turning else stay)]
            if any(has_query(piece.node) for piece in source.on):
                raise NotIncremental("SUBQUERY", "a subquery in ON")
            if number == turning:
                if source.fills_left:
                    raise NotIncremental("CLOCK_ELSEWHERE", f"the clock decides the partners of a {source.kind} JOIN")
                texts.append(self.differs([(p.text, p.node) for p in moving], node, pairs))
            if earlier:
                # the partner is there at one of the two instants: what follows sees NULLs at the other, and moves later
                kept = kept_on(source, before, self.places.scope(node), joined, lambda on: self._moves(on, node))
            elif source.on:
                kept = Kept(tuple(texts) or ("true",), there=True)
            else:
                kept = Kept(using=source.using, there=bool(source.using))
            joined.add(alias, JoinedItem(text, columns, True), source.kind or "INNER", kept, number == turning, earlier)
            earlier = earlier or number == turning
        return joined, pairs

    def _moves(self, condition: exp.Expr, node: SelectNode) -> bool:
        """Whether a condition may be another one at the other instant, or the next time."""
        return self.places.depends(condition, node) or self._draws(condition)

    def _item(self, item: Leaf | Node) -> tuple[str, frozenset[str], dict[str, tuple[str, str]]]:
        """A FROM item, its columns, and the names of the pairs of those that carry the clock."""
        columns = frozenset(c.lower() for c in output(item, self.tables.columns))
        if isinstance(item, Leaf):
            return self.tables.now(item), columns, {}
        if not self.places.carried(item):
            return f"(\n{verbatim(item, self.tables)}\n)", columns, {}
        names = output(item, self.tables.columns)
        carried: dict[str, tuple[str, str]] = {}
        for name in sorted({name.lower() for name in names} & self.places.carried(item)):
            self._made += 1
            carried[name] = (f"`__mv_was_{self._made}`", f"`__mv_is_{self._made}`")
        text = "\nUNION ALL\n".join(self._arm(arm, names, carried) for arm in _arms(item))
        return f"(\n{text}\n)", columns, carried

    def _arm(self, arm: SelectNode, names: Sequence[str], carried: Mapping[str, tuple[str, str]]) -> str:
        """A SELECT with its output columns called `names`, and both values of those that carry the clock, here or in another
        arm of UNION ALL."""
        joined, below = self.from_(arm)
        listed, left = [], dict(carried)
        for (text, own, node), name in zip(self.entries(arm), names, strict=True):
            listed.append(f"{text} AS {quoted(name)}")
            pair = left.pop(name.lower(), None)
            if pair is None:
                continue
            both = (text, text)
            if own.lower() in self.places.carried(arm):
                both = self._both(text, node, arm, below) if node is not None else below[_place(text, own, arm, self)]
            listed += [f"{value} AS {alias}" for value, alias in zip(both, pair, strict=True)]
        windows = f"{self._clause(arm, 'WINDOW')}{self._clause(arm, 'QUALIFY')}"
        return f"SELECT {', '.join(listed)}\n{self._source(arm, joined)}\n{windows}"

    def entries(self, node: SelectNode) -> Iterable[tuple[str, str, exp.Expr | None]]:
        """The select list, stars spelled out: text, name, and the expression (None for a column of a star)."""
        for item in node.items:
            if item.name is None:
                for _, column, text in star_texts(node, item, self.tables.columns):
                    yield text, column, None
            else:
                yield item.text, item.name, item.node

    def conditions(self, node: SelectNode, rows: bool = False) -> list[str]:
        """The conjuncts of WHERE; with `rows`, without those that the clock or a draw decides."""
        found = []
        for piece in node.where:
            if rows and (self.places.depends(piece.node, node) or self._draws(piece.node)):
                continue
            if self._draws(piece.node):
                raise NotIncremental("DRAWN_ROWS", f"`{piece.text}` is no condition to evaluate once more")
            spans = subquery_spans(piece.text)
            now = [Edit(s.start, s.end, verbatim(node.subqueries[s.of(piece.text)], self.tables)) for s in spans]
            found.append(f"({apply_edits(piece.text, now)})")
        return found

    # --- at two instants

    def differs(self, conditions: Sequence[tuple[str, exp.Expr]], node: SelectNode, pairs: Pairs) -> str:
        """Condition: the conditions hold together at one of the two instants only."""
        sides = [self._both(text, tree, node, pairs) for text, tree in conditions]
        was, now = (" AND ".join(f"({side[k]})" for side in sides) for k in (0, 1))
        solved = all(span_of(tree).start in self.move.windows and is_comparison(tree) for _, tree in conditions)
        return truths_differ(was, now, solved)

    def changes(self, items: Iterable[OutItem], node: SelectNode, pairs: Pairs) -> list[str]:
        """Conditions: a value is another one at the other instant."""
        both = (self._both(item.text, item.node, node, pairs) for item in items)
        return [f"NOT (({was}) <=> ({now}))" for was, now in both]

    def _both(self, text: str, tree: exp.Expr, node: SelectNode, pairs: Pairs) -> tuple[str, str]:
        if self._draws(tree) or has_query(tree) or generates(tree):
            raise NotIncremental("CLOCK_ELSEWHERE", f"`{text}` cannot be evaluated at two instants")
        return self._at(text, tree, node, pairs, 0, self.move.before), self._at(
            text, tree, node, pairs, 1, self.move.now
        )

    def _shown(self, item: OutItem, node: SelectNode, pairs: Pairs) -> Iterator[tuple[str, str]]:
        """What an item of the select list gives at both instants; of a star, its columns that carry the clock."""
        if item.name is not None:
            yield self._both(item.text, item.node, node, pairs)
            return
        for alias, column, _ in star_texts(node, item, self.tables.columns):
            if (place := (alias.lower(), column.lower())) in pairs:
                yield pairs[place]

    def _at(self, text: str, tree: exp.Expr, node: SelectNode, pairs: Pairs, side: int, pins: Pins) -> str:
        carried = self.places.carried_in(tree, node)
        edits: dict[int, Edit] = {}
        if carried:
            scope, start = self.places.scope(node), span_of(tree).start
            for column in tree.find_all(exp.Column):
                place = scope.resolve(column)
                if place is None or place not in carried:
                    continue
                if place not in pairs or scope.whole(column) is None:
                    raise NotIncremental("CLOCK_ELSEWHERE", f"`{text}` reads a column that cannot be followed")
                span = column_span(column)
                edits[span.start] = Edit(span.start - start, span.end - start, pairs[place][side])
        return pinned_condition(apply_edits(text, list(edits.values())), pins)

    # --- rows, groups and values

    def rows(self, node: SelectNode, place: ClockPlace) -> tuple[Joined, list[str]]:
        """FROM and the conditions of the rows that pass, are joined, or are grouped in another way at the other instant."""
        rows = place.part is not Part.KEYS
        if place.part is Part.JOIN:
            return self._partners(node, place.number)
        joined, pairs = self.from_(node, rows)
        conditions = self.conditions(node, rows)
        if place.part is Part.ROWS:
            pieces = [*node.where, *(p for s in node.sources if s.inner for p in s.on)]
            moving = [(p.text, p.node) for p in pieces if self.places.depends(p.node, node)]
            conditions.append(self.differs(moving, node, pairs))
        if place.part is Part.KEYS:
            group = [OutItem(span_of(part).of(node.whole), "", part, -1, -1) for part in clause(node, "group")]
            keys = [*place.items, *(item for item in group if self.places.depends(item.node, node))]
            conditions.append(f"({' OR '.join(self.changes(keys, node, pairs))})")
        return joined, conditions

    def _partners(self, node: SelectNode, number: int) -> tuple[Joined, list[str]]:
        """FROM with the pairs of rows that are partners at one of the two instants only, and the conditions of WHERE that do
        not read the partner, which is not there at the other: what is left out finds more rows, never fewer."""
        joined, _ = self.from_(node, True, number)
        scope, conditions = self.places.scope(node), []
        for piece in node.where:
            joined.prove(needed(piece.node, scope))
        for piece in node.where:
            used, complete = scope.references(piece.node)
            if complete and joined.believed(used) and not has_query(piece.node) and not self._moves(piece.node, node):
                conditions.append(f"({piece.text})")
        return joined, conditions

    def groups(self, node: SelectNode, items: Sequence[OutItem]) -> str:
        """The rows of a grouped SELECT, with all its columns, of the groups in which an aggregate or HAVING differs."""
        joined, pairs = self.from_(node)
        tests = self.changes(items, node, pairs)
        having = [(span_of(part).of(node.whole), part) for part in clause(node, "having")]
        if any(self.places.depends(part, node) for _, part in having):
            tests.append(self.differs(having, node, pairs))
        listed = ", ".join(f"{text} AS {quoted(name)}" for text, name, _ in self.entries(node))
        group = self._clause(node, "GROUP BY")
        having_text = f"\nHAVING {' OR '.join(tests)}"
        return f"SELECT {listed}\n{self._source(node, joined)}\n{group}{having_text}"

    def values(self, node: SelectNode, items: Sequence[OutItem], usable: Sequence[tuple[str, str]]) -> str:
        """The `usable` columns (text, name) of the rows of a SELECT in which one of the items, or QUALIFY, differs."""
        joined, pairs = self.from_(node)
        both = [both for item in items for both in self._shown(item, node, pairs)]
        both += [
            self._both(span_of(p).of(node.whole), p, node, pairs)
            for p in clause(node, "qualify")
            if self.places.depends(p, node)
        ]
        listed = [f"{text} AS {quoted(name)}" for text, name in usable]
        tests = []
        for number, (was, now) in enumerate(both):
            listed += [f"{was} AS `__mv_v{number}`", f"{now} AS `__mv_w{number}`"]
            tests.append(f"NOT (`__mv_v{number}` <=> `__mv_w{number}`)")
        text = f"SELECT {', '.join(listed)}\n{self._source(node, joined)}\n{self._clause(node, 'WINDOW')}"
        return f"SELECT * FROM (\n{text}\n) WHERE {' OR '.join(tests)}"

    def _source(self, node: SelectNode, joined: Joined) -> str:
        laterals = f"\n{node.laterals}" if node.laterals.strip() else ""
        return f"{_from(joined)}{laterals}{_where(self.conditions(node))}"

    def _clause(self, node: SelectNode, word: str) -> str:
        parts = node.tree.meta["select"].clauses
        return "".join(node.whole[start:end] for name, start, end in parts if name == word)


def _arms(item: Node) -> Iterator[SelectNode]:
    """The SELECTs of UNION ALL. Raises NotIncremental for other set operations."""
    if isinstance(item, SelectNode):
        yield item
        return
    if not item.all_ or item.by_name:
        raise NotIncremental("CLOCK_ELSEWHERE", "a column that follows the clock is handed through a set operation")
    for arm in item.arms:
        yield from _arms(arm)


def verbatim(node: Node, tables: Tables) -> str:
    """A query as it is now, whole, with the CTEs that it sees. Raises NotIncremental."""
    if isinstance(node, SetNode):
        if not node.all_ or node.by_name:
            raise NotIncremental("SET_OPERATION", "a set operation inside another query")
        return "\nUNION ALL\n".join(f"SELECT * FROM (\n{verbatim(arm, tables)}\n)" for arm in node.arms)
    return tables.pinned(node.head + node.text)


def draws(node: exp.Expr, unstable: Collection[str]) -> bool:
    """Whether an expression calls a function that may give another value the next time, the clock's aside."""
    return any(name in unstable and level_of(name) is not Level.COMMAND for name in calls(node))


def truths_differ(was: str, now: str, comparisons: bool) -> str:
    """Condition: one of two conditions is true and the other is not. `comparisons`: both are NULL for the same rows, as
    solved comparisons are, so that NOT tells where they are not true, in words that leave files unread."""
    if comparisons:
        return f"((({was}) AND NOT ({now})) OR (({now}) AND NOT ({was})))"
    return f"(coalesce(({was}), false) <> coalesce(({now}), false))"


def _place(text: str, name: str, node: SelectNode, instants: Instants) -> Place:
    """Where a column of a star comes from."""
    for item in node.items:
        if item.name is None:
            for alias, column, written in star_texts(node, item, instants.tables.columns):
                if written == text and column == name:
                    return alias.lower(), column.lower()
    raise NotIncremental("STRUCTURE", f"{name} of a star is not found")


def _from(joined: Joined) -> str:
    return f"FROM {' '.join(joined.text)}" if joined.text else ""


def _where(conditions: Sequence[str]) -> str:
    return f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
