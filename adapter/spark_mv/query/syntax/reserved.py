"""Names that belong to the engine: what it adds to a query starts with `__mv_`, and no user's text may write such a name.

So a place that the engine holds free in a text (the name of a table that is not known yet) is an identifier that nobody
else can have written. It is filled by tokens: strings and comments are the user's, whatever stands in them.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot.tokens import TokenType

from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_text import Edit, SourceTextError, Token, apply_edits, line_and_column, tokenize
from spark_mv.query.syntax.table_name import unquoted

PREFIX = "__mv_"
_FREE = f"{PREFIX}rel_"
TRIAL = f"{PREFIX}trial"
"""Column of a state table: the number of a draw among those that were made for one row."""
VALID_FROM, VALID_TO = f"{PREFIX}valid_from", f"{PREFIX}valid_to"
"""Columns of a state table: the bounds of the clock that a row was found to have."""


def relation(name: str) -> str:
    """The identifier that stands for a relation of the run, or for a predicate, until its text is known.

    >>> relation("stage")
    '`__mv_rel_stage`'
    """
    return f"`{_FREE}{name}`"


def filled(text: str, relations: Mapping[str, str]) -> str:
    """The text with what `relations` has for each place that the engine holds free. Raises KeyError for one without.

    >>> filled("select '`__mv_rel_state`', '{state}' from `__mv_rel_state` -- `__mv_rel_state`", {"state": "s.t"})
    "select '`__mv_rel_state`', '{state}' from s.t -- `__mv_rel_state`"
    """
    if _FREE not in text:
        return text
    names = ((token, _name(token)) for token in tokenize(text))
    edits = [
        Edit(token.start, token.end, relations[name[len(_FREE) :]]) for token, name in names if name.startswith(_FREE)
    ]
    return apply_edits(text, edits)


def is_reserved(name: str) -> bool:
    """Whether the name (without quotes) belongs to the engine."""
    return name.lower().startswith(PREFIX)


def reserved_names(sql: str) -> tuple[QueryError, ...]:
    """An error for each name in a user's text that is the engine's. A text that cannot be read as tokens has none: the
    parser says what is the matter with it."""
    if PREFIX not in sql.lower():
        return ()
    try:
        tokens = tokenize(sql)
    except SourceTextError:
        return ()
    return tuple(
        QueryError(
            "RESERVED_NAME",
            f"{token.text}: names that start with {PREFIX} belong to what a run adds to the query. Use another name",
            *line_and_column(sql, token.start),
        )
        for token in tokens
        if is_reserved(_name(token))
    )


def _name(token: Token) -> str:
    """The name that the token is, without its quotes; '' for strings, numbers and signs."""
    if token.kind == TokenType.IDENTIFIER:
        return unquoted(token.text)
    return token.word and token.text
