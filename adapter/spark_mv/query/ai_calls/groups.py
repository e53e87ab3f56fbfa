"""AI functions that take a group's values: their argument becomes the sorted list of these, before anything else looks at the call.

The list is JSON, has each value as often as it came, and no NULLs; a group without any is NULL, and not asked about. Sorted, it
is the same in whatever order Spark sees the rows: only a group whose members changed is another question.
"""

from __future__ import annotations

from spark_mv.query.ai_calls.blocks import Edit, TokenCall, edited
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.functions.catalogue import ai_aggregates
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_text import Span

OF_GROUPS = ai_aggregates()


def with_lists(text: TokenText) -> tuple[TokenText, tuple[QueryError, ...]]:
    """The text with the first argument of these calls as a list, or as given with the refusals.

    >>> with_lists(TokenText("SELECT ai_agg(body, 'What is asked for?') FROM t"))[0].sql[:63]
    'SELECT ai_agg/*mv@1:8*/(nullif(to_json(sort_array(collect_list('
    """
    calls = [call for call in text.calls(OF_GROUPS) if call.arguments]
    if not calls:
        return text, ()
    errors = tuple(error for call in calls if (error := _refusal(text, call)) is not None)
    if errors:
        return text, errors
    edits: list[Edit] = []
    for call in sorted(calls, key=lambda one: one.span.end - one.span.start):
        first, _ = text.token_range(call.span)
        at = text.tokens[first].end + 1
        edits.append((Span(at, at), f"/*mv@{call.line}:{call.column}*/"))
        edits.append(_list(text, call))
    return TokenText(edited(text.sql, Span(0, len(text.sql)), edits)), ()


def _list(text: TokenText, call: TokenCall) -> Edit:
    span = call.arguments[0]
    first, end = text.token_range(span)
    if end - first > 2 and text.words[first + 1] == "=>":
        first += 2
    distinct = "DISTINCT " if text.words[first] == "DISTINCT" else ""
    span = text.span(first + bool(distinct), end)
    return text.span(first, end), (
        f"nullif(to_json(sort_array(collect_list({distinct}cast({text.text(span)} as string)))), '[]')"
    )


def _refusal(text: TokenText, call: TokenCall) -> QueryError | None:
    _, end = text.token_range(call.span)
    after = text.words[end] if end < len(text.words) else ""
    inner = [
        one for one in text.calls(OF_GROUPS) if one is not call and call.span.holds(one.span) and one.span != call.span
    ]
    if after in {"OVER", "FILTER"}:
        why = f"{call.name} at line {call.line} stands before {after}, which it cannot take; "
        why += (
            "group in a CTE and join that"
            if after == "OVER"
            else "say `CASE WHEN … THEN … END` in its argument: NULLs do not count"
        )
    elif inner:
        why = f"{call.name} at line {call.line} has an aggregate of its own kind as argument; compute that in a CTE"
    else:
        return None
    return QueryError("AI_UNSUPPORTED_PLACE", f"{why}.", call.line, call.column)
