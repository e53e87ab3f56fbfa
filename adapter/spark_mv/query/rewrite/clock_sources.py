"""The tables, CTEs and derived tables that a SELECT block reads, and whether its joins keep their rows as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.syntax.ctes import CteNames, tables
from spark_mv.query.syntax.joins import EACH_ROW_ALIKE, FILLING_LEFT, join_kind, merges
from spark_mv.query.syntax.source_blocks import Block, Context


@dataclass(frozen=True)
class FromEntry:
    """One entry of FROM. `table`: name of a table (parts joined by dots, lower case), '' for anything else. `blocks`:
    the blocks of the CTE or derived table it is (several for a set operation). `preserved`: no join of the block adds
    rows in which this source is NULL or drops some by the other side's absence. `uses`: how often the CTE is read. `by_place`: the blocks are all
    arms of it, and give its columns by their places."""

    alias: str
    table: str = ""
    blocks: tuple[int, ...] = ()
    preserved: bool = True
    uses: int = 1
    by_place: bool = False


class Sources:
    """What the blocks of one query read. CTEs and their uses are looked up once."""

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self.blocks = blocks
        self._definitions: dict[int, tuple[int, ...]] = {}
        for index, block in enumerate(blocks):
            if block.context == Context.CTE:
                key = id(_definition(block.tree))
                self._definitions[key] = (*self._definitions.get(key, ()), index)
        self._derived: dict[tuple[int | None, str], tuple[int, ...]] = {}
        for index, block in enumerate(blocks):
            if block.context == Context.DERIVED:
                named = block.parent, block.name.lower()
                self._derived[named] = (*self._derived.get(named, ()), index)
        read = tables(blocks[0].tree.root()) if blocks else ()
        self._ctes = CteNames()
        self._uses = Counter(id(self._ctes.of(table)) for table in read)
        self._found: dict[int, tuple[FromEntry, ...]] = {}

    def of(self, index: int) -> tuple[FromEntry, ...]:
        """The entries of a block's FROM, in order. Joins in parentheses give an entry without table or blocks."""
        if index not in self._found:
            self._found[index] = tuple(self._entries(index))
        return self._found[index]

    def _entries(self, index: int) -> Iterator[FromEntry]:
        tree = self.blocks[index].tree
        from_ = tree.args.get("from_")
        joins = list(tree.args.get("joins") or [])
        if from_:
            yield self._source(from_.this, index, not any(_fills_left(join) for join in joins))
            yield from (FromEntry(join.this.alias_or_name.lower()) for join in from_.this.args.get("joins") or [])
        for k, join in enumerate(joins):
            kept = _keeps_right(join) and not any(_fills_left(later) for later in joins[k + 1 :])
            yield self._source(join.this, index, kept)
        yield from (FromEntry(lateral.alias_or_name.lower()) for lateral in tree.args.get("laterals") or [])

    def _source(self, node: exp.Expr, index: int, kept: bool) -> FromEntry:
        alias = node.alias_or_name.lower()
        if node.args.get("pivots"):
            return FromEntry(alias)  # its columns are others
        plain = not any(node.args.get(name) for name in ("joins", "sample"))
        plain = plain and not isinstance(node, exp.TableSample)
        alias_node = node.args.get("alias")
        renamed = isinstance(alias_node, exp.TableAlias) and bool(alias_node.columns)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not renamed:
            cte = self._ctes.of(node)
            if cte is None:
                return FromEntry(alias, ".".join(part.name for part in node.parts).lower(), (), kept and plain)
            if cte.args["alias"].columns:
                return FromEntry(alias)
            blocks, uses = self._definitions.get(id(cte), ()), self._uses[id(cte)]
            return FromEntry(alias, "", blocks, kept and plain, uses, _by_place(cte.this, len(blocks)))
        if isinstance(node, exp.Subquery) and not renamed:
            blocks = self._derived.get((index, alias), ())
            return FromEntry(alias, "", blocks, kept and plain, by_place=_by_place(node.this, len(blocks)))
        return FromEntry(alias)


def _by_place(query: exp.Expr, count: int) -> bool:
    """Whether the query's arms, of which all are SELECTs, are `count`, and put together by the places of their columns. The star of a join with
    merged columns has others first."""
    stack, arms = [query], 0
    while stack:
        node = stack.pop()
        if isinstance(node, exp.SetOperation):
            if node.args.get("by_name"):
                return False
            stack += [node.this, node.expression]
        elif isinstance(node, exp.Subquery):
            stack.append(node.this)
        elif isinstance(node, exp.Select) and not (_merges(node) and any(item.is_star for item in node.expressions)):
            arms += 1
        else:
            return count == 1  # not one of several
    return arms == count


def _merges(select: exp.Select) -> bool:
    """Whether a join has USING, or is NATURAL."""
    return any(map(merges, select.args.get("joins") or []))


def _fills_left(join: exp.Expr) -> bool:
    """RIGHT and FULL joins fill the left side with NULLs."""
    return join_kind(join) in FILLING_LEFT


def _keeps_right(join: exp.Expr) -> bool:
    """Only inner and cross joins treat the right side's rows like the left side's."""
    return join_kind(join) in EACH_ROW_ALIKE


def _definition(select: exp.Select) -> exp.CTE | None:
    """The CTE whose query, or an arm of it, the SELECT is."""
    node = select.parent
    while isinstance(node, exp.SetOperation | exp.Subquery):
        node = node.parent
    return node if isinstance(node, exp.CTE) else None
