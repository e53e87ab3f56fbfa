"""AI calls in the condition of a join: over one of the joined tables, they move into that table as a column; of an inner join, their condition
moves to WHERE."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.ai_calls.blocks import Edit, TokenBlock, TokenCall, TokenItem, edited
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.aggregates import called
from spark_mv.query.syntax.condition import read_condition, read_expression
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_text import Span

_JOIN_WORDS = {"JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "OUTER", "SEMI", "ANTI"}
_NEXT_ITEM = {*_JOIN_WORDS, ",", "LATERAL"}  # begin what stands behind an item of FROM


class Refused(Exception):
    """A call that cannot be moved to where it could be answered, with the reason and the cure."""

    def __init__(self, call: TokenCall, reason: str, cure: str) -> None:
        super().__init__(reason)
        self.error = QueryError(
            "AI_UNSUPPORTED_PLACE", f"{call.name} at line {call.line} {reason}; {cure}.", call.line, call.column
        )


def out_of_join(text: TokenText, call: TokenCall, block: TokenBlock, hoists: int) -> str | None:
    """The text with the call moved out of the condition that it stands in; None where it stands in none. Raises Refused."""
    where = block.clauses["FROM"]
    first, end = text.token_range(where)
    top = list(text.top_level(first, end))
    at = text.token_range(call.span)[0]
    on = next((i for i in reversed(top) if i < at and text.words[i] == "ON"), None)
    if on is None:
        return None
    stop = next((i for i in top if i > at and text.words[i] in _NEXT_ITEM), end)
    if any(on < i < at and text.words[i] in {",", "JOIN", "LATERAL"} for i in top):
        return None
    alias = _only_table(text, call)
    relation = _relation(text, top, first, end, alias) if alias else None
    if alias and relation is not None:
        name = f"__mv_h{hoists}"
        source = text.text(relation)
        early = _early_conditions(text, block, top, first, relation, alias)
        derived = f"(SELECT {alias}.*, {text.text(call.span)} AS {name} FROM {source}{early}) AS {alias}"
        start = text.token_range(relation)[0]
        shown = text.words[max(start - 2, 0) : start] not in (["SEMI", "JOIN"], ["ANTI", "JOIN"])
        hidden = _hide(text, block, alias, name) if shown else []
        edits = [(relation, derived), (call.span, f"{alias}.{name}"), *hidden]
        return edited(text.sql, Span(0, len(text.sql)), edits)
    return _to_where(text, call, block, top, on, stop)


def _early_conditions(
    text: TokenText, block: TokenBlock, top: list[int], first: int, relation: Span, alias: str
) -> str:
    """Conditions of WHERE over this table alone, where they may be tried before the joins: fewer rows to ask about."""
    if "WHERE" not in block.clauses or {text.words[i] for i in top} & {"RIGHT", "FULL", "LATERAL"}:
        return ""
    start = text.token_range(relation)[0]
    if start != first and {text.words[start - 1], text.words[start - 2]} & {"LEFT", "OUTER", "SEMI", "ANTI"}:
        return ""
    found = []
    for condition in text.conjuncts(block.clauses["WHERE"]):
        tree = read_condition(text.text(condition))
        if tree is None:
            continue
        columns = {c.table.lower() for c in tree.find_all(exp.Column)}
        asks = any((level_of(called(node)) or Level.AI) == Level.AI for node in tree.walk() if called(node))
        if columns == {alias.lower()} and not tree.find(exp.Select) and not asks:
            found.append(f"({text.text(condition)})")
    return f" WHERE {' AND '.join(found)}" if found else ""


def _to_where(text: TokenText, call: TokenCall, block: TokenBlock, top: list[int], on: int, stop: int) -> str:
    join = next(i for i in reversed(top) if i < on and text.words[i] == "JOIN")
    kind = {text.words[i] for i in range(max(join - 2, 0), join)} & _JOIN_WORDS
    later = {text.words[i] for i in top if i >= stop}
    cure = "compute it as a column in a CTE and join that"
    if kind - {"INNER"}:
        raise Refused(call, "stands in the condition of an outer join over both sides", cure)
    if later & {"RIGHT", "FULL"}:
        raise Refused(call, "stands in a join condition before an outer join", cure)
    conditions = text.conjuncts(text.span(on + 1, stop))
    moved = next(c for c in conditions if c.holds(call.span))
    edits: list[Edit] = [(moved, "true")]
    condition = f"({text.text(moved)})"
    if "WHERE" in block.clauses:
        given = block.clauses["WHERE"]
        edits.append((Span(given.start, given.start), "("))
        edits.append((Span(given.end, given.end), f") AND {condition}"))
    else:
        at = block.clauses["FROM"].end
        edits.append((Span(at, at), f" WHERE {condition}"))
    return edited(text.sql, Span(0, len(text.sql)), edits)


def _only_table(text: TokenText, call: TokenCall) -> str | None:
    """The one alias that qualifies every column in the arguments, or None."""
    aliases = set()
    for argument in call.arguments:
        tree = read_expression(text.text(argument))
        if tree is None or tree.find(exp.Select):
            return None
        aliases |= {c.table for c in tree.find_all(exp.Column)}
    return aliases.pop() if len(aliases) == 1 and "" not in aliases else None


def _relation(text: TokenText, top: list[int], first: int, end: int, alias: str) -> Span | None:
    """The span `table [AS] alias` or `(subquery) [AS] alias` of FROM that has the alias."""
    stops = {*_NEXT_ITEM, "ON", "USING"}
    starts = [first] + [i + 1 for i in top if text.words[i] in {"JOIN", ","} and i + 1 < end]
    for start in starts:
        stop = next((i for i in top if i >= start and text.words[i] in stops), end)
        if stop == start or text.tokens[stop - 1].text.lower() != alias.lower():
            continue
        words = [text.words[i] for i in range(start, stop)]
        simple = all(text.identifier(i) or text.words[i] in {".", "AS"} for i in range(start, stop))
        if simple or (words[0] == "(" and text.match[start] >= stop - 3):
            return text.span(start, stop)
    return None


def _hide(text: TokenText, block: TokenBlock, alias: str, name: str) -> list[Edit]:
    return [
        (item.span, hidden_star(text, item, [name]))
        for item in block.items
        if item.star
        and (text.text(item.span).startswith("*") or text.text(item.span).lower().startswith(alias.lower() + "."))
    ]


def hidden_star(text: TokenText, item: TokenItem, names: list[str]) -> str:
    """The star item without the columns that were added for AI calls."""
    first, end = text.token_range(item.span)
    for i in range(first, end):
        if text.words[i] == "EXCEPT":
            close = text.tokens[text.match[i + 1]].start
            return text.sql[item.span.start : close] + ", " + ", ".join(names) + text.sql[close : item.span.end]
    return f"{text.text(item.span)} EXCEPT ({', '.join(names)})"
