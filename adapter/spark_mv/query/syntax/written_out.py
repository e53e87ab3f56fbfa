"""What Spark takes for a whole statement and in no query around it, in words that it takes everywhere."""

from __future__ import annotations

from itertools import dropwhile

from sqlglot.tokens import TokenType

from spark_mv.query.syntax.source_text import Edit, SourceTextError, apply_edits, raw_tokens
from spark_mv.query.syntax.table_columns import by_table_alone
from spark_mv.query.syntax.tokens import short_selects

_BYTE_ORDER_MARK = "\ufeff"
"""What some editors on Windows begin a file with: nobody sees it, and Spark takes it for a part of the first word."""


def written_out(sql: str) -> str:
    """The query without semicolons at its end, and with `TABLE t` as the SELECT that it is short for (a version of the table
    can be named only there), as is VALUES where the text begins with it; columns are called by the names of their tables alone, see `by_table_alone`.
    All else stays as written, and so does text that cannot be read.

    >>> written_out("table s.t union all select 1;")
    'SELECT * FROM s.t union all select 1'
    """
    sql = sql.lstrip(_BYTE_ORDER_MARK)
    try:
        tokens = raw_tokens(sql)
    except SourceTextError:
        return sql
    kept = len(list(dropwhile(lambda token: token.token_type == TokenType.SEMICOLON, reversed(tokens))))
    edits = [Edit(token.start, token.end + 1, "") for token in tokens[kept:]]
    edits += [Edit(tokens[k].start, tokens[k].end + 1, "SELECT * FROM") for k in short_selects(tokens)]
    if tokens and tokens[0].token_type == TokenType.VALUES:
        edits.append(Edit(tokens[0].start, tokens[0].start, "SELECT * FROM "))
    return by_table_alone(apply_edits(sql, edits))
