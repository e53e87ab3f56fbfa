"""Taking solved clock predicates out of a query, and carrying each row's window to the outermost select list.

A window travels from the block it stands in through CTEs and derived tables, as two extra columns per block, as long
as every block on the way passes rows on one by one: no grouping, DISTINCT, window function, LIMIT or set operation,
and never the side of an outer join that is filled with NULLs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from spark_mv.query.rewrite.clock_sources import FromEntry, Sources
from spark_mv.query.solver.bounds import Bounds, both
from spark_mv.query.syntax.aggregates import is_aggregate
from spark_mv.query.syntax.condition import ALWAYS, bracketed
from spark_mv.query.syntax.reserved import VALID_FROM, VALID_TO
from spark_mv.query.syntax.source_blocks import Block, Context
from spark_mv.query.syntax.source_text import Edit, Span, apply_edits

NO_BOUND = "CAST(NULL AS TIMESTAMP)"


class NotPullable(Exception):
    """The windows cannot be carried to the outermost select list; the message says what stands in the way."""


def guard_edit(span: Span, bounds: Bounds | None) -> Edit:
    """The edit that puts a conjunct's guard in its place; a word by itself in two pairs of brackets, see `where_clause`."""
    guard = bounds.guard if bounds else None
    if guard is None:
        return Edit(span.start, span.end, ALWAYS)
    return Edit(span.start, span.end, bracketed(guard))


def unclocked(sql: str, sources: Sources, solved: Mapping[int, list[tuple[Span, Bounds]]]) -> str:
    """The query for all instants, with __mv_valid_from and __mv_valid_to. `solved`: block → its clock conjuncts.

    Raises NotPullable.
    """
    outermost = [i for i, b in enumerate(sources.blocks) if b.context == Context.OUTERMOST]
    if len(outermost) != 1:
        raise NotPullable("a set operation")
    pull = _Pull(sql, sources.blocks, sources, solved)
    pull.visit(outermost[0], (VALID_FROM, VALID_TO))
    missed = [i for i in solved if i not in pull.seen]
    if missed:
        name = sources.blocks[missed[0]].name or sources.blocks[missed[0]].context.value
        raise NotPullable(f"the clock predicate in {name} is not on a row-by-row way to the outermost SELECT")
    return apply_edits(sql, pull.edits)


@dataclass
class _Pull:
    sql: str
    blocks: tuple[Block, ...]
    sources: Sources
    solved: Mapping[int, list[tuple[Span, Bounds]]]
    edits: list[Edit] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    known: dict[int, bool] = field(default_factory=dict)

    def clocked(self, index: int) -> bool:
        """Whether the clock selects rows of the block or of what it reads."""
        if index not in self.known:
            below = [child for source in self.sources.of(index) for child in source.blocks]
            self.known[index] = index in self.solved or any(self.clocked(child) for child in below)
        return self.known[index]

    def visit(self, index: int, names: tuple[str, str]) -> None:
        block = self.blocks[index]
        reason = "a set operation" if block.set_operand else not_row_wise(block)
        if reason:
            where = f" in {block.name}" if block.name else ""
            raise NotPullable(f"{reason}{where}: rows do not come one by one from the rows that the clock selects")
        self.seen.add(index)
        bounds = Bounds()
        for span, own in self.solved.get(index, []):
            bounds = both(bounds, own)
            self.edits.append(guard_edit(span, own))
        inherited: dict[str, list[str]] = {}
        for source in self.sources.of(index):
            if any(self.clocked(child) for child in source.blocks):
                inherited[source.alias] = self._through(source)
                start, end = inherited[source.alias]
                bounds = both(bounds, Bounds(start, end, None, True, True))
        self._stars(block, inherited)
        start, end = bounds.valid_from or NO_BOUND, bounds.valid_to or NO_BOUND
        columns = f", {start} AS {names[0]}, {end} AS {names[1]}"
        self.edits.append(Edit(block.select.end, block.select.end, columns))

    def _through(self, source: FromEntry) -> list[str]:
        """Carry the windows of a CTE or derived table; the names of its two columns."""
        if len(source.blocks) != 1:
            raise NotPullable(f"{source.alias} is a set operation")
        if not source.preserved:
            raise NotPullable(f"{source.alias} stands on the side of a join that is filled with NULLs, or is sampled")
        child = source.blocks[0]
        if child in self.seen or source.uses != 1:
            raise NotPullable(f"{source.alias} is read more than once")
        names = (f"__mv_from_{child}", f"__mv_to_{child}")
        self.visit(child, names)
        return list(names)

    def _stars(self, block: Block, inherited: Mapping[str, list[str]]) -> None:
        """Keep the inner windows out of `*`."""
        if not inherited:
            return
        for key, clause in block.tree.args.items():
            parts = clause if isinstance(clause, list) else [clause]
            if key not in ("expressions", "from_", "with_") and any(_has_star(p) for p in parts):
                raise NotPullable("a * outside the select list would see the windows")
        for item, entry in zip(block.items, block.tree.expressions, strict=True):
            star = entry if isinstance(entry, exp.Star) else entry.this if isinstance(entry, exp.Column) else None
            if not isinstance(star, exp.Star):
                if entry.find(exp.Star):
                    raise NotPullable("a * inside an expression would see the windows")
                continue
            if any(star.args.values()):
                raise NotPullable("a * with EXCEPT or REPLACE")
            alias = entry.table.lower() if isinstance(entry, exp.Column) else ""
            names = inherited.get(alias, []) if alias else [name for pair in inherited.values() for name in pair]
            if names:
                self.edits.append(Edit(item.span.end, item.span.end, f" EXCEPT ({', '.join(names)})"))


def _has_star(part: object) -> bool:
    """A star of this SELECT itself; those of queries inside it see their own columns."""
    return isinstance(part, exp.Expr) and any(
        isinstance(node, exp.Star) for node in part.walk(prune=lambda n: isinstance(n, exp.Query))
    )


def not_row_wise(block: Block) -> str:
    """What keeps a block from passing rows on one by one, or ''."""
    for clause in ("GROUP BY", "HAVING", "QUALIFY", "LIMIT", "OFFSET"):
        if clause in block.clauses:
            return clause
    if block.distinct:
        return "DISTINCT"
    if any(join.kind in ("PIVOT", "UNPIVOT") for join in block.joins):
        return "PIVOT"
    for entry in block.tree.expressions:
        for node in entry.walk(prune=lambda n: isinstance(n, exp.Query)):
            if isinstance(node, exp.Window):
                return "a window function"
            if is_aggregate(node):
                return "an aggregate function"
    return ""
