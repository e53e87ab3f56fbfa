"""Random filters that stay the same sample: draws in WHERE, taken out of the query and read back from a state table.

`where rand() < 0.1` draws anew at every run. Here each candidate row draws once; the draw is kept per unique key in the
model's state table, and the query reads it from there. Candidates are the rows that pass the other conjuncts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.draw_lineage import drawn_per_row, read_twice
from spark_mv.query.rewrite.draw_texts import (
    DRAW,
    Draw,
    FilterTexts,
    Members,
    accepted_sql_of,
    draw_sql_of,
    expression_of,
    filtered_sql_of,
    of_all_items,
    stars,
)
from spark_mv.query.rewrite.group_draws import draw_sql_of_groups, filtered_sql_of_groups, obstacle_of_groups
from spark_mv.query.rewrite.keyed_rows import Keyed, keyed
from spark_mv.query.rewrite.pin import clock_spans
from spark_mv.query.syntax.aggregates import aggregates, not_of_one_row
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parse import Parsed, parse, read_query
from spark_mv.query.syntax.parser import Call, first_offset
from spark_mv.query.syntax.source_blocks import Block, Context, Item, alone, conjuncts, select_blocks, span_of
from spark_mv.query.syntax.source_text import (
    Edit,
    SourceTextError,
    Span,
    apply_edits,
    line_and_column,
    tokenize,
)
from spark_mv.query.syntax.table_name import quoted, unquoted

_PLACES = {Context.CTE: "the CTE {}", Context.OUTERMOST: "a term of a set operation"}
CURE = "give the draw its own nondeterministic_mv with that unique_key, and filter on its column"


@dataclass(frozen=True)
class FilterDraws:
    """The draws of a query's filters. `draws` as written, in text order, kept in the state table's `columns`.

    `draw_sql` gives, for every candidate row, the unique key under its own names and each draw under its column.
    `filtered_sql` is the query with the draws read from the state table, which must hold every candidate's key once.
    `trial_sql` and `accepted_sql` find draws again for rows that are known to have passed the filter, see Members.
    Both are None with a `reason`: what is not supported, where (`line`, `column`: 1-based) and the cure. `followed`: both texts where
    each draw is a call in a conjunct of WHERE that reads its row alone, no clock and no subquery: what a change or the clock touches
    is told by the query without these conjuncts.
    """

    draws: tuple[str, ...]
    columns: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()
    draw_sql: str | None = None
    filtered_sql: str | None = None
    reason: str = ""
    line: int = 0
    column: int = 0
    trial_sql: str | None = None
    accepted_sql: str | None = None
    followed: FilterTexts | None = None


class _NotKept(Exception):
    def __init__(self, message: str, draw: Draw | None = None) -> None:
        super().__init__(message)
        self.draw = draw


@deep
def split_filter_draws(
    sql: str,
    unique_key: Sequence[str],
    state_table: str,
    levels: Mapping[str, Level] | None = None,
    reads: Sequence[tuple[int, int, str]] = (),
    members: Members | None = None,
) -> FilterDraws | None:
    """The draws in WHERE, JOIN ON, HAVING and QUALIFY; None when there are none (draws in the select list are not
    looked at). `levels`: declared levels of the project's own functions, in lower case; an unknown function draws.
    `reads`: where the text names a column that was drawn below (Analysis.drawn_reads); one that is filtered by is kept
    like a call in its place, and so are those beside it in the select list, which may stand for the same draw.
    """
    try:
        blocks = select_blocks(sql)
    except SourceTextError as error:
        return FilterDraws(
            (), reason=f"a random filter stands in SQL whose structure is not understood: {error}; {CURE}"
        )
    parsed = parse(sql)
    tree = parsed.tree if isinstance(parsed, Parsed) else exp.Select()
    draws = [draw for draw in _draws(tree, blocks, levels or {}) if draw.clause != "SELECT"]
    named = _reads(blocks, reads)
    in_where = {read.block for read in named if read.clause == "WHERE"}
    draws = sorted([*draws, *(read for read in named if read.block in in_where)], key=lambda draw: draw.span.start)
    if not draws:
        return None
    texts = tuple(draw.span.of(sql) for draw in draws)
    try:
        names = [unquoted(name) for name in unique_key]
        block, rows = _supported(sql, tree, blocks, draws, names)
        _check_lineage(sql, tree, block, draws, rows, levels or {})
        keys = [(name, _key(sql, block, own, levels or {})) for name, own in zip(names, rows.key, strict=True)]
        of_groups = draws[0].clause == "HAVING"
    except _NotKept as refusal:
        culprit = refusal.draw or draws[0]
        line, column = line_and_column(sql, culprit.span.start)
        return FilterDraws(texts, reason=f"{culprit.span.of(sql)} {refusal}", line=line, column=column)
    columns = tuple(f"{DRAW}{i}" for i in range(len(draws)))
    prints = tuple(draw.fingerprint or text_print(text) for draw, text in zip(draws, texts, strict=True))
    if of_groups:
        candidates = draw_sql_of_groups(sql, block, draws, dict(zip(names, rows.key, strict=True)), columns)
        filtered = filtered_sql_of_groups(sql, block, draws, keys, columns, state_table)
        return FilterDraws(texts, columns, prints, candidates, filtered)
    candidates = draw_sql_of(sql, block, draws, keys, columns)
    filtered = filtered_sql_of(sql, block, draws, keys, columns, state_table)
    return FilterDraws(
        texts,
        columns,
        prints,
        candidates,
        filtered,
        trial_sql=draw_sql_of(sql, block, draws, keys, columns, members) if members else None,
        accepted_sql=accepted_sql_of(sql, block, draws, keys, columns, members) if members else None,
        followed=FilterTexts(filtered, candidates) if rows.whole and _reads_its_row(sql, block, draws) else None,
    )


def _reads_its_row(sql: str, block: Block, draws: Sequence[Draw]) -> bool:
    if any(draw.fingerprint or draw.clause != "WHERE" for draw in draws):
        return False
    parts = conjuncts(block.tree.args["where"].this)
    drawn = [part for part in parts if any(span_of(part).holds(draw.span) for draw in draws)]
    clock = clock_spans(sql)
    return not any(part.find(exp.Query) or any(map(span_of(part).holds, clock)) for part in drawn)


def _supported(
    sql: str, tree: exp.Expr, blocks: tuple[Block, ...], draws: Sequence[Draw], key: Sequence[str]
) -> tuple[Block, Keyed]:
    """The block in whose WHERE every draw stands, where its rows have the unique_key, or in whose HAVING, where its groups do."""
    having = all(draw.clause == "HAVING" for draw in draws)
    first = blocks[draws[0].block]
    for draw in draws:
        block = blocks[draw.block]
        where = _PLACES.get(block.context, "a subquery").format(block.name)
        if block.context == Context.EXPRESSION or block.lateral:
            raise _NotKept(f"stands in {where}, where a row has no unique_key to keep the draw by; {CURE}", draw)
        if block is not first:
            raise _NotKept(
                f"stands in another SELECT than {draws[0].span.of(sql)}, and rows of one alone can be kept; {CURE}",
                draw,
            )
        if not having and draw.clause != "WHERE" and not (draw.fingerprint and draw.clause == "SELECT"):
            raise _NotKept(f"stands in {draw.clause}, where a row has no unique_key to keep the draw by; {CURE}", draw)
    block, rows = first, keyed(tree, first.span.start, key)
    if rows is None:
        raise _NotKept(
            f"stands in {where}, from which the unique_key {', '.join(key)} does not come to the result as it is (a column by its name, with the "
            "table's before it where others are joined; through no GROUP BY, no DISTINCT and no set operation but UNION ALL), so that a row has no key "
            f"to keep the draw by; pass it on, or {CURE}"
        )
    if having:
        why = obstacle_of_groups(sql, block, draws)
        if why is not None:
            raise _NotKept(f"{why[0]}; {CURE}", why[1])
        return block, rows
    obstacle = (
        "GROUP BY"
        if "GROUP BY" in block.clauses
        else "DISTINCT"
        if block.distinct
        else "PIVOT"
        if any(join.kind in ("PIVOT", "UNPIVOT") for join in block.joins)
        else "an aggregate"
        if any(aggregates(entry) for entry in block.tree.expressions)
        else ""
    )
    if obstacle:
        raise _NotKept(f"filters rows before {obstacle}, so that they have no unique_key of their own; {CURE}")
    if block.from_ is None:
        raise _NotKept("filters a SELECT without FROM")
    if block.where is not None and any(of_all_items(s) and block.where.holds(_star_at(s)) for s in stars(block)):
        raise _NotKept("stands beside a * in WHERE, which would take in the kept draws; name the columns there")
    return block, rows


def _star_at(star: exp.Star) -> Span:
    return Span(star.meta["start"], star.meta["start"] + 1)


def text_print(text: str) -> str:
    """The fingerprint of a draw that is written out: white space, comments and the case of words do not matter.

    >>> text_print("uniform(0, 1)") == text_print("UNIFORM( 0,/* to */1 )")
    True
    """
    parts: list[str] = []
    for before, token in pairwise((None, *tokenize(text))):
        assert token is not None
        open_ = before is None or before.text in _NONE_BEHIND or (token.text == "(" and before.word)
        parts.append("" if open_ or token.text in _NONE_BEFORE else " ")
        parts.append(token.word.lower() or token.text)
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


_NONE_BEHIND, _NONE_BEFORE = ("(", "[", "."), (")", "]", ",", ".")


def _reads(blocks: tuple[Block, ...], reads: Sequence[tuple[int, int, str]]) -> list[Draw]:
    """The drawn columns that WHERE and the select lists name."""
    found = []
    for start, end, print_ in reads:
        span = Span(start, end)
        owner = _owner(blocks, span)
        clause = _clause(blocks[owner], span) if owner is not None else ""
        if owner is not None and clause in ("WHERE", "SELECT"):
            found.append(Draw(span, owner, clause, print_))
    return found


def _check_lineage(
    sql: str, tree: exp.Expr, block: Block, draws: Sequence[Draw], rows: Keyed, levels: Mapping[str, Level]
) -> None:
    """Raises _NotKept unless every drawn column that is read is one draw per row of the result."""
    within = {
        _span(node).start
        for node in tree.walk()
        if isinstance(node.meta.get("call"), Call) and node.find_ancestor(exp.Lambda)
    }
    for draw in draws:
        if draw.span.start in within:
            raise _NotKept(
                "stands in a lambda, where it draws for each element; select the whole expression as a column of a CTE, and filter on that column",
                draw,
            )
    reads = [draw for draw in draws if draw.fingerprint]
    if not reads:
        return
    star = next((item for item in block.items if any(item.span.holds(_star_at(s)) for s in stars(block))), None)
    if star is not None:
        raise _NotKept(
            f"is read by {star.span.of(sql).strip()} as well, which would be another draw; name the columns of the select list",
            reads[0],
        )

    def drawn(node: exp.Expr) -> bool:
        return _draws_per_row(node, levels)

    if block.context != Context.OUTERMOST or block.set_operand:
        several = read_twice(tree, rows, drawn)
        if several:
            raise _NotKept(
                f"comes from {several}, which is read elsewhere, too, which would be another draw; {CURE}", reads[0]
            )
    nodes = {column.parts[0].meta.get("start"): column for column in tree.find_all(exp.Column)}
    for read in reads:
        column = nodes.get(read.span.start)
        if column is None or not drawn_per_row(rows, [column], drawn):
            raise _NotKept(f"is not drawn once per row of the result, so that no unique_key can keep it; {CURE}", read)


def _owner(blocks: tuple[Block, ...], span: Span) -> int | None:
    """The innermost block around a place."""
    around = [i for i, b in enumerate(blocks) if b.span.start <= span.start and span.end <= b.span.end]
    return min(around, key=lambda i: blocks[i].span.end - blocks[i].span.start) if around else None


def _draws(tree: exp.Expr, blocks: tuple[Block, ...], levels: Mapping[str, Level]) -> list[Draw]:
    """Every outermost call that draws per row, with its block and clause, in the order of the text."""
    found: list[Draw] = []
    spans = (_span(node) for node in tree.walk() if _draws_per_row(node, levels))
    for span in sorted(spans, key=lambda span: span.start):
        owner = _owner(blocks, span)
        clause = "" if owner is None or (found and found[-1].span.holds(span)) else _clause(blocks[owner], span)
        if owner is not None and clause:
            found.append(Draw(span, owner, clause))
    return found


def _clause(block: Block, span: Span) -> str:
    def inside(outer: Span | None) -> bool:
        return outer is not None and outer.start <= span.start and span.end <= outer.end

    if inside(block.where):
        return "WHERE"
    if any(inside(on) for join in block.joins for on in join.on):
        return "JOIN ON"
    if inside(block.select):
        return "SELECT"
    return next((name for name, body in block.others if name in ("HAVING", "QUALIFY") and inside(body)), "")


def _draws_per_row(node: exp.Expr, levels: Mapping[str, Level]) -> bool:
    """Whether the node is a call that draws. A function that nobody knows does, and one of a schema (`s.rand()`) is unknown."""
    call = node.meta.get("call")
    if not isinstance(call, Call) or call.keyword:
        return False
    level = levels.get(call.name) or (None if _of_schema(node) else level_of(call.name))
    return level is None or level is Level.NONDETERMINISTIC


def _of_schema(call: exp.Expr) -> bool:
    """Whether the function is called with its schema."""
    return isinstance(call.parent, exp.Dot) and call.arg_key == "expression"


def _span(call: exp.Expr) -> Span:
    """The place of a call, with the schema of its function."""
    written = call.meta["call"]
    start = first_offset(call.parent) if _of_schema(call) else None
    return Span(written.start if start is None else start, written.end)


def _key(sql: str, block: Block, name: str, levels: Mapping[str, Level]) -> str:
    """SQL of a key column over the rows of FROM."""
    wanted = name.lower()
    listed: list[str] = []
    for item, entry in zip(block.items, block.tree.expressions, strict=True):
        text, output = expression_of(sql, item)
        if output.lower() == wanted:
            return _plain_key(sql, block, item, text, name, levels)
        star = entry.this if isinstance(entry, exp.Column) else entry
        if isinstance(star, exp.Star) and not _excepts(star, wanted):
            listed.append(sql[item.span.start : star.meta["start"]])
    if len(listed) == 1:
        return f"{listed[0].strip()}{quoted(name)}"
    raise _NotKept(f"filters rows whose unique_key column {name} is not found in the select list; name it there")


def _excepts(star: exp.Star, name: str) -> bool:
    """Whether EXCEPT names the column, or a field of it."""
    given = [column for column in star.args.get("except_") or [] if isinstance(column, exp.Column)]
    return any(part.name.lower() == name for column in given for part in column.parts)


def _plain_key(sql: str, block: Block, item: Item, text: str, name: str, levels: Mapping[str, Level]) -> str:
    tree = read_query(f"SELECT {text}").expressions[0]
    if any(_draws_per_row(node, levels) for node in tree.walk()):
        raise _NotKept(f"filters rows whose unique_key column {name} is itself drawn")
    if not_of_one_row(tree):
        raise _NotKept(f"filters rows whose unique_key column {name} is not computed from a row of FROM alone; {CURE}")
    read = {column.name.lower() for column in tree.find_all(exp.Column) if not column.table}
    for other in block.items:
        if other is item or not other.alias or other.alias.lower() not in read:
            continue
        source = read_query(f"SELECT {expression_of(sql, other)[0]}")
        if other.alias.lower() not in {column.name.lower() for column in source.find_all(exp.Column)}:
            raise _NotKept(
                f"filters rows whose unique_key column {name} is computed from the output column {other.alias}, which "
                "WHERE does not see; write its expression out"
            )
    return text


def expand_star(sql: str, analysis: Analysis, read: Callable[[str], Analysis]) -> str:
    """The query with a lone `*` over one FROM item written out as its columns, where one of them is drawn and WHERE
    reads a drawn column: the star would read another draw. As it was where the columns or its structure are not known. `read` gives the verdict on
    a text."""
    try:
        every = select_blocks(sql)
    except SourceTextError:
        return sql
    filtered = {read.block for read in _reads(every, analysis.drawn_reads) if read.clause == "WHERE"}
    if len(filtered) != 1:
        return sql
    block = every[filtered.pop()]
    lone = len(block.items) == 1 and block.items[0].span.of(sql).rstrip().endswith("*")
    if not lone or block.joins:
        return sql
    names = [column.name for column in read(alone(sql, block, block.span.of(sql))).columns]
    if "*" in names or len({name.lower() for name in names}) < len(names):
        return sql
    qualifier = block.items[0].span.of(sql).rstrip()[:-1].rstrip()
    columns = ", ".join(f"{qualifier}{quoted(name)}" for name in names)
    return apply_edits(sql, [Edit(block.items[0].span.start, block.items[0].span.end, columns)])
