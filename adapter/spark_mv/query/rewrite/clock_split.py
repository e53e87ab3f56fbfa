"""A query split from its clock predicates: each row's window instead of a WHERE that changes from day to day.

This is Materialize's treatment of temporal filters (mz_now()): what can be solved for the clock becomes two bounds per
row, and rows enter and leave by themselves. Text outside the predicates stays as written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from spark_mv.query.analysis.verdict import PredicateVerdict
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_move import Between, bound_between, is_comparison
from spark_mv.query.rewrite.clock_pull import NO_BOUND, NotPullable, guard_edit, unclocked
from spark_mv.query.rewrite.clock_scope_types import Schemas, block_types, schema_columns
from spark_mv.query.rewrite.clock_sources import Sources
from spark_mv.query.rewrite.pin import clock_spans
from spark_mv.query.solver.bounds import Bounds, both
from spark_mv.query.solver.solve import solve_or_reason
from spark_mv.query.syntax.aggregates import called
from spark_mv.query.syntax.condition import ALWAYS, read_condition
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parse import Parsed, parse
from spark_mv.query.syntax.source_blocks import Block, Context, alone, select_blocks, span_of
from spark_mv.query.syntax.source_text import Edit, SourceTextError, Span, apply_edits, line_and_column


@dataclass(frozen=True)
class ClockSplit:
    """What the clock does to a query.

    `predicates`: every conjunct on the clock, in text order. `all_solved`: each has bounds. `clock_elsewhere`: it
    stands outside solved conjuncts too, so that rows change with it. `pullable`: `unclocked_sql` is the query for all
    instants at once, with the columns __mv_valid_from and __mv_valid_to (TIMESTAMP, NULL = unbounded) appended; rows
    of it with valid_from <= T < valid_to are the query's rows at T. `reason` says why not, or '' if pullable.
    `bound_queries`: for each scope with solved conjuncts, a query of valid_from and valid_to over its candidate rows;
    other clock functions in them still have to be pinned to T. `near_queries`: the same over the rows whose predicates
    change their truth between two instants, where these were given. `bounds_complete`: together they cover every instant
    at which a row enters or leaves.
    """

    predicates: tuple[PredicateVerdict, ...] = ()
    all_solved: bool = True
    clock_elsewhere: bool = False
    pullable: bool = False
    reason: str = ""
    unclocked_sql: str | None = None
    bound_queries: tuple[str, ...] = ()
    near_queries: tuple[str, ...] = ()
    bounds_complete: bool = True

    def with_rows_of(self, wider: ClockSplit) -> ClockSplit:
        """The same with the bounds of the rows of a `wider` query, which has the same predicates on the clock or fewer."""
        own = len(wider.predicates) < len(self.predicates)
        return replace(
            self,
            bound_queries=(*wider.bound_queries, *(self.bound_queries if own else ())),
            near_queries=(*wider.near_queries, *(self.near_queries if own else ())),
            bounds_complete=self.bounds_complete and wider.bounds_complete,
        )


@dataclass(frozen=True)
class _Conjunct:
    block: int
    span: Span
    clause: str
    solution: Bounds | str
    compared: bool = False


@deep
def split_clock(
    sql: str,
    schemas: Schemas | None = None,
    time_zone: str | None = None,
    near: Between | None = None,
    kept: Collection[Span] = (),
    asked: Collection[str] = (),
    words: Collection[str] = (),
) -> ClockSplit:
    """Split a query. `schemas`: table as written → column → Spark type. `time_zone`: the session's; without it, what
    depends on local dates stays unsolved. `kept`: expressions that are evaluated once per row, whatever the clock says
    later. `words`: columns of the query that have the name of a function without parentheses. `asked`: names of AI functions; bounds are those of all rows, whatever their answers, which rows outside their
    windows do not have yet. Raises SourceTextError for text that is not even words."""
    found = clock_spans(sql, schema_columns(schemas) | frozenset(words) if schemas else None)
    uses = tuple(use for use in found if not any(_inside(use, span) for span in kept))
    if not uses:
        return ClockSplit(reason="no clock function")
    try:
        if not (blocks := select_blocks(sql)):
            raise SourceTextError("no SELECT stands in it")
    except SourceTextError as error:
        # nothing is solved, and every move of the clock can change every row
        return ClockSplit(all_solved=False, clock_elsewhere=True, reason=str(error), bounds_complete=False)
    sources = Sources(blocks)
    types = block_types(sql, sources, schemas or {})
    # several parts can stand on one place: the outermost is the conjunct, but for parentheses
    parts = {span_of(p): p for p in reversed(list(blocks[0].tree.root().walk())) if "span" in p.meta}
    conjuncts: list[_Conjunct] = []
    covered: set[Span] = set()
    for index, block in enumerate(blocks):
        for clause, span in _conjunct_spans(sql, block):
            own = [use for use in uses if _inside(use, span) and _owner(use, blocks) == index]
            if own:
                solution = _solution(sql, block, clause, span, types(index), time_zone, blocks)
                conjuncts.append(_Conjunct(index, span, clause, solution, span in parts and is_comparison(parts[span])))
                covered.update(own if isinstance(conjuncts[-1].solution, Bounds) else ())
    conjuncts.sort(key=lambda c: c.span.start)
    solved = [c for c in conjuncts if isinstance(c.solution, Bounds)]
    scopes = sorted({c.block for c in solved})
    split = ClockSplit(
        predicates=tuple(_verdict(sql, c, blocks[c.block]) for c in conjuncts),
        all_solved=len(solved) == len(conjuncts),
        clock_elsewhere=any(use not in covered for use in uses),
        bound_queries=tuple(_bound_query(sql, i, blocks, conjuncts, asked) for i in scopes),
        near_queries=tuple(_bound_query(sql, i, blocks, conjuncts, asked, near) for i in scopes) if near else (),
        bounds_complete=len(covered) == len(uses),
    )
    obstacle = _obstacle(split, conjuncts)
    if obstacle:
        return replace(split, reason=obstacle)
    windows: dict[int, list[tuple[Span, Bounds]]] = {}
    for conjunct in conjuncts:
        if isinstance(conjunct.solution, Bounds):
            windows.setdefault(conjunct.block, []).append((conjunct.span, conjunct.solution))
    try:
        return replace(split, pullable=True, unclocked_sql=unclocked(sql, sources, windows))
    except NotPullable as error:
        return replace(split, reason=str(error))


def _inside(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _owner(use: Span, blocks: tuple[Block, ...]) -> int:
    """The innermost block around a place."""
    around = [i for i, block in enumerate(blocks) if _inside(use, block.span)]
    return min(around, key=lambda i: blocks[i].span.end - blocks[i].span.start, default=-1)


def _conjunct_spans(sql: str, block: Block) -> list[tuple[str, Span]]:
    spans = [("WHERE", span) for span in block.conjuncts]
    for join in block.joins:
        spans += [("JOIN ON" if join.inner else f"{join.kind} JOIN ON", span) for span in join.on]
    for clause in ("HAVING", "QUALIFY"):
        spans += [(clause, span) for name, span in block.others if name == clause]
    return spans


def _solution(
    sql: str,
    block: Block,
    clause: str,
    span: Span,
    types: Mapping[str, str],
    time_zone: str | None,
    blocks: tuple[Block, ...],
) -> Bounds | str:
    if clause not in ("WHERE", "JOIN ON"):
        return f"a clock predicate in {clause} is not solved"
    if _in_expression(block, blocks):
        return "a clock predicate inside a subquery of an expression is not solved"
    if clause == "JOIN ON" and any(not join.inner for join in block.joins):
        return "a clock predicate in ON beside an outer join is not solved"
    return solve_or_reason(span.of(sql), types, time_zone)


def _in_expression(block: Block, blocks: tuple[Block, ...]) -> bool:
    current: Block | None = block
    while current is not None:
        if current.context == Context.EXPRESSION or current.lateral:
            return True
        current = blocks[current.parent] if current.parent is not None else None
    return False


def _verdict(sql: str, conjunct: _Conjunct, block: Block) -> PredicateVerdict:
    line, column = line_and_column(sql, conjunct.span.start)
    bounds = conjunct.solution if isinstance(conjunct.solution, Bounds) else None
    return PredicateVerdict(
        text=conjunct.span.of(sql),
        clause=conjunct.clause,
        scope=block.name or ("query" if block.context == Context.OUTERMOST else block.context.value),
        line=line,
        column=column,
        level=Level.COMMAND,
        clock=True,
        solved=bounds is not None,
        valid_from=bounds.valid_from if bounds else None,
        valid_to=bounds.valid_to if bounds else None,
        guard=bounds.guard if bounds else None,
    )


def _bound_query(
    sql: str,
    index: int,
    blocks: tuple[Block, ...],
    conjuncts: list[_Conjunct],
    asked: Collection[str],
    near: Between | None = None,
) -> str:
    """Stand-alone: the CTEs before the block, its FROM, its other conjuncts."""
    block = blocks[index]
    end = _where_end(block)
    own = [c for c in conjuncts if c.block == index and c.span.end <= end]  # what HAVING asks is asked of groups
    bounds = Bounds()
    for conjunct in own:
        if isinstance(conjunct.solution, Bounds):
            bounds = both(bounds, conjunct.solution)
    edits = [guard_edit(c.span, c.solution if isinstance(c.solution, Bounds) else None) for c in own]
    if near is not None:
        differ = [
            bound_between(c.span.of(sql), c.compared, c.solution.valid_from, c.solution.valid_to, near)
            for c in own
            if isinstance(c.solution, Bounds)
        ]
        last = max(range(len(own)), key=lambda k: own[k].span.start)  # it sees all tables that the others are about
        edits[last] = replace(edits[last], replacement=f"({edits[last].replacement} AND ({' OR '.join(differ)}))")
    clocked = [c.span for c in own]
    edits += [Edit(s.start, s.end, ALWAYS) for s in block.conjuncts if s not in clocked and calls_any(s.of(sql), asked)]
    text = apply_edits(sql[:end], edits)[block.select.end + _growth(edits, block.select.end) :]
    lower, upper = bounds.valid_from or NO_BOUND, bounds.valid_to or NO_BOUND
    return alone(sql, block, f"SELECT {lower} AS valid_from, {upper} AS valid_to{text}")


def calls_any(text: str, names: Collection[str]) -> bool:
    """Whether one of the functions (lower case) is called in a query or a condition; of what is not understood, whether one is named."""
    if not any(name in text.lower() for name in names):
        return False
    read = parse(text)
    tree = read.tree if isinstance(read, Parsed) else read_condition(text)
    return tree is None or any(called(node) in names for node in tree.walk())


def _growth(edits: list[Edit], before: int) -> int:
    return sum(len(e.replacement) - (e.end - e.start) for e in edits if e.end <= before)


def _where_end(block: Block) -> int:
    ends = [span.end for span in (block.where, block.from_) if span is not None]
    ends += [span.end for name, span in block.others if name == "LATERAL VIEW"]
    return max(ends, default=block.select.end)


def _obstacle(split: ClockSplit, conjuncts: list[_Conjunct]) -> str:
    unsolved = [c for c in conjuncts if isinstance(c.solution, str)]
    if unsolved:
        return f"`{split.predicates[conjuncts.index(unsolved[0])].text}`: {unsolved[0].solution}"
    return "the clock stands outside WHERE" if split.clock_elsewhere else ""


def next_change_sql(split: ClockSplit, as_of_literal: str) -> str | None:
    """One statement: a single TIMESTAMP (column `next_change`), the first bound after T; NULL when there is none.

    None when the bounds do not cover every change. Pin the statement to the same T before running it.
    """
    if not split.bound_queries or not split.bounds_complete:
        return None
    return _first_bound(split.bound_queries, as_of_literal)


def near_change_sql(split: ClockSplit, as_of_literal: str) -> str | None:
    """The same over `near_queries`: NULL when no row enters or leaves between their two instants."""
    if not split.near_queries or not split.bounds_complete:
        return None
    return _first_bound(split.near_queries, as_of_literal)


def _first_bound(queries: tuple[str, ...], now: str) -> str:
    windows = " UNION ALL ".join(f"SELECT valid_from, valid_to FROM ({query})" for query in queries)
    return (
        f"SELECT min(least(CASE WHEN valid_from > {now} THEN valid_from END, CASE WHEN valid_to > {now} THEN valid_to END)) "
        f"AS next_change FROM ({windows}) WHERE valid_from IS NULL OR valid_to IS NULL OR valid_from < valid_to"
    )
