"""Output names that would change when a function becomes a literal: Spark names `select now()` "now()".

An entry without alias gets the name that Spark would have given it: from the caller, who asked Spark, or worked out
here for a call that stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.syntax.parse import read_query
from spark_mv.query.syntax.queries import whole_query
from spark_mv.query.syntax.source_blocks import Context, Item, select_blocks
from spark_mv.query.syntax.source_text import Edit, SourceTextError, Span, tokenize
from spark_mv.query.syntax.table_name import quoted

# Spark 4.1.4: the name is that of the resolved expression, so aliases of a function are named after it
_NAMES = {
    "curdate": "current_date()",
    "user": "user()",
    "unix_timestamp": "unix_timestamp(current_timestamp(), yyyy-MM-dd HH:mm:ss)",
    "current_database": "current_schema()",
    "current_time": "current_time(6)",
}
_BARE_NAMES = {"user": "current_user()", "session_user": "current_user()"}


def output_names(sql: str, edits: Sequence[Edit], names: Sequence[str] | None) -> tuple[list[Edit], tuple[str, ...]]:
    """(edits that append AS `name`, entries as written whose name is not known) for the select entries with an edit."""
    if not _listed(sql, edits):
        return [], ()
    aliases: list[Edit] = []
    unnamed: list[str] = []
    try:
        blocks = select_blocks(sql)
    except SourceTextError:
        return _by_tree(sql, edits)
    seen: set[int] = set()
    for block in blocks:
        family = id(whole_query(block.tree))
        first = family not in seen
        seen.add(family)
        # only the first operand of a set operation names the columns
        if block.context == Context.EXPRESSION or (block.set_operand and not first):
            continue
        if _named_by_a_list(block.tree):
            continue
        starred = any(item.span.of(sql).rstrip().endswith("*") for item in block.items)
        for position, (item, tree) in enumerate(zip(block.items, block.tree.expressions, strict=True)):
            named = item.alias or isinstance(tree, exp.Aliases)
            if named or not any(item.span.start <= e.start and e.end <= item.span.end for e in edits):
                continue
            name: str | None = None
            if (
                names is not None
                and block.context == Context.OUTERMOST
                and not starred
                and len(names) == len(block.items)
            ):
                name = names[position]
            name = name if name is not None else _name(sql, item)
            if name is None:
                unnamed.append(item.span.of(sql))
            else:
                aliases.append(Edit(item.span.end, item.span.end, f" AS {quoted(name)}"))
    return aliases, tuple(unnamed)


def _named_by_a_list(select: exp.Expr) -> bool:
    """Whether the columns of a SELECT get their names from a list behind an alias: `(SELECT …) t(a, b)`, `WITH t(a, b) AS (…)`."""
    node: exp.Expr | None = select
    while node is not None:
        alias = node.args.get("alias") if isinstance(node, exp.Subquery | exp.CTE) else None
        if alias is not None:
            return bool(alias.args.get("columns"))
        node = node.parent
        if not isinstance(node, exp.Subquery | exp.CTE | exp.SetOperation):
            return False
    return False


def _listed(sql: str, edits: Sequence[Edit]) -> bool:
    """Whether an edit may stand in a select list, as far as words tell: no other text has to be parsed for its names."""
    tokens = tokenize(sql)
    if edits and any(token.kind == TokenType.PIPE_GT for token in tokens):
        return True
    starts = {edit.start for edit in edits}
    around = [False]  # per open parenthesis: whether it, or one around it, stands in a select list
    inside = False
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.start in starts and (inside or around[-1]):
            return True
        if token.kind == TokenType.L_PAREN:
            around.append(inside or around[-1])
            inside = False
        elif token.kind == TokenType.R_PAREN:
            inside = around.pop() if len(around) > 1 else False
        elif token.word == "SELECT":
            inside = True
        elif token.word in _CLAUSES:
            inside = inside and token.word == "FROM" and before is not None and before.word == "DISTINCT"
    return False


_CLAUSES = frozenset({"FROM", "WHERE", "HAVING", "QUALIFY"})


def _by_tree(sql: str, edits: Sequence[Edit]) -> tuple[list[Edit], tuple[str, ...]]:
    """The same for pipes and other SELECTs that are not written as one: an alias too many changes nothing."""
    aliases: list[Edit] = []
    unnamed: list[str] = []
    for select in read_query(sql).find_all(exp.Select):
        for node in select.expressions:
            span = node.meta.get("span")
            if (
                span is None
                or isinstance(node, exp.Alias)
                or not any(span[0] <= e.start and e.end <= span[1] for e in edits)
            ):
                continue
            name = _name(sql, Item(Span(*span), ""))
            if name is None:
                unnamed.append(sql[slice(*span)])
            else:
                aliases.append(Edit(span[1], span[1], f" AS {quoted(name)}"))
    return list(dict.fromkeys(aliases)), tuple(dict.fromkeys(unnamed))


def _name(sql: str, item: Item) -> str | None:
    """Spark's name of a call without arguments that is the whole entry."""
    tokens = tokenize(item.span.of(sql))
    word = tokens[0].word.lower()
    if len(tokens) == 1:
        return _BARE_NAMES.get(word) or _NAMES.get(word) or f"{word}()"
    if len(tokens) == 3 and tokens[1].text == "(" and tokens[2].text == ")":
        return _NAMES.get(word) or f"{word}()"
    return None
