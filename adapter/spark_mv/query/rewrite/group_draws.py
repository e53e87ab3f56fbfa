"""Draws in HAVING: one for each group, kept by the key of the group, of which the key of its row is made.

`having rand() < 0.5` draws for each group anew at every run. Here each candidate group draws once. Candidates are the groups
that pass the other conjuncts; the state table joins below GROUP BY, where each row of a group finds the group's own draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from spark_mv.query.rewrite.draw_texts import Draw, joined, stars
from spark_mv.query.syntax.aggregates import of_rows, several_sets
from spark_mv.query.syntax.condition import ALWAYS
from spark_mv.query.syntax.parse import read_query
from spark_mv.query.syntax.source_blocks import Block, alone, conjuncts, span_of
from spark_mv.query.syntax.source_text import Edit, apply_edits
from spark_mv.query.syntax.table_name import quoted

CANDIDATES = "__mv_groups"


def obstacle_of_groups(sql: str, block: Block, draws: Sequence[Draw]) -> tuple[str, Draw] | None:
    """Why the draws of a HAVING cannot be kept by the keys of groups, and which of them."""
    group = block.tree.args.get("group")
    first = draws[0]
    if group is None:
        return "stands in HAVING without GROUP BY, where the one row has no unique_key to keep the draw by", first
    if several_sets(group):
        return "stands in HAVING of several grouping sets, whose keys are NULL in some rows", first
    for word in ("WINDOW", "QUALIFY", "LIMIT", "OFFSET"):
        if word in block.clauses:
            return f"stands in HAVING beside {word}", first
    if stars(block):
        return "stands in HAVING of a SELECT with a *; name the columns", first
    having = block.tree.args["having"]
    aggregated = {node.meta["call"].start for node in having.walk() if "call" in node.meta and of_rows(node)}
    for draw in draws:
        if any(draw.span.start <= start < draw.span.end for start in aggregated):
            return "stands in an aggregate of HAVING, where it draws for each row of a group", draw
        if read_query(f"SELECT {draw.span.of(sql)}").expressions[0].find(exp.Column, exp.Query):
            return "stands in HAVING and reads columns; a draw that is kept for a group takes literals only", draw
    return None


def draw_sql_of_groups(
    sql: str, block: Block, draws: Sequence[Draw], names: Mapping[str, str], columns: Sequence[str]
) -> str:
    """For every candidate group its key (the model's name: the one in this SELECT) and its draws. The select list stays, because GROUP BY may name
    its entries."""
    having = block.tree.args["having"]
    start = block.span.start
    drawn = [
        Edit(span.start - start, span.end - start, ALWAYS)
        for span in map(span_of, conjuncts(having.this))
        if any(span.holds(draw.span) for draw in draws)
    ]
    end = next(body.end for word, body in block.others if word == "HAVING")
    entries = [quoted(own) if own == name else f"{quoted(own)} AS {quoted(name)}" for name, own in names.items()]
    entries += [f"{draw.span.of(sql)} AS {column}" for draw, column in zip(draws, columns, strict=True)]
    return f"SELECT {', '.join(entries)} FROM ({alone(sql, block, apply_edits(sql[start:end], drawn))}) AS {CANDIDATES}"


def filtered_sql_of_groups(
    sql: str, block: Block, draws: Sequence[Draw], keys: Sequence[tuple[str, str]], columns: Sequence[str], table: str
) -> str:
    """All rows of a group have the same draw beside them: max() reads it."""
    read = [
        Edit(draw.span.start, draw.span.end, f"max(__mv_state.{column})")
        for draw, column in zip(draws, columns, strict=True)
    ]
    return apply_edits(sql, [*joined(sql, block, keys, columns, table), *read])
