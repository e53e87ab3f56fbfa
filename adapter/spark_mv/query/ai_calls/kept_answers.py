"""Which rows a call need not be asked about, because the model's table keeps an answer for their key: `freeze` shows the first one, whatever
becomes of the text."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.ai_calls.blocks import TokenBlock, TokenItem
from spark_mv.query.ai_calls.flow import Flow
from spark_mv.query.ai_calls.places import Places
from spark_mv.query.ai_calls.signatures import ParsedCall
from spark_mv.query.rewrite.from_items import star_of
from spark_mv.query.rewrite.keyed_rows import keyed
from spark_mv.query.syntax.table_name import quoted


@dataclass(frozen=True)
class KeptAnswers:
    """`table`: the model's own, as it stands in SQL. `columns`: those whose first value is kept."""

    table: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]


def kept_answer(places: Places, parsed: ParsedCall, kept: KeptAnswers) -> tuple[str, str] | None:
    """The column that alone shows the call's answer, and SQL over the FROM of its SELECT that is not NULL where the table has a value in this
    column of the row's key. None where the answer goes anywhere else, or keys cannot be told there."""
    block, flow = places.block[id(parsed)], Flow(places.text)
    item = next((i for i in block.items if i.span.holds(parsed.call.span)), None)
    if item is None or not item.name or not flow.row_wise(block) or _names(flow, block, item):
        return None
    name, query = item.name, block.query
    while (found := flow.reader(query)) is not None:
        outer, alias = found
        handed = [i for i in outer.items if flow.hands_on(i, name, alias)]
        if not flow.row_wise(outer) or len(handed) != 1 or _names(flow, outer, handed[0], name):
            return None
        name = name if handed[0].star else handed[0].name
        query = outer.query
    outermost = query.parent is None and query.parent_cte is None and query.outer is None
    if not outermost or name.lower() not in {column.lower() for column in kept.columns}:
        return None
    rows = keyed(places.text.structure.tree, block.span.start, kept.keys)
    keys = [_expression(flow, block, key) for key in rows.key] if rows is not None else [None]
    if None in keys:
        return None
    listed = ", ".join(f"{quoted(key)} AS __mv_kept_{n}" for n, key in enumerate(kept.keys))
    same = " AND ".join(f"__mv_kept_{n} = {key}" for n, key in enumerate(keys))
    there = f"SELECT {listed} FROM {kept.table} WHERE {quoted(name)} IS NOT NULL"
    return name, f"(SELECT max(true) FROM ({there}) AS __mv_kept WHERE {same})"


def _names(flow: Flow, block: TokenBlock, item: TokenItem, name: str = "") -> bool:
    """Whether anything in the SELECT but the item names its column, or `name`, the one that it hands on. Of its own alias, only the list knows;
    queries in FROM have names of their own."""
    first, end = flow.text.token_range(block.span if name else block.list_span)
    inner = [query.span for query in block.children if block.clause_of(query.span) == "FROM"]
    named = {item.name.lower(), name.lower()} - {""}
    spans = (flow.text.span(i, i + 1) for i in range(first, end) if flow.text.identifier(i))
    others = (span for span in spans if not item.span.holds(span) and not any(query.holds(span) for query in inner))
    return any(flow.text.text(span).strip("`").lower() in named for span in others)


def _expression(flow: Flow, block: TokenBlock, name: str) -> str | None:
    """What gives a column of the SELECT, as SQL over its FROM: a column as it is. None for anything else."""
    listed = [item for item in block.items if not item.star and item.name.lower() == name.lower()]
    if listed:
        tree = listed[0].tree
        aliases = {item.name.lower() for item in block.items if item.name} - {name.lower()}
        plain = len(listed) == 1 and isinstance(tree, exp.Column) and (tree.table or tree.name.lower() not in aliases)
        return flow.text.text(listed[0].expression) if plain else None
    stars = [item for item in block.items if item.star]
    if len(stars) != 1 or any(star_of(stars[0].tree).args.values()):
        return None
    return (
        quoted(name) if isinstance(stars[0].tree, exp.Star) else f"{flow.text.text(stars[0].span)[:-1]}{quoted(name)}"
    )
