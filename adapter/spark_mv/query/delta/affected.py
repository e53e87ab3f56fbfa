"""Which rows of a result a change can touch: queries for the affected values of its anchor columns.

For an occurrence X of a changed table, `Q⁺` is the query with X := the changed rows, before and after; every other
changed table := its rows now and those it lost; the outer join that X is the optional side of made an inner one; what
does not decide *which* anchors exist left out (other columns, HAVING, QUALIFY, predicates on the clock, on AI answers
and on optional columns). Then every row that differs between the old and the new result has its anchor in Q⁺'s result,
because the row has a derivation in one of the two states that uses a changed row, and Q⁺ has that derivation too. For
the clock, the changed rows are those with a bound in the time that passed. This is the delta rule of counting-free
incremental view maintenance (Gupta, Mumick and Subrahmanian 1993, DRed's over-estimate; Larson and Zhou 2007 for outer
joins), with affected keys recomputed instead of derivations counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp

from spark_mv.query.delta.names import Columns, Scope, expand, output
from spark_mv.query.rewrite.clock_move import Between, truth_differs
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.syntax.aggregates import aggregates
from spark_mv.query.syntax.select_tree import (
    Leaf,
    Node,
    NotIncremental,
    OutItem,
    Piece,
    SelectNode,
    SetNode,
    Source,
    calls,
    children,
    quoted,
    selects,
    subquery_texts,
)

Focus = Leaf | SelectNode


class Tables(Protocol):
    """The texts that stand for a table. Each is a FROM item without an alias."""

    @property
    def columns(self) -> Columns: ...
    def changed(self, leaf: Leaf) -> bool: ...
    def now(self, leaf: Leaf) -> str: ...
    def changes_text(self, leaf: Leaf) -> str: ...
    def now_and_before(self, leaf: Leaf) -> str: ...
    def pinned(self, sql: str) -> str: ...


@dataclass(frozen=True)
class Window:
    """Bounds of one predicate on the clock (TIMESTAMP expressions, None = unbounded)."""

    valid_from: str | None
    valid_to: str | None


@dataclass(frozen=True)
class Move:
    """The clock moved from `before` to `now`. `windows`: offset of a conjunct → its bounds."""

    windows: Mapping[int, Window]
    before: Pins
    now: Pins

    @property
    def between(self) -> Between:
        return Between.of(self.now, self.before.as_of)


@dataclass
class Rendered:
    """A query's text with the output columns that it still has: position and name."""

    text: str
    columns: list[str | None]  # by position; None where the column was left out


@dataclass
class _Joined:
    """FROM while it is put together: per alias the columns that are there, and those that can be relied on."""

    text: list[str] = field(default_factory=list)
    present: dict[str, frozenset[str]] = field(default_factory=dict)
    reliable: dict[str, frozenset[str]] = field(default_factory=dict)


