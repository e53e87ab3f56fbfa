"""The user's text with other things in the place of its tables; all else stays as written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from spark_mv.query.delta.narrowed import KnownColumns, narrowed
from spark_mv.query.rewrite.pin import Pins, pin_edits
from spark_mv.query.syntax.condition import HEAD
from spark_mv.query.syntax.ctes import CteNames, read_tables, tables
from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.select_tree import Leaf, Node, NotIncremental, SelectNode, SetNode, quoted, reads
from spark_mv.query.syntax.source_text import Edit, apply_edits
from spark_mv.query.syntax.table_name import is_old_version, joined, parts_of


@dataclass(frozen=True)
class TableRef:
    """A table in the text: `name` as the analysis has it, `text` as written, and whether it has an alias."""

    name: str
    text: str
    start: int
    end: int
    alias: str


@lru_cache(maxsize=128)
def table_refs(sql: str) -> tuple[TableRef, ...]:
    """Every table of a query or of an expression with queries in it, in text order; no CTEs, and nothing that only a CTE
    reads that nobody reads. Raises NotIncremental."""
    tree, prefix = _parsed(sql)
    refs, ctes = [], CteNames()
    for table in read_tables(tree, ctes):
        if not isinstance(table.this, exp.Identifier):
            raise NotIncremental("TABLE_FUNCTION", "a table function in FROM")
        parts = [part.name for part in table.parts]
        if ctes.of(table) is not None:
            continue
        if table.args.get("version") is not None or table.args.get("when") is not None or is_old_version(parts):
            raise NotIncremental("TIME_TRAVEL", f"{'.'.join(parts)} is read at a version that the query names")
        starts = [part.meta["start"] for part in table.parts if part.meta.get("start") is not None]
        ends = [part.meta["end"] for part in table.parts if part.meta.get("end") is not None]
        if len(starts) < len(parts) or len(ends) < len(parts):
            raise NotIncremental("STRUCTURE", f"the place of {'.'.join(parts)} in the text is not known")
        start, end = min(starts) - len(prefix), max(ends) + 1 - len(prefix)
        text = sql[start:end]
        if "".join(text.replace("`", "").split()) != "".join(".".join(parts).split()):
            raise NotIncremental("STRUCTURE", f"the place of {'.'.join(parts)} in the text is not sure")
        refs.append(TableRef(joined(parts), text, start, end, table.alias))
    return tuple(sorted(refs, key=lambda r: r.start))


def all_are_read(sql: str) -> bool:
    """Whether no table stands in a CTE that nobody reads. Raises NotIncremental."""
    tree, _ = _parsed(sql)
    return len(read_tables(tree, CteNames())) == len(list(tables(tree)))


def _parsed(sql: str) -> tuple[exp.Expr, str]:
    """The tree of a query or an expression, and what was put in front of an expression for it."""
    prefix = ""
    found = parse(sql)
    if isinstance(found, QueryError):
        prefix = HEAD
        found = parse(prefix + sql)
    if isinstance(found, QueryError):
        raise NotIncremental("STRUCTURE", f"a part of the query was not understood: {found.message}")
    return found.tree, prefix


def with_tables(sql: str, replacement: Callable[[TableRef], str], pins: Pins | None = None) -> str:
    """The text with every table replaced, and with `pins` the clock and its like too (which spares reading what comes out).
    A replacement in parentheses gets the table's name as alias where it has none."""
    edits = [*pin_edits(sql, pins)] if pins is not None else []
    for ref in table_refs(sql):
        text = replacement(ref)
        if text.startswith("(") and not ref.alias:
            text += f" AS {quoted(parts_of(ref.name)[-1])}"
        edits.append(Edit(ref.start, ref.end, text))
    return apply_edits(sql, edits)


def idle_arms(node: Node, changed: frozenset[str]) -> tuple[SelectNode, ...] | None:
    """For a query that reads each of the tables `changed` (lower case) once: None unless the result is linear in them,
    Q(X ⊎ D) = Q(X) ⊎ Q′(D) as bags, so that the rows of Q′ on changed rows alone are the rows that come and go. Q′ is Q where
    the arms of a UNION ALL that read no changed table, which are returned, give no rows."""
    if isinstance(node, SelectNode):
        return None if node.aggregate else idle_arms_below(node, changed)
    if not node.all_:
        return None
    found: list[SelectNode] = []
    for arm in node.arms:
        idle = idle_arms(arm, changed) if changed & reads(arm).keys() else _to_empty(arm)
        if idle is None:
            return None
        found += idle
    return tuple(found)


