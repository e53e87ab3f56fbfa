"""The user's SQL text with the places that matter: tokens, call spans, edits. Text outside an edit stays as written.

Offsets are character offsets into the text (not bytes), `end` exclusive. Tokens come from sqlglot's Spark tokenizer, so
comments, strings, quoted identifiers and hints are read the way the parser reads them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from sqlglot.dialects import Dialect, Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token as RawToken
from sqlglot.tokens import TokenType


class SourceTextError(ValueError):
    """The text cannot be read as tokens, or its structure is not understood. The message names the place."""


@dataclass(frozen=True)
class Span:
    """A piece of the text: `text[start:end]`."""

    start: int
    end: int

    def of(self, sql: str) -> str:
        return sql[self.start : self.end]

    def holds(self, other: Span) -> bool:
        """Whether all of the other lies in this one."""
        return self.start <= other.start and other.end <= self.end


@dataclass(frozen=True)
class Token:
    """One token as written. `kind` is sqlglot's token type; `word` the upper-case text of an unquoted word, else ''
    (GROUP BY is one token)."""

    kind: TokenType
    text: str
    start: int
    end: int
    word: str


@dataclass(frozen=True)
class Edit:
    """Replace `text[start:end]` with `replacement`; start == end inserts."""

    start: int
    end: int
    replacement: str


def inside_any(spans: Iterable[Span]) -> Callable[[Span], bool]:
    """A test whether a place lies within one of the spans; quick for many places and many spans.

    >>> inside_any([Span(0, 9), Span(2, 5)])(Span(4, 7))
    True
    """
    ordered = sorted(spans, key=lambda span: span.start)
    starts = [span.start for span in ordered]
    ends = list(accumulate((span.end for span in ordered), max))

    def inside(place: Span) -> bool:
        at = bisect_right(starts, place.start)
        return at > 0 and ends[at - 1] >= place.end

    return inside


def apply_edits(sql: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made at once. Raises ValueError when two edits overlap or lie outside the text.

    >>> apply_edits("select now()", [Edit(7, 12, "1")])
    'select 1'
    """
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.end < edit.start or edit.end > len(sql):
            raise ValueError(f"edit {edit} lies outside a text of {len(sql)} characters")
        if edit.start < position:
            raise ValueError(f"edits overlap at offset {edit.start}")
        parts += [sql[position : edit.start], edit.replacement]
        position = edit.end
    return "".join([*parts, sql[position:]])


@lru_cache(maxsize=64)
def raw_tokens(sql: str) -> tuple[RawToken, ...]:
    """The tokens as sqlglot has them, not to be changed. Raises SourceTextError for text that it cannot tokenize."""
    return tuple(scan(sql, Spark()))


def scan(sql: str, dialect: Dialect) -> list[RawToken]:
    """The tokens of a dialect. Comments are blanks, between the words of GROUP BY too, where sqlglot wants none. Raises
    SourceTextError."""
    try:
        tokens: list[RawToken] = dialect.tokenize(sql)
        blank = _without_comments(sql, tokens)
        if blank != sql:
            tokens = dialect.tokenize(blank)
        return tokens
    except SqlglotError as error:
        raise SourceTextError(str(error)) from error


def _without_comments(sql: str, tokens: Sequence[RawToken]) -> str:
    """The text with blanks where no token stands, of the same length and lines."""
    parts, end = [], 0
    for token in tokens:
        if token.start > end:
            parts.append(_NO_BLANK.sub(" ", sql[end : token.start]))
        parts.append(sql[max(end, token.start) : token.end + 1])
        end = max(end, token.end + 1)
    return "".join([*parts, _NO_BLANK.sub(" ", sql[end:])])


_NO_BLANK = re.compile(r"\S")


@lru_cache(maxsize=64)
def tokenize(sql: str) -> tuple[Token, ...]:
    """The tokens of a text. Raises SourceTextError for text that sqlglot cannot tokenize."""
    tokens: list[Token] = []
    for token in raw_tokens(sql):
        # 5L arrives as three tokens (5 :: BIGINT) on one span; the first stands for the literal
        if tokens and token.start < tokens[-1].end:
            continue
        text = sql[token.start : token.end + 1]
        written = token.token_type not in _QUOTED and (text[:1].isalpha() or text[:1] == "_")
        word = " ".join(token.text.split()).upper() if written else ""
        tokens.append(Token(token.token_type, text, token.start, token.end + 1, word))
    return tuple(tokens)


def one_line(sql: str) -> str:
    """The text on one line, without comments; strings and quoted names stay as written. Raises SourceTextError.

    >>> print(one_line("name  <> 'a  b' -- not theirs\\n and n>0"))
    name <> 'a  b' and n>0
    """
    parts: list[str] = []
    for before, token in pairwise((None, *tokenize(sql))):
        assert token is not None
        parts.append(" " if before is not None and token.start > before.end else "")
        parts.append(" ".join(token.text.split()) if token.word else token.text)
    return "".join(parts)


def string_literals(texts: Iterable[str]) -> str:
    """The same of several, as they stand in IN (…)."""
    return ", ".join(map(string_literal, texts))


def string_literal(text: str) -> str:
    r"""A Spark string literal (with the default, `escapedStringLiterals=false`). Spark puts the value of a setting or of an
    environment variable for `${…}` anywhere in a statement, in strings too (`spark.sql.variable.substitute`): not in this one.

    >>> print(string_literal("O'Brien\\n ${env:HOME}"))
    'O\'Brien\\n \u0024{env:HOME}'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return "'" + escaped.replace("${", "\\u0024{") + "'"


def quotes_escaped(sql: str) -> str:
    r"""The text with `''` inside a string written as `\'`: one string to Spark 4, two to sqlglot. Of the same length.

    >>> quotes_escaped("select 'it''s', \'\', 'a' 'b'")
    "select 'it\\'s', '', 'a' 'b'"
    """
    edits = [
        Edit(a.end - 1, b.start + 1, "\\" + sql[b.start])
        for a, b in pairwise(tokenize(sql))
        if a.end == b.start and a.kind == b.kind == TokenType.STRING and sql[a.end - 1] == sql[b.start]
    ]
    return apply_edits(sql, edits) if edits else sql


def line_and_column(sql: str, offset: int) -> tuple[int, int]:
    """1-based line and column of a character offset."""
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def closing(tokens: Sequence[Token], opening: int) -> int:
    """Index of the `)` that closes the `(` at index `opening`. Raises SourceTextError when it is missing."""
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].kind == TokenType.L_PAREN:
            depth += 1
        elif tokens[index].kind == TokenType.R_PAREN:
            depth -= 1
            if depth == 0:
                return index
    raise SourceTextError(f"a parenthesis opened at offset {tokens[opening].start} is never closed")


_QUOTED = {
    TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.NATIONAL_STRING, TokenType.BYTE_STRING, TokenType.IDENTIFIER,
    TokenType.NUMBER,
}  # fmt: skip
