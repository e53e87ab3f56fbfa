"""Spark syntax that sqlglot does not know, mended in the tokens before parsing. Places stay those of the user's text."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

# stands for >>>; the parsers of parse.py read it as a bitwise operator, and Spark's tokens never use it
UNSIGNED_SHIFT = TokenType.CARET_AT
NAMES = frozenset({
    TokenType.ALTER, TokenType.CREATE, TokenType.DROP, TokenType.GRANT, TokenType.INSERT, TokenType.REVOKE, TokenType.ROLLBACK,
    TokenType.SERDE_PROPERTIES, TokenType.UNCACHE,
})  # fmt: skip
"""Words that begin a command nowhere in a query: names to Spark."""
_TEMPORAL = {"SYSTEM_VERSION": "VERSION", "SYSTEM_TIME": "TIMESTAMP", "VERSION": "VERSION", "TIMESTAMP": "TIMESTAMP"}


def mended(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with `TABLE t`, `MAX RECURSION LEVEL n`, `FOR SYSTEM_VERSION AS OF` and window(…) made readable, and
    `STREAM t`, windows in Hive's words, `!>`."""
    found = list(tokens)
    for i in reversed(_tables_named(found)):
        end = i + 2
        while end + 1 < len(found) and found[end].text == "." and _names(found, end + 1):
            end += 2
        name = found[i + 1 : end]
        if _starts_query(found, i):
            short = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
            made = [*(_like(found[i], *word) for word in short), *name]
            found[i:end] = made if i == 0 or found[i - 1].text in "()" else _wrapped(made)
        elif found[i - 1].text in ("(", ",") and end < len(found) and found[end].text in (")", ","):
            found[i + 1 : end] = _wrapped(name)  # my_function(TABLE t)
    found = _with_windows(found)
    words = [token.text.upper() for token in found]
    result: list[Token] = []
    i = 0
    while i < len(found):
        token = found[i]
        if words[i : i + 3] == ["MAX", "RECURSION", "LEVEL"]:
            i += 4
            continue
        temporal = i + 1 if words[i] == "FOR" else i
        if (
            words[temporal : temporal + 1]
            and words[temporal] in _TEMPORAL
            and words[temporal + 1 : temporal + 3] == ["AS", "OF"]
        ):
            result.append(_like(found[temporal], TokenType.VAR, _TEMPORAL[words[temporal]]))
            i = temporal + 1
            continue
        if words[i] == "STREAM" and i and words[i - 1] in ("FROM", "JOIN", ",") and _names(found, i + 1):
            # read as STREAM(t), which Spark allows too
            end = i + 2
            while end + 1 < len(found) and words[end] == "." and _names(found, end + 1):
                end += 2
            result += [token, _like(token, TokenType.L_PAREN, "("), *found[i + 1 : end]]
            result.append(_like(found[end - 1], TokenType.R_PAREN, ")"))
            i = end
            continue
        following = found[i + 1] if i + 1 < len(found) else None
        if token.token_type == TokenType.WINDOW and following is not None and following.token_type == TokenType.L_PAREN:
            token = _like(token, TokenType.VAR, token.text)
        result.append(token)
        i += 1
    return result


def _wrapped(tokens: list[Token]) -> list[Token]:
    return [_like(tokens[0], TokenType.L_PAREN, "("), *tokens, _like(tokens[-1], TokenType.R_PAREN, ")")]


_BEFORE_QUERY = frozenset({")", "UNION", "ALL", "DISTINCT", "EXCEPT", "INTERSECT", "MINUS"})


def _tables_named(tokens: Sequence[Token]) -> list[int]:
    """Where TABLE stands before a name."""
    return [i for i, token in enumerate(tokens) if token.text.upper() == "TABLE" and _names(tokens, i + 1)]


def short_selects(tokens: Sequence[Token]) -> list[int]:
    """Where a `TABLE t` begins that is short for SELECT * FROM t."""
    return [i for i in _tables_named(tokens) if _starts_query(tokens, i)]


def _starts_query(tokens: Sequence[Token], at: int) -> bool:
    """Whether the TABLE at `at` is short for SELECT * FROM, and no argument of a function."""
    if at == 0 or tokens[at - 1].text.upper() in _BEFORE_QUERY:
        return True
    named = at > 1 and tokens[at - 2].token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    return tokens[at - 1].token_type == TokenType.L_PAREN and not named


_WINDOW_WORDS = {
    TokenType.CLUSTER_BY: (TokenType.PARTITION_BY, "PARTITION BY"),
    TokenType.DISTRIBUTE_BY: (TokenType.PARTITION_BY, "PARTITION BY"),
    TokenType.SORT_BY: (TokenType.ORDER_BY, "ORDER BY"),
}


def _with_windows(tokens: list[Token]) -> list[Token]:
    """`OVER (DISTRIBUTE BY a SORT BY b)` and `OVER (CLUSTER BY a)` with the usual words, and `!>`, `!<` as one operator."""
    result: list[Token] = []
    depth = 0
    for i, token in enumerate(tokens):
        before = tokens[i - 1] if i else None
        if token.token_type == TokenType.L_PAREN:
            depth = depth + 1 if depth or (before is not None and before.text.upper() == "OVER") else 0
        elif token.token_type == TokenType.R_PAREN:
            depth = max(0, depth - 1)
        elif depth == 1 and token.token_type in _WINDOW_WORDS:
            token = _like(token, *_WINDOW_WORDS[token.token_type])
        elif before is not None and before.text == "!" and token.text in (">", "<") and token.start == before.start + 1:
            opposite = (TokenType.LTE, "<=") if token.text == ">" else (TokenType.GTE, ">=")
            result[-1] = _like(token, *opposite)
            continue
        result.append(token)
    return result


def _names(tokens: Sequence[Token], at: int) -> bool:
    return at < len(tokens) and tokens[at].token_type in (TokenType.VAR, TokenType.IDENTIFIER)


def with_unsigned_shift(tokens: Sequence[Token]) -> list[Token] | None:
    """The tokens with each `>>>` as one operator, None if there is none. (Three of them also close nested types.)"""
    result: list[Token] = []
    i, changed = 0, False
    while i < len(tokens):
        three = tokens[i : i + 3]
        if (
            len(three) == 3
            and all(t.token_type == TokenType.GT for t in three)
            and three[2].start == three[0].start + 2
        ):
            result.append(_like(three[0], UNSIGNED_SHIFT, ">>>"))
            i, changed = i + 3, True
            continue
        result.append(tokens[i])
        i += 1
    return result if changed else None


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, line=token.line, col=token.col, start=token.start, end=token.end)
