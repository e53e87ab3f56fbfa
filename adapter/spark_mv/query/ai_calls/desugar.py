"""Queries with AI calls in awkward places, turned into equal ones where each call stands over plain columns.

- a call over aggregates, windows, subqueries, keys of GROUP BY or lateral column aliases, and one inside another beside a LATERAL VIEW:
  its arguments move into a derived table that is the old SELECT, the call stays in a new SELECT around it (Spark itself resolves what an
  alias means);
- a call in a join condition over one of the joined tables: it moves into that table as a column;
- any other call in the condition of an inner join: its condition moves to WHERE.

Each call is marked with its place in the user's text by a comment, so that messages keep naming that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from spark_mv.query.ai_calls.blocks import Edit, TokenBlock, TokenCall, TokenItem, edited
from spark_mv.query.ai_calls.group_keys import of_group, over_groups
from spark_mv.query.ai_calls.groups import OF_GROUPS
from spark_mv.query.ai_calls.join_conditions import Refused, out_of_join
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.syntax.aggregates import groups_or_windows, read_by
from spark_mv.query.syntax.condition import read_expression
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_text import Span
from spark_mv.query.syntax.table_name import quoted

_OF_RESULTS = {"ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET"}
_MOST_STEPS = 100


def desugar(text: TokenText, names: Collection[str]) -> tuple[TokenText, tuple[QueryError, ...]]:
    """The equal query, or the text as given with the refusals."""
    marked = [_mark(text, c) for c in text.calls(names)]
    original, steps, hoists = text, 0, 0
    text = TokenText(edited(text.sql, Span(0, len(text.sql)), marked)) if marked else text
    while steps < _MOST_STEPS:
        steps += 1
        try:
            changed = _step(text, names, hoists)
        except Refused as refused:
            return original, (refused.error,)
        if changed is None:
            return text, ()
        hoists += 100
        text = TokenText(changed)
    raise AssertionError("every step removes a call from an awkward place")


def _mark(text: TokenText, call: TokenCall) -> Edit:
    at = call.span.start + len(_word(text, call))
    return Span(at, at), f"/*mv@{call.line}:{call.column}*/"


def _word(text: TokenText, call: TokenCall) -> str:
    first, _ = text.token_range(call.span)
    token = text.tokens[first]
    return text.sql[token.start : token.end + 1]


def _step(text: TokenText, names: Collection[str], hoists: int) -> str | None:
    calls = text.calls(names)
    for call in calls:
        block = text.block_of(call.span)
        if block is None:
            continue
        clause = block.clause_of(call.span)
        if clause == "FROM":
            change = out_of_join(text, call, block, hoists)
            if change is not None:
                return change
        if clause == "SELECT" and _awkward(text, call, block, calls):
            return _wrapped(text, block, calls, hoists)
    return None


# ---- over aggregates, windows, aliases


def _awkward(text: TokenText, call: TokenCall, block: TokenBlock, calls: Sequence[TokenCall]) -> bool:
    if of_group(text, call, block, calls) or _of_lateral_view(text, call, block, calls):
        return True
    if _guarded_by_alias(text, call, block):
        return True
    return any(over_groups(text, a) or _over_query(text, a) or _over_aliases(text, a, block) for a in call.arguments)


def _of_lateral_view(text: TokenText, call: TokenCall, block: TokenBlock, calls: Sequence[TokenCall]) -> bool:
    """Whether the call has another among its arguments, whose answer is joined to FROM, where columns of a LATERAL VIEW are not yet."""
    if "FROM" not in block.clauses or not any(c is not call and call.span.holds(c.span) for c in calls):
        return False
    return text.lateral_view(block.clauses["FROM"]) is not None


def _guarded_by_alias(text: TokenText, call: TokenCall, block: TokenBlock) -> bool:
    """Whether a CASE around the call has a condition that may name an earlier column of the same select list: which rows are asked about would depend
    on it, and FROM does not have it. Not where the CASE holds queries, which cannot be taken apart: then it does not keep rows from being asked about."""
    node = text.node_of(call)
    above = node.parent if node is not None else None
    earlier, stop = text.earlier_names(block, call.span), read_by(node) if node is not None else None
    while earlier and above is not None and above is not stop and not isinstance(above, exp.Query):
        if isinstance(above, exp.Case) and above.find(exp.Query) is None:
            parts = [above.this, *(branch.this for branch in above.args["ifs"])]
            columns = (column for part in parts if part is not None for column in part.find_all(exp.Column))
            if any(not column.table and column.name.lower() in earlier for column in columns):
                return True
        above = above.parent
    return False


def _over_query(text: TokenText, span: Span) -> bool:
    """Whether an argument holds a subquery: where the answer is looked up, in a subquery itself, it would not see its outer row."""
    tree = read_expression(text.text(span))
    return tree is not None and tree.find(exp.Query) is not None


def _over_aliases(text: TokenText, span: Span, block: TokenBlock) -> bool:
    """Whether an argument may name an earlier column of the same select list rather than a column of FROM."""
    earlier = text.earlier_names(block, span)
    first, end = text.token_range(span)
    return any(
        text.identifier(i) and _bare(text, i) and text.tokens[i].text.lower() in earlier for i in range(first, end)
    )


def _bare(text: TokenText, i: int) -> bool:
    before = text.words[i - 1] if i else ""
    after = text.words[i + 1] if i + 1 < len(text.words) else ""
    return before != "." and after not in {"(", "."} and after != "=>"


def _wrapped(text: TokenText, block: TokenBlock, calls: list[TokenCall], hoists: int) -> str:
    """The block inside a new SELECT that makes the awkward calls."""
    mine = [c for c in calls if text.block_of(c.span) is block and block.clause_of(c.span) == "SELECT"]
    awkward = [c for c in mine if _awkward(text, c, block, calls)]
    outer_items = [i for i in block.items if any(i.span.holds(c.span) for c in awkward)]
    moved = {i.name.lower() for i in outer_items if i.name}
    for item in block.items:  # an alias is named behind the column that it is of
        if item not in outer_items and not item.star and _mentions(text, item.expression, moved, after=outer_items):
            outer_items.append(item)
            moved |= {item.name.lower()} - {""}
    if any(i.star for i in block.items):
        last_inner = max(n for n, i in enumerate(block.items) if i not in outer_items)
        if any(block.items.index(i) < last_inner for i in outer_items):
            raise Refused(awkward[0], "stands before a column or `*` of the same SELECT", "put it last, or into a CTE")
    tail = _tail(block, awkward[0])
    for clause in ("HAVING", "ORDER BY", "QUALIFY"):
        if (
            clause in block.clauses
            and block.clauses[clause].start < tail
            and _mentions(text, block.clauses[clause], moved, after=())
        ):
            raise Refused(
                awkward[0], f"is used in {clause} of its own SELECT", f"put the call into a CTE and {clause} outside"
            )
    inner, extra, outer, hidden = [], [], [], []
    for number, item in enumerate(block.items):
        if item in outer_items:
            expression, columns = _hoisted(text, item, [c for c in awkward if item.span.holds(c.span)], moved, hoists)
            hoists += len(columns)
            columns = columns or [(f"__mv_none{number}", "NULL")]
            hidden += [name for name, _ in columns]
            placed = [f"{sql} AS {name}" for name, sql in columns]
            inner.append(placed[0])  # in place, so that GROUP BY 2 keeps its meaning
            extra += placed[1:]
            name = f" AS {quoted(item.name)}" if item.name else ""
            outer.append(expression + name)
        elif item.star:
            inner.append(text.text(item.span))
        else:
            name = item.name or f"__mv_c{number}"
            inner.append(text.text(item.span) if item.name else f"{text.text(item.span)} AS {name}")
            label = "" if item.name else f" AS {quoted(text.text(item.span))}"
            outer.append(quoted(name) + label)
    if any(i.star for i in block.items):
        computed = outer[-len(outer_items) :]
        outer = [f"* EXCEPT ({', '.join(hidden)})", *computed]
    distinct = "DISTINCT " if block.distinct else ""
    rest, behind = text.sql[block.list_span.end : tail], text.sql[tail : block.span.end]
    new = f"SELECT {distinct}{', '.join(outer)} FROM (SELECT {', '.join(inner + extra)}{rest}) AS __mv_b"
    return text.sql[: block.span.start] + new + (f" {behind}" if behind else "") + text.sql[block.span.end :]


def _tail(block: TokenBlock, call: TokenCall) -> int:
    """Where the clauses begin that stay behind the new SELECT: LIMIT, with its order, where rows are counted that DISTINCT has left."""
    if not block.distinct or "LIMIT" not in block.clauses:
        return block.span.end
    clauses = block.tree.meta["select"].clauses
    first = next((n for n, (word, _, _) in enumerate(clauses) if word in _OF_RESULTS), len(clauses))
    order, names = block.tree.args.get("order"), {item.name.lower() for item in block.items}
    columns = order.find_all(exp.Column) if order is not None else ()
    shown = all(not c.table and c.name.lower() in names for c in columns) or any(item.star for item in block.items)
    if any(word == "WINDOW" for word, _, _ in clauses[first:]) or not shown or (order and groups_or_windows(order)):
        raise Refused(
            call,
            "stands over an aggregate, a window or an alias in a SELECT DISTINCT with LIMIT",
            "order by names of columns alone, or put the call into a CTE",
        )
    return int(clauses[first][1])


def _mentions(text: TokenText, span: Span, names: Collection[str], after: Collection[TokenItem]) -> bool:
    if after and not any(i.span.end <= span.start for i in after):
        return False
    first, end = text.token_range(span)
    return any(
        text.identifier(i) and _bare(text, i) and text.tokens[i].text.lower() in names for i in range(first, end)
    )


def _hoisted(
    text: TokenText, item: TokenItem, awkward: list[TokenCall], moved: Collection[str], hoists: int
) -> tuple[str, list[tuple[str, str]]]:
    """The item's expression over hoisted columns, and these as (name, SQL over the old FROM)."""
    columns: list[tuple[str, str]] = []
    edits: list[Edit] = []

    def hoist(span: Span) -> None:
        name = f"__mv_h{hoists + len(columns)}"
        columns.append((name, text.text(span)))
        edits.append((span, name))

    covered: list[Span] = []
    for call in sorted(awkward, key=lambda c: c.span.start):
        if any(c.holds(call.span) for c in covered) or any(_mentions(text, a, moved, ()) for a in call.arguments):
            continue  # a call about a column that moves out is about an earlier column of the new SELECT, which the next step takes apart
        covered.append(call.span)
        for argument in call.arguments:
            first, end = text.token_range(argument)
            if end - first > 2 and text.words[first + 1] == "=>":
                argument = text.span(first + 2, end)
            if _has_columns(text.text(argument)):
                hoist(argument)
    first, end = text.token_range(item.expression)
    i = first
    while i < end:
        token = text.tokens[i]
        inside = next((c for c in covered if c.start <= token.start < c.end), None)
        if inside is not None:
            i = text.token_range(inside)[1]
            continue
        if i + 1 < end and text.words[i + 1] == "=>":
            i += 2
        elif text.identifier(i) and i + 1 < end and text.words[i + 1] == "(":
            close = text.match[i + 1]
            call_end = close + 1
            while call_end < end and text.words[call_end] in {"OVER", "FILTER"} and text.words[call_end + 1] == "(":
                call_end = text.match[call_end + 1] + 1
            span = text.span(i, call_end)
            whole = not any(span.holds(c) for c in covered) and not _mentions(text, span, moved, ())
            if whole and over_groups(text, span):
                hoist(span)
                i = call_end
            else:
                i += 2
        elif text.identifier(i) and not (_bare(text, i) and token.text.lower() in moved):
            last = i
            while last + 2 < end and text.words[last + 1] == "." and text.identifier(last + 2):
                last += 2
            hoist(text.span(i, last + 1))
            i = last + 1
        else:
            i += 1
    expression = edited(text.sql, item.expression, edits)
    if not _only_hoisted(expression, moved):
        raise Refused(awkward[0] if awkward else TokenCall("the expression", item.span, (), *text.position(item.span.start)),
                       "stands in an expression that cannot be taken apart", "compute its arguments in a CTE")  # fmt: skip
    return expression, columns


def _has_columns(sql: str) -> bool:
    tree = read_expression(sql)
    return tree is None or groups_or_windows(tree) or tree.find(exp.Column, exp.Star, exp.Query) is not None


def _only_hoisted(sql: str, moved: Collection[str]) -> bool:
    tree = read_expression(sql)
    if tree is None:
        return False
    named = all(c.name.startswith("__mv_h") or c.name.lower() in moved for c in tree.find_all(exp.Column))
    return named and not groups_or_windows(tree, but=OF_GROUPS)
