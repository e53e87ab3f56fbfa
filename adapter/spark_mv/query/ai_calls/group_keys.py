"""AI calls and the groups of their SELECT: which are keys of GROUP BY, and which are asked once for each group."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sqlglot import exp

from spark_mv.query.ai_calls.blocks import TokenBlock, TokenCall, TokenItem, edited
from spark_mv.query.ai_calls.groups import OF_GROUPS
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.syntax.aggregates import groups_or_windows, of_rows
from spark_mv.query.syntax.condition import read_expression
from spark_mv.query.syntax.source_text import Span

_CALL = "__mv_call"


def over_groups(text: TokenText, span: Span, but: Collection[str] = ()) -> bool:
    """Whether the expression has aggregates, `but` these, or window functions."""
    tree = read_expression(text.text(span))
    if tree is None:
        return bool(re.search(r"\bover\s*\(", text.text(span), re.IGNORECASE))
    return groups_or_windows(tree, but=but)


def grouped_by(text: TokenText, block: TokenBlock) -> list[TokenItem]:
    """The entries of the select list by which the SELECT groups: by their number, by their alias, or by ALL."""
    where = block.clauses["GROUP BY"]
    by_all = text.text(where).strip().lower() == "all"
    first, end = text.token_range(where)
    ends = ("(", ")", ",")
    keys = {
        text.tokens[i].text.lower()
        for i in range(first, end)
        if (i == first or text.words[i - 1] in ends) and (i + 1 == end or text.words[i + 1] in ends)
    }
    return [
        item
        for number, item in enumerate(block.items, 1)
        if (by_all or {str(number), item.name.lower()} & keys) and not groups_or_windows(item.tree, but=OF_GROUPS)
    ]


def of_group(text: TokenText, call: TokenCall, block: TokenBlock, calls: Sequence[TokenCall]) -> bool:
    """Whether the call has one value for each group, of the keys of GROUP BY and no key itself: Spark takes no subquery there."""
    where = block.clauses.get("GROUP BY")
    item = next((item for item in block.items if item.span.holds(call.span)), None)
    if where is None or item is None or item in grouped_by(text, block) or any(where.holds(c.span) for c in calls):
        return False
    return asked_of_rows(text, item.expression, call.span) is False


def asked_of_rows(text: TokenText, span: Span, call: Span) -> bool | None:
    """Whether an aggregate or a window function of the expression reads the answer to the call in it: it is asked for rows, not for groups.
    None for what is not understood."""
    tree = read_expression(edited(text.sql, span, [(call, _CALL)]))
    return None if tree is None else any(of_rows(c) for c in tree.find_all(exp.Column) if c.name == _CALL)
