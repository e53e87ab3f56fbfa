"""The tables, CTEs and derived tables that a SELECT block reads, and whether its joins keep their rows as they are."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.syntax.parse import read_query
from spark_mv.query.syntax.source_blocks import Block, Context


@dataclass(frozen=True)
class Source:
    """One entry of FROM. `table`: name of a table (parts joined by dots, lower case), '' for anything else. `blocks`:
    the blocks of the CTE or derived table it is (several for a set operation). `preserved`: no join of the block adds
    rows in which this source is NULL or drops some by the other side's absence. `uses`: how often the CTE is read."""

    alias: str
    table: str = ""
    blocks: tuple[int, ...] = ()
    preserved: bool = True
    uses: int = 1


def block_sources(sql: str, index: int, blocks: tuple[Block, ...]) -> tuple[Source, ...]:
    """The entries of a block's FROM, in order. Joins in parentheses give an entry without table or blocks."""
    tree = read_query(blocks[index].span.of(sql))
    from_ = tree.args.get("from_")
    joins = list(tree.args.get("joins") or [])
    found = []
    if from_:
        found.append(_source(sql, from_.this, index, blocks, not any(_fills_left(join) for join in joins)))
        found += [Source(join.this.alias_or_name.lower()) for join in from_.this.args.get("joins") or []]
    for k, join in enumerate(joins):
        kept = _keeps_right(join) and not any(_fills_left(later) for later in joins[k + 1 :])
        found.append(_source(sql, join.this, index, blocks, kept))
    found += [Source(lateral.alias_or_name.lower()) for lateral in tree.args.get("laterals") or []]
    return tuple(found)


def _fills_left(join: exp.Expr) -> bool:
    """RIGHT and FULL joins fill the left side with NULLs."""
    return str(join.args.get("side") or "").upper() in ("RIGHT", "FULL")


def _keeps_right(join: exp.Expr) -> bool:
    """Only inner and cross joins treat the right side's rows like the left side's."""
    side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
    return side == "" and kind in ("", "INNER", "CROSS")


def _source(sql: str, node: exp.Expr, index: int, blocks: tuple[Block, ...], kept: bool) -> Source:
    alias = node.alias_or_name.lower()
    plain = not any(node.args.get(name) for name in ("joins", "sample", "pivots")) and not isinstance(
        node, exp.TableSample
    )
    alias_node = node.args.get("alias")
    renamed = isinstance(alias_node, exp.TableAlias) and bool(alias_node.columns)
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not renamed:
        name = ".".join(part.name for part in node.parts).lower()
        definition = _cte(name, index, blocks)
        if definition:
            if _has_column_list(sql, name):
                return Source(alias)
            return Source(alias, "", definition, kept and plain, _uses(sql, name))
        return Source(alias, name, (), kept and plain)
    if isinstance(node, exp.Subquery) and not renamed:
        derived = [i for i, b in enumerate(blocks) if b.parent == index and b.context == Context.DERIVED]
        return Source(alias, "", tuple(i for i in derived if blocks[i].name.lower() == alias), kept and plain)
    return Source(alias)


def _cte(name: str, index: int, blocks: tuple[Block, ...]) -> tuple[int, ...]:
    """The blocks of the CTE of that name written before the block; the nearest one wins."""
    if "." in name:
        return ()
    visible = [
        i
        for i, b in enumerate(blocks)
        if b.context == Context.CTE and b.name.lower() == name and b.span.end <= blocks[index].span.start
    ]
    if not visible:
        return ()
    nearest = [cte for cte in blocks[index].ctes if _within(blocks[visible[-1]], cte.start, cte.end)]
    return tuple(i for i in visible if nearest and _within(blocks[i], nearest[-1].start, nearest[-1].end))


def _within(block: Block, start: int, end: int) -> bool:
    return start <= block.span.start and block.span.end <= end


def _uses(sql: str, name: str) -> int:
    tree = read_query(sql)
    return sum(1 for table in tree.find_all(exp.Table) if table.name.lower() == name and not table.args.get("db"))


def _has_column_list(sql: str, name: str) -> bool:
    tree = read_query(sql)
    return any(cte.args["alias"].columns for cte in tree.find_all(exp.CTE) if cte.alias.lower() == name)