@dataclass
class Affected:
    """`unstable`: names of functions whose value may differ between evaluations, the clock and AI included, and of
    those about which it is not known whether they aggregate. `move` is None when the clock moved no row."""

    tables: Tables
    unstable: frozenset[str]
    move: Move | None = None

    # --- what to focus on

    def focuses(self, node: Node) -> Iterator[Focus]:
        """Every place of the query at which something changed."""
        if isinstance(node, SelectNode) and self._clocked(node):
            yield node
        for child in children(node):
            if isinstance(child, Leaf):
                if self.tables.changed(child):
                    yield child
            else:
                yield from self.focuses(child)

    def static(self, node: Leaf | Node) -> bool:
        """Whether nothing below has changed."""
        if isinstance(node, Leaf):
            return not self.tables.changed(node)
        return next(self.focuses(node), None) is None

    def _clocked(self, node: SelectNode) -> bool:
        return self.move is not None and any(
            piece.start in self.move.windows for piece in (*node.where, *(p for s in node.sources for p in s.on))
        )

    # --- the queries

    def queries(self, node: Node) -> list[Rendered]:
        """One query per place of change, each with the output columns that can serve as anchors. Raises NotIncremental."""
        return [self._node(node, focus) for focus in self.focuses(node)]

    def _node(self, node: Node, focus: Focus | None) -> Rendered:
        if isinstance(node, SelectNode):
            return self._select(node, focus)
        names = output(node, self.tables.columns)
        if node.by_name:
            raise NotIncremental("UNION_BY_NAME", "UNION BY NAME is not understood")
        arms = [arm for arm in node.arms if focus is not None and _contains(arm, focus)] if focus else list(node.arms)
        rendered = [self._node(arm, focus) for arm in arms or node.arms]
        kept = [all(r.columns[k] is not None for r in rendered) for k in range(len(names))]
        texts = []
        for r in rendered:
            columns = ", ".join(
                f"{quoted(c or '')} AS {quoted(name)}"
                for c, name, keep in zip(r.columns, names, kept, strict=True)
                if keep
            )
            texts.append(f"SELECT {columns or '1 AS `__mv_none`'} FROM (\n{r.text}\n)")
        return Rendered(
            "\nUNION ALL\n".join(texts), [name if keep else None for name, keep in zip(names, kept, strict=True)]
        )

    def _select(self, node: SelectNode, focus: Focus | None) -> Rendered:
        for query in node.deep:
            if not self.static(query):
                raise NotIncremental(
                    "SUBQUERY", "a subquery outside WHERE: a change in its table can touch any row of the result"
                )
        scope = Scope.of(node, self.tables.columns)
        joined = self._from(node, focus, scope)
        conditions = [text for piece in node.where if (text := self._where(node, piece, focus, scope, joined))]
        if focus is node:
            conditions += self._crossing(node, scope, joined)
        return self._project(node, scope, joined, conditions)

    # --- FROM

    def _from(self, node: SelectNode, focus: Focus | None, scope: Scope) -> _Joined:
        joined = _Joined()
        for k, source in enumerate(node.sources):
            alias = (source.alias or f"_{k}").lower()
            inside = focus is not None and _contains(source.item, focus)
            kind = self._kind(source, inside, focus, k, node)
            if not kind:
                continue  # an anti-join can only take rows away
            text, columns = self._item(source.item, focus if inside else None)
            before = dict(joined.present), dict(joined.reliable)
            joined.present[alias] = joined.reliable[alias] = columns
            on = self._on(node, source, kind, scope, joined, before)
            words = "" if k == 0 else f"{kind} JOIN "
            joined.text.append(f"{words}{text} AS {quoted(source.alias or f'_{k}')}{on}")
            if source.kind == "LEFT" and not self.static(source.item):
                joined.reliable[alias] = frozenset()
            if source.kind == "RIGHT" and not all(self.static(s.item) for s in node.sources[:k]):
                joined.reliable.update({a: frozenset() for a in before[0]})
            if kind in ("LEFT SEMI", "LEFT ANTI"):
                del joined.present[alias], joined.reliable[alias]
        return joined

    def _kind(self, source: Source, inside: bool, focus: Focus | None, k: int, node: SelectNode) -> str:
        static = self.static(source.item)
        earlier = any(focus is not None and _contains(s.item, focus) for s in node.sources[:k])
        if source.kind == "FULL":
            if static and all(self.static(s.item) for s in node.sources[:k]):
                return "FULL"
            raise NotIncremental("FULL_OUTER_JOIN", "FULL OUTER JOIN: rows of both sides appear and vanish by turns")
        if source.kind == "LEFT ANTI":
            return "LEFT SEMI" if inside else ("LEFT ANTI" if static else "")
        if source.kind == "LEFT" and inside:
            return "INNER"
        if source.kind == "RIGHT" and earlier:
            return "INNER"
        return source.kind or "INNER"

    def _item(self, item: Leaf | Node, focus: Focus | None) -> tuple[str, frozenset[str]]:
        if isinstance(item, Leaf):
            columns = frozenset(c.lower() for c in output(item, self.tables.columns))
            if item is focus:
                return self.tables.changes_text(item), columns
            return (self.tables.now_and_before(item) if self.tables.changed(item) else self.tables.now(item)), columns
        if self.static(item) and not any(self._is_unstable(s.tree) for s in selects(item)):
            text = self._verbatim(item)
            return f"(\n{text}\n)", frozenset(c.lower() for c in output(item, self.tables.columns))
        rendered = self._node(item, focus)
        return f"(\n{rendered.text}\n)", frozenset(c.lower() for c in rendered.columns if c)

    def _verbatim(self, node: Node) -> str:
        """An unchanged query, whole, with the CTEs that it sees."""
        if isinstance(node, SetNode):
            if not node.all_ or node.by_name:
                raise NotIncremental("SET_OPERATION", "a set operation inside another query")
            return "\nUNION ALL\n".join(f"SELECT * FROM (\n{self._verbatim(arm)}\n)" for arm in node.arms)
        return self.tables.pinned(node.head + node.text)

    def _on(
        self,
        node: SelectNode,
        source: Source,
        kind: str,
        scope: Scope,
        joined: _Joined,
        before: tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]],
    ) -> str:
        if source.using:
            everywhere = [set(c) for c in before[1].values()]
            for name in source.using:
                if not any(name.lower() in columns for columns in everywhere):
                    raise NotIncremental("OUTER_JOIN", f"USING ({name}) joins on a column that an outer join may empty")
            return f" USING ({', '.join(quoted(c) for c in source.using)})"
        kept = []
        for piece in source.on:
            if self.move is not None and piece.start in self.move.windows:
                continue
            if _has_query(piece.node) or self._is_unstable(piece.node):
                if kind in ("LEFT ANTI", "FULL"):
                    raise NotIncremental("ANTI_JOIN", "an anti-join whose condition is not stable")
                continue
            used, complete = scope.references(piece.node)
            if not complete:
                raise NotIncremental("STRUCTURE", f"a column of `{piece.text}` was not found")
            if (
                kind != "FULL"
                and source.kind != "LEFT"
                and any(a in joined.present and c in joined.present[a] and c not in joined.reliable[a] for a, c in used)
            ):
                raise NotIncremental("OUTER_JOIN", f"`{piece.text}` joins on a column that an outer join may empty")
            if kind in ("LEFT ANTI", "FULL") and any(c not in joined.present.get(a, frozenset()) for a, c in used):
                raise NotIncremental("ANTI_JOIN", f"`{piece.text}` uses a column that cannot be followed")
            if all(c in joined.present.get(a, frozenset()) for a, c in used):
                kept.append(f"({piece.text})")
        if source.on and not kept and kind not in ("CROSS",):
            if kind == "INNER":
                raise NotIncremental(
                    "NO_JOIN_CONDITION", "no join condition is left that finds the partners of a change"
                )
            kept.append("true")
        return f" ON {' AND '.join(kept)}" if kept else ""

    # --- WHERE

    def _where(self, node: SelectNode, piece: Piece, focus: Focus | None, scope: Scope, joined: _Joined) -> str | None:
        """The conjunct as far as it decides which anchors a change touches; None where it is left out."""
        if self.move is not None and piece.start in self.move.windows:
            return None
        texts = subquery_texts(piece.text)
        focused = next((t for t in texts if focus is not None and _contains(node.subqueries[t], focus)), None)
        if focused is not None and focus is not None:
            return self._subquery(node, piece, focused, focus, scope, joined)
        if self._is_unstable(piece.node):
            return None
        used, complete = scope.references(piece.node)
        if any(c not in joined.reliable.get(a, frozenset()) for a, c in used):
            return None
        if texts:
            if not all(self.static(node.subqueries[t]) for t in texts):
                return None
            inner = {c for t in texts for c in _outer_columns(node.subqueries[t], scope, self.tables.columns)}
            if any(c not in joined.reliable.get(a, frozenset()) for a, c in inner):
                return None
            try:
                return f"({self.tables.pinned(piece.text)})"
            except NotIncremental:
                return None  # it reads a CTE; leaving it out finds more rows, never fewer
        return f"({piece.text})" if complete or node.laterals else None

    def _subquery(self, node: SelectNode, piece: Piece, text: str, focus: Focus, scope: Scope, joined: _Joined) -> str:
        """EXISTS and IN: only rows for which a changed row is among those found can change."""
        query = node.subqueries[text]
        if not isinstance(query, SelectNode):
            raise NotIncremental("SUBQUERY", f"`{_short(piece.text)}`: a set operation in a subquery")
        condition = piece.node.unnest()
        while isinstance(condition, exp.Not) and isinstance(condition.this.unnest(), exp.Exists):
            condition = condition.this.unnest()
        outer = _outer_columns(query, scope, self.tables.columns)
        if any(c not in joined.reliable.get(a, frozenset()) for a, c in outer):
            raise NotIncremental("SUBQUERY", f"`{_short(piece.text)}` uses a column that an outer join may empty")
        if isinstance(condition, exp.Exists):
            if query.aggregate and not query.grouped:
                raise NotIncremental("SUBQUERY", f"`{_short(piece.text)}`: an aggregate in EXISTS")
            inner = self._select(_with_outer(query), focus)
            return f"EXISTS (\n{inner.text}\n)"
        if isinstance(condition, exp.In) and condition.args.get("query") is not None and not outer:
            inner = self._select(query, focus)
            if len(inner.columns) == 1 and inner.columns[0]:
                left = piece.text[: piece.text.index(text)].rstrip().rstrip("(").rstrip()
                left = left.lstrip("(") if piece.node is not condition else left
                if left.upper().endswith("IN") and not left.upper().endswith("NOT IN"):
                    return f"{left} (\n{inner.text}\n)"
        raise NotIncremental(
            "SUBQUERY", f"`{_short(piece.text)}`: of subqueries, only EXISTS, NOT EXISTS and IN can follow a change"
        )

    def _crossing(self, node: SelectNode, scope: Scope, joined: _Joined) -> list[str]:
        """Rows whose window begins or ends in the time that passed."""
        assert self.move is not None
        pieces = [*node.where, *(p for s in node.sources for p in s.on)]
        crossed = []
        for piece in pieces:
            window = self.move.windows.get(piece.start)
            if window is not None:
                crossed.append(truth_differs(piece.text, window.valid_from, window.valid_to, self.move.between))
        return [f"({' OR '.join(crossed)})"] if crossed else ["false"]

    # --- the select list

    def _project(self, node: SelectNode, scope: Scope, joined: _Joined, conditions: list[str]) -> Rendered:
        shared = _shared_partition(node, scope) if node.windowed else None
        if node.aggregate and not node.grouped:
            raise NotIncremental("GLOBAL_AGGREGATE", "an aggregate without GROUP BY has one group: the whole source")
        entries: list[tuple[str, str]] = []
        columns: list[str | None] = []
        for item in node.items:
            for text, name, usable in self._entries(node, item, scope, joined, shared):
                usable = usable and name.lower() not in {n.lower() for _, n in entries}
                columns.append(name if usable else None)
                if usable:
                    entries.append((text, name))
        if not node.sources:
            raise NotIncremental("STRUCTURE", "a SELECT without FROM beside tables that changed")
        listed = ", ".join(f"{text} AS {quoted(name)}" for text, name in entries) or "1 AS `__mv_none`"
        unique = "DISTINCT " if node.aggregate or node.windowed or node.distinct else ""
        where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
        laterals = f"\n{node.laterals}" if node.laterals else ""
        return Rendered(f"SELECT {unique}{listed}\nFROM {' '.join(joined.text)}{laterals}{where}", columns)

    def _entries(
        self,
        node: SelectNode,
        item: OutItem,
        scope: Scope,
        joined: _Joined,
        shared: tuple[set[tuple[str, str]], list[exp.Expr]] | None,
    ) -> Iterator[tuple[str, str, bool]]:
        if item.name is None:
            for alias, column in expand(node, item, self.tables.columns):
                place = (alias.lower(), column.lower())
                usable = column.lower() in joined.reliable.get(alias.lower(), frozenset())
                yield f"{quoted(alias)}.{quoted(column)}", column, usable and (shared is None or place in shared[0])
            return
        usable = not (self._is_unstable(item.node) or _has_query(item.node) or item.node.find(exp.Window))
        if usable:
            usable = not (node.aggregate and aggregates(item.node))
            used, complete = scope.references(item.node)
            usable = usable and (complete or bool(node.laterals and not used))
            usable = usable and all(c in joined.reliable.get(a, frozenset()) for a, c in used)
            if shared is not None:
                usable = usable and bool(used) and (used <= shared[0] or item.node in shared[1])
        yield item.text, item.name, usable

    def _is_unstable(self, node: exp.Expr) -> bool:
        return any(name in self.unstable for name in calls(node))


