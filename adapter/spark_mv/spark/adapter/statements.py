"""A script of SQL cut into its statements: Spark takes one at a time, dbt's `sql_header` and hooks may hold several."""

from __future__ import annotations

import re

#: what may hold a semicolon that ends nothing; Spark's block comments nest and are found by hand
_OPAQUE = re.compile(
    r"""
    (?<!\w)[rR]'[^']*' | (?<!\w)[rR]"[^"]*"              # raw strings know no escapes
    | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*"
    | `(?:[^`]|``)*`
    | --[^\n]*
    | /\* | ;
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_WORD = re.compile(r"\w+")


def split_statements(sql: str) -> list[str]:
    """The statements of `sql` in their order, without the semicolons between them; parts of comments only are dropped.

    A compound statement (`BEGIN … END`, Spark's SQL scripting) is one statement, so a script that begins one comes back
    whole. Text without a statement comes back as it is, for Spark to say what it thinks of it.

    >>> split_statements("set time zone 'UTC'; select ';' as a -- ;")
    ["set time zone 'UTC'", "select ';' as a -- ;"]
    """
    parts: list[str] = []
    start, words_from, position = 0, 0, 0
    found_word = False
    while match := _OPAQUE.search(sql, position):
        between = sql[words_from : match.start()]
        text = match.group()
        if not found_word and (word := _WORD.search(between)):
            found_word = True
            if word.group().lower() == "begin":
                return [sql.strip()]
        position = match.end()
        if text == "/*":
            position = _end_of_comment(sql, position)
        elif text == ";":
            if found_word:
                parts.append(sql[start : match.start()].strip())
            start, found_word = position, False
        elif not text.startswith("--"):
            found_word = True
        words_from = position
    rest = sql[start:]
    if not found_word and (word := _WORD.search(sql, words_from)):
        found_word = True
        if word.group().lower() == "begin":
            return [sql.strip()]
    if found_word or re.search(r"\S", sql[words_from:]):
        parts.append(rest.strip())
    return parts or [sql.strip()]


def _end_of_comment(sql: str, position: int) -> int:
    depth = 1
    while depth:
        match = _COMMENT.search(sql, position)
        if match is None:
            return len(sql)
        depth += 1 if match.group() == "/*" else -1
        position = match.end()
    return position


_OPENING = re.compile(r"(?:\s|\(|--[^\n]*(?:\n|$))*(/\*|\w+)?")


def is_query(statement: str) -> bool:
    """Whether a statement asks for rows, which Spark does when they are fetched, and not before.

    >>> is_query("/* a /* check */ */ (select assert_true(n > 0) from t)"), is_query("insert into t select 1"), is_query("with a as (select 1) from a")
    (True, False, True)
    """
    found = _OPENING.match(statement)
    while found is not None and found[1] == "/*":
        found = _OPENING.match(statement, _end_of_comment(statement, found.end()))
    return found is not None and (found[1] or "").lower() in ("select", "with", "values", "from", "table")
