"""Which rows of a query show a failing answer, column by column: what `on_ai_error: keep_old` asks, because a failing answer and an
answer that is NULL look the same in the query's own result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_mv.query.ai_calls.blocks import Edit, TokenBlock, TokenItem, edited, outermost
from spark_mv.query.ai_calls.places import Places, Render
from spark_mv.query.ai_calls.signatures import ParsedCall
from spark_mv.query.syntax.aggregates import groups_or_windows
from spark_mv.query.syntax.source_text import Span
from spark_mv.query.syntax.table_name import quoted

_ROW_WISE = frozenset({"FROM", "WHERE"})


@dataclass(frozen=True)
class Failing:
    """`sql` gives, for each row of the query, its key and whether an answer in one of `columns` is failing (BOOLEAN, under the column's
    name)."""

    sql: str
    columns: tuple[str, ...]


def failing_rows(places: Places, keys: Sequence[str], flag: Callable[[ParsedCall, Render], str]) -> Failing | str:
    """`flag` gives SQL that is true where the answer to a call is failing. Otherwise, why it cannot be told for which rows."""
    block = _outermost(places)
    if block is None:
        return "stands beside another SELECT"
    for parsed in (one for one in places.calls if places.text.is_read(one.call)):
        if places.block[id(parsed)] is not block or places.clause[id(parsed)] != "SELECT":
            return "stands elsewhere than in the SELECT list of the outermost SELECT"
    text, wanted = places.text, {key.lower() for key in keys}
    asked = {id(item): places.inside([item.span]) for item in block.items}
    if block.distinct or block.clauses.keys() - _ROW_WISE or any(_groups(item) for item in block.items):
        return "stands beside GROUP BY, DISTINCT, ORDER BY, LIMIT, an aggregate or a window"
    if any(calls and (not item.name or item.name.lower() in wanted) for item, calls in _with(block, asked)):
        return "stands in a column of unique_key, or in one without an alias"

    def render(span: Span) -> str:
        return edited(text.sql, span, outermost(places.all_edits, span))

    listed: list[str] = []
    columns: list[str] = []
    for item, calls in _with(block, asked):
        shown = _named_in(places, item, columns)
        if calls or shown:
            flags = [flag(parsed, render) for parsed in calls] + [quoted(name) for name in shown]
            listed.append(f"({' OR '.join(flags)}) AS {quoted(item.name)}")
            columns.append(item.name)
        elif item.star or item.name.lower() in wanted:
            listed.append(render(item.span))
    whole = Span(0, len(text.sql))
    edits: list[Edit] = [(block.list_span, ", ".join(listed))]
    edits += [
        edit for edit in places.all_edits if not block.list_span.holds(edit[0]) or edit[0].start == block.list_span.end
    ]
    names = ", ".join(quoted(name) for name in (*keys, *columns))
    return Failing(f"SELECT {names} FROM (\n{edited(text.sql, whole, outermost(edits, whole))}\n)", tuple(columns))


def _with(block: TokenBlock, asked: dict[int, list[ParsedCall]]) -> list[tuple[TokenItem, list[ParsedCall]]]:
    return [(item, asked[id(item)]) for item in block.items]


def _outermost(places: Places) -> TokenBlock | None:
    """The one SELECT that gives the query's rows; None where a set operation does."""
    found = [
        block
        for block in places.text.blocks
        if block.query.parent is None and block.query.outer is None and block.query.parent_cte is None
    ]
    return found[0] if len(found) == 1 and not found[0].query.set_operation else None


def _groups(item: TokenItem) -> bool:
    return not item.star and groups_or_windows(item.tree)


def _named_in(places: Places, item: TokenItem, columns: Sequence[str]) -> list[str]:
    """Of the columns before it, those that the item names: Spark lets it read them by their alias."""
    if item.star or not item.name:
        return []
    first, end = places.text.token_range(item.expression)
    words = {places.text.tokens[i].text.lower() for i in range(first, end) if places.text.identifier(i)}
    return [name for name in columns if name.lower() in words]