def _contains(item: Leaf | Node, focus: Focus) -> bool:
    return item is focus or (not isinstance(item, Leaf) and any(_contains(child, focus) for child in children(item)))


def _has_query(node: exp.Expr) -> bool:
    return node.find(exp.Query) is not None


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."


def _outer_columns(query: Node, scope: Scope, tables: Columns) -> set[tuple[str, str]]:
    """The columns of the scope around that a subquery uses."""
    found: set[tuple[str, str]] = set()
    if isinstance(query, SetNode):
        return set().union(*(_outer_columns(arm, scope, tables) for arm in query.arms))
    own = Scope.of(query, tables)
    for column in query.tree.find_all(exp.Column):
        if not isinstance(column.this, exp.Star) and own.resolve(column) is None:
            place = scope.resolve(column)
            if place is not None:
                found.add(place)
    return found


def _with_outer(query: SelectNode) -> SelectNode:
    """The subquery of an EXISTS: its select list does not matter, its WHERE may use columns from around."""
    return SelectNode(
        text=query.text, items=(), sources=query.sources, laterals=query.laterals or " ", where=query.where,
        tree=query.tree, grouped=query.grouped, aggregate=query.aggregate, distinct=False, windows=(),
        clauses=query.clauses, subqueries=query.subqueries, deep=query.deep,
    )  # fmt: skip


def _shared_partition(node: SelectNode, scope: Scope) -> tuple[set[tuple[str, str]], list[exp.Expr]]:
    """The columns, and the expressions, by which every window of the SELECT is partitioned."""
    named = {w.name.lower(): w for w in node.tree.args.get("windows") or []}
    columns: set[tuple[str, str]] | None = None
    expressions: list[exp.Expr] | None = None
    for window in node.windows:
        parts = list(window.args.get("partition_by") or [])
        base = window.args.get("alias")
        if not parts and base is not None and base.name.lower() in named:
            parts = list(named[base.name.lower()].args.get("partition_by") or [])
        if not parts:
            raise NotIncremental("NO_PARTITION_BY", "a window without PARTITION BY has one partition: the whole source")
        own = {place for p in parts if isinstance(p, exp.Column) and (place := scope.resolve(p)) is not None}
        columns = own if columns is None else columns & own
        expressions = parts if expressions is None else [p for p in expressions if p in parts]
    if not expressions and not columns:
        raise NotIncremental("PARTITIONS_DIFFER", "the windows share no PARTITION BY column")
    return columns or set(), expressions or []