def idle_arms_below(node: SelectNode, changed: frozenset[str]) -> tuple[SelectNode, ...] | None:
    """The same for the rows that a SELECT reads, before it groups them."""
    if node.windowed or node.distinct:
        return None
    if any(changed & reads(query).keys() for query in (*node.subqueries.values(), *node.deep)):
        return None
    reading = [k for k, source in enumerate(node.sources) if changed & reads(source.item).keys()]
    if len(reading) != 1:
        return None
    source = node.sources[reading[0]]
    if not node.is_linear_in(reading[0]):
        return None
    return () if isinstance(source.item, Leaf) else idle_arms(source.item, changed)


def _to_empty(arm: Node) -> tuple[SelectNode, ...] | None:
    """The SELECTs of an arm that give no rows with a WHERE that nothing passes. (An aggregate gives one even then.)"""
    if isinstance(arm, SelectNode):
        return None if arm.aggregate or arm.start < 0 else (arm,)
    parts = [_to_empty(part) for part in arm.arms]
    return None if None in parts else tuple(select for part in parts for select in part or ())


def emptied(sql: str, arms: Iterable[SelectNode]) -> str:
    """The text in which these SELECTs give no rows."""
    return apply_edits(sql, [edit for arm in arms for edit in _where(arm, "false")])


def restricted(
    sql: str,
    node: SelectNode | SetNode,
    affected: str,
    anchors: Mapping[str, str],
    texts: Mapping[str, str | None],
    known: KnownColumns | None = None,
) -> str:
    """The rows of the query whose anchors are in the table `affected`. `anchors`: output column → column of `affected`;
    `texts`: output column (lower case) → its expression, where that may stand in WHERE.

    The condition goes into the outermost WHERE where that is one SELECT: there it stands below a projection with
    draws, which no optimizer moves a join through. (Not for an aggregate without GROUP BY, which gives a row even of no
    rows.) Anchors that cannot be said there are looked at above the query. `sql` must be the text that `node` was built from. With `known`, what
    it joins to its anchors is restricted too.
    """
    edits = narrowed(node, affected, anchors, known) if known is not None else []
    said = {}
    if isinstance(node, SelectNode) and (node.grouped or not node.aggregate) and node.start >= 0:
        said = {c: text for anchor, c in anchors.items() if (text := texts.get(anchor.lower())) is not None}
        if said:
            edits += _condition(node, affected, said)
    sql = apply_edits(sql, edits)
    if len(said) == len(anchors):
        return sql
    on = " AND ".join(f"`__mv_q`.{quoted(a)} <=> `__mv_k`.{quoted(c)}" for a, c in anchors.items())
    return f"SELECT `__mv_q`.* FROM (\n{sql}\n) AS `__mv_q` LEFT SEMI JOIN {affected} AS `__mv_k` ON {on}"


def with_condition(sql: str, node: SelectNode, affected: str, said: Mapping[str, str]) -> str:
    """The text with one more condition in the WHERE of the SELECT: that the expressions `said`, by column of `affected`, are in it."""
    return apply_edits(sql, _condition(node, affected, said))


def _condition(node: SelectNode, affected: str, said: Mapping[str, str]) -> list[Edit]:
    test = " AND ".join(f"`__mv_k`.{quoted(c)} <=> ({text})" for c, text in said.items())
    return _where(node, f"EXISTS (SELECT 1 FROM {affected} AS `__mv_k` WHERE {test})")


def _where(node: SelectNode, condition: str) -> list[Edit]:
    """One more condition in the WHERE of a SELECT."""
    if node.where_span is None:
        at = node.start + node.where_at
        return [Edit(at, at, f"\nWHERE {condition}\n")]
    lo, hi = node.start + node.where_span[0], node.start + node.where_span[1]
    return [Edit(lo, lo + 5, "WHERE ("), Edit(hi, hi, f"\n) AND {condition}\n")]
