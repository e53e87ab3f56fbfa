"""Clock, user and session functions replaced in the text with literals, so that a run sees one instant and one user.

What Spark evaluates once per statement (current_timestamp) differs from statement to statement of one run; pinned, all
statements agree, and a recomputation with the same pins gives the same rows. Types stay those of Spark 4.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from sqlglot.tokens import TokenType

from spark_mv.query.functions.catalogue import Mark, is_marked
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.pin_names import output_names
from spark_mv.query.solver.zone import zone_of
from spark_mv.query.syntax.clock_words import (
    CASTING_TYPES,
    CLOCK_WORDS,
    ClockText,
    argument_types,
    clock_text,
    level_of_call,
    pin_level,
    word_pin,
)
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parse import Parsed, parse
from spark_mv.query.syntax.parser import Call
from spark_mv.query.syntax.source_text import (
    Edit,
    Span,
    Token,
    apply_edits,
    closing,
    line_and_column,
    string_literal,
    tokenize,
)
from spark_mv.query.syntax.table_name import unquoted

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Pins:
    """The values of one run. `as_of` must be aware; `time_zone` is spark.sql.session.timeZone. `columns` are the names of
    all columns of the source tables, where they are known: they tell `user` the column from `user` the function."""

    as_of: datetime
    time_zone: str = "UTC"
    user: str = ""
    session_user: str = ""
    catalog: str = "spark_catalog"
    schema: str = "default"
    version: str = ""
    columns: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.as_of.tzinfo is None or self.as_of.utcoffset() is None:
            raise ValueError("as_of needs a time zone")
        # where clocks are set back, datetime takes an hour's instants for those of the hour before: equal, so one for a cache
        object.__setattr__(self, "as_of", self.as_of.astimezone(timezone.utc))

    def at(self, as_of: datetime) -> Pins:
        """The same at another instant."""
        return replace(self, as_of=as_of)


@dataclass(frozen=True)
class Pinned:
    """`used`: function name in lower case → literal. `unnamed`: unaliased select entries (as written) whose output name
    would change with the literal and could not be worked out; alias them. `ambiguous`: bare words (`user`) that may be
    a column, left as written because the columns in scope are not known. `places`: line and column of what was replaced."""

    sql: str
    used: Mapping[str, str]
    unnamed: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    places: tuple[tuple[int, int], ...] = ()

    @property
    def left(self) -> frozenset[str]:
        """The functions of the clock, the user and the session that are still called: in backquotes, behind a dot, among words of a grammar of their own."""
        read = parse(self.sql)
        calls = [node.meta.get("call") for node in read.tree.walk()] if isinstance(read, Parsed) else []
        return frozenset(c.name for c in calls if isinstance(c, Call) and level_of_call(c) in ONCE_PER_RUN)


ONCE_PER_RUN = frozenset({Level.COMMAND, Level.USER, Level.SESSION})
"""Levels of what has one value in all statements of a run."""


def timestamp_literal(instant: datetime, time_zone: str) -> str:
    """TIMESTAMP'…' to the microsecond with an offset, so that it is this instant in every session zone.

    >>> from datetime import timezone
    >>> timestamp_literal(datetime(2026, 1, 31, 6, tzinfo=timezone.utc), "Europe/Berlin")
    "TIMESTAMP'2026-01-31 07:00:00.000000+01:00'"
    """
    local = instant.astimezone(zone_of(time_zone))
    offset = local.utcoffset() or timedelta(0)
    if offset % timedelta(minutes=1):
        return timestamp_literal(instant, "UTC")
    return f"TIMESTAMP'{_digits(local)}{_offset(offset)}'"


def date_literal(instant: datetime, time_zone: str, days: int = 0) -> str:
    """DATE'…' of the instant in the zone, moved by whole days."""
    return f"DATE'{(instant.astimezone(zone_of(time_zone)).date() + timedelta(days=days)).isoformat()}'"


def _digits(local: datetime) -> str:
    return f"{local.year:04d}-{local:%m-%d %H:%M:%S}.{local.microsecond:06d}"


def _offset(offset: timedelta) -> str:
    minutes = offset // timedelta(minutes=1)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _local(pins: Pins) -> datetime:
    return pins.as_of.astimezone(zone_of(pins.time_zone))


def _unix_seconds(pins: Pins) -> str:
    return f"CAST({(pins.as_of - _EPOCH) // timedelta(seconds=1)} AS BIGINT)"


def _time(pins: Pins, precision: int = 6) -> str:
    local = _local(pins)
    text = f"{local:%H:%M:%S}.{local.microsecond:06d}"
    if precision == 6:
        return f"TIME'{text}'"
    # current_time(p) cuts digits off, and so does the cast
    return f"CAST(TIME'{text}' AS TIME({precision}))"


_Render = Callable[[Pins], str]
_CALLS: dict[str, _Render] = {
    "current_date": lambda p: date_literal(p.as_of, p.time_zone),
    "curdate": lambda p: date_literal(p.as_of, p.time_zone),
    "current_timestamp": lambda p: timestamp_literal(p.as_of, p.time_zone),
    "now": lambda p: timestamp_literal(p.as_of, p.time_zone),
    "getdate": lambda p: timestamp_literal(p.as_of, p.time_zone),
    "localtimestamp": lambda p: f"TIMESTAMP_NTZ'{_digits(_local(p))}'",
    "unix_timestamp": _unix_seconds,
    "current_time": _time,
    "current_timezone": lambda p: string_literal(p.time_zone),
    "current_user": lambda p: string_literal(p.user),
    "user": lambda p: string_literal(p.user),
    "session_user": lambda p: string_literal(p.session_user or p.user),
    "current_catalog": lambda p: string_literal(p.catalog),
    "current_database": lambda p: string_literal(p.schema),
    "current_schema": lambda p: string_literal(p.schema),
    "version": lambda p: string_literal(p.version),
}


@deep
def pin(sql: str, pins: Pins, names: Collection[str] | None = None) -> Pinned:
    """The query with every clock, user and session function as a literal; the rest of the text stays as written.

    `names` are the output columns of the query as Spark names them (DESCRIBE QUERY), used to alias entries that would
    otherwise change their name. Raises SourceTextError for text that cannot be read, ValueError for an unknown zone.
    """
    return _pin(sql, pins, None if names is None else tuple(names))[0]


def pin_edits(sql: str, pins: Pins) -> tuple[Edit, ...]:
    """What `pin` does to the text, for texts in which other places change too."""
    return _pin(sql, pins, None)[1]


@lru_cache(maxsize=64)
def _pin(sql: str, pins: Pins, names: tuple[str, ...] | None) -> tuple[Pinned, tuple[Edit, ...]]:
    found, ambiguous = _uses(sql, pins)
    if not found:
        return Pinned(sql, {}, (), ambiguous), ()
    edits = [Edit(use.span.start, use.span.end, use.literal) for use in found]
    used = {use.name: use.literal for use in found}
    aliases, unnamed = output_names(sql, edits, names)
    edits += aliases
    places = tuple(line_and_column(sql, use.span.start) for use in found)
    return Pinned(apply_edits(sql, edits), used, unnamed, ambiguous, places), tuple(edits)


@dataclass(frozen=True)
class _Use:
    name: str
    span: Span
    literal: str


def clock_spans(sql: str, columns: Collection[str] | None = None) -> tuple[Span, ...]:
    """Where the clock is read: calls, keyword forms, 'today' and the like as datetime literals."""
    found, _ = _uses(sql, Pins(_EPOCH, columns=None if columns is None else frozenset(columns)))
    return tuple(use.span for use in found if pin_level(use.name) == Level.COMMAND)


def _uses(sql: str, pins: Pins) -> tuple[list[_Use], tuple[str, ...]]:
    if not _MAY_USE.search(sql):
        return [], ()  # most texts of a run have been pinned, and are long
    tokens = tokenize(sql)
    known = None if pins.columns is None else {column.lower() for column in pins.columns}
    uses: list[_Use] = []
    ambiguous: list[str] = []
    doubtful: dict[str, bool] = {}  # words that may be columns
    index = 0
    while index < len(tokens):
        if tokens[index].word not in _WORDS and tokens[index].kind not in _STRINGS:
            index += 1
            continue
        found = _call(tokens, index, pins) or _special(tokens, index, pins)
        if found is None:
            bare = _bare(tokens, index)
            if bare and bare not in doubtful:
                doubtful[bare] = _may_be_column(bare, tokens, known)
            if bare and doubtful[bare]:
                ambiguous.append(tokens[index].text)
            elif bare:
                found = (bare, index + 1, _CALLS[bare](pins))
        if found is None:
            index += 1
            continue
        name, following, literal = found
        uses.append(_Use(name, Span(tokens[index].start, tokens[following - 1].end), literal))
        index = following
    return uses, tuple(ambiguous)


_MAY_USE = re.compile(
    rf"(?<![a-z_])({'|'.join(_CALLS)}|{'|'.join(CLOCK_WORDS)})(?![a-z0-9_])(?!\s+AS\s+OF\b)|['\"]\s*(T\d|\d+:)",
    re.IGNORECASE,
)
"""Finds every text with a use in it, and some without: a name, a word, a time of day in quotes. `VERSION AS OF` is none."""
_WORDS = frozenset(word.upper() for word in (*_CALLS, *CASTING_TYPES, "cast", "try_cast"))
"""All words that a use can start with."""
_Found = tuple[str, int, str]


def _word(tokens: tuple[Token, ...], index: int) -> str:
    return tokens[index].word.lower() if 0 <= index < len(tokens) else ""


def _kind(tokens: tuple[Token, ...], index: int) -> TokenType | None:
    return tokens[index].kind if 0 <= index < len(tokens) else None


def _call(tokens: tuple[Token, ...], index: int, pins: Pins) -> _Found | None:
    """name() with nothing between the parentheses, or current_time(p)."""
    name = _word(tokens, index)
    if name not in _CALLS or _kind(tokens, index - 1) == TokenType.DOT or _kind(tokens, index + 1) != TokenType.L_PAREN:
        return None
    close = closing(tokens, index + 1)
    if close == index + 2:
        return name, close + 1, _CALLS[name](pins)
    if name == "current_time" and close == index + 3 and tokens[index + 2].text in set("0123456"):
        return name, close + 1, _time(pins, int(tokens[index + 2].text))
    return None


def _bare(tokens: tuple[Token, ...], index: int) -> str:
    """The keyword form at index, or ''. Names behind or before a dot, aliases and named arguments are not calls."""
    name = _word(tokens, index)
    if name not in _CALLS or not is_marked(name, Mark.KEYWORD) or _kind(tokens, index + 1) == TokenType.L_PAREN:
        return ""
    if TokenType.DOT in (_kind(tokens, index - 1), _kind(tokens, index + 1)) or _word(tokens, index - 1) == "as":
        return ""
    if index + 1 < len(tokens) and tokens[index + 1].text in ("->", "=>"):
        return ""
    before = tokens[index - 1] if index else None
    # an alias without AS: the word stands right behind an operand
    if before and (before.kind in (TokenType.R_PAREN, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)):
        return ""
    return "" if before and before.kind == TokenType.VAR else name


def _may_be_column(name: str, tokens: tuple[Token, ...], columns: Collection[str] | None) -> bool:
    """Whether a column of that name may be in scope; Spark then takes the column."""
    if columns is None:
        if name == "user":
            return True
    elif name in columns:
        return True
    field = re.compile(rf"\b{name}(?:[`\"]\s*:|[`\"]?\s*:?\s*(?:{_TYPES})\b)", re.IGNORECASE)  # of a schema
    for index, token in enumerate(tokens):
        if token.kind in _STRINGS and field.search(token.text):
            return True
        written = token.word or (unquoted(token.text) if token.kind == TokenType.IDENTIFIER else "")
        if written.lower() == name and _kind(tokens, index + 1) != TokenType.L_PAREN and not _bare(tokens, index):
            return True
    return False


def _special(tokens: tuple[Token, ...], index: int, pins: Pins) -> _Found | None:
    """DATE'today', CAST('now' AS TIMESTAMP), 'now'::timestamp, datediff('today', d) and their like."""
    token = tokens[index]
    word = token.word.lower()
    if word in CASTING_TYPES and _kind(tokens, index - 1) != TokenType.DOT and index + 1 < len(tokens):
        return _special_value(tokens[index + 1], CASTING_TYPES[word], index + 2, pins)
    if word in ("cast", "try_cast") and _kind(tokens, index + 1) == TokenType.L_PAREN and index + 5 < len(tokens):
        kind = CASTING_TYPES.get(tokens[index + 4].word.lower())
        if kind and tokens[index + 3].word == "AS" and closing(tokens, index + 1) == index + 5:
            return _special_value(tokens[index + 2], kind, index + 6, pins)
        return None
    if token.kind not in _STRINGS:
        return None
    if _kind(tokens, index + 1) == TokenType.DCOLON and index + 2 < len(tokens):
        kind = CASTING_TYPES.get(tokens[index + 2].word.lower())
        return _special_value(token, kind, index + 3, pins) if kind else None
    kind = _argument_type(tokens, index)
    return _special_value(token, kind, index + 1, pins) if kind else None


def _argument_type(tokens: tuple[Token, ...], index: int) -> str:
    """What a string that is one whole argument of a call is cast to; '' if to no time."""
    if _kind(tokens, index - 1) not in (TokenType.L_PAREN, TokenType.COMMA):
        return ""
    if _kind(tokens, index + 1) not in (TokenType.R_PAREN, TokenType.COMMA):
        return ""
    depth, position, at = 0, 0, index - 1
    while at >= 0 and not (depth == 0 and tokens[at].kind == TokenType.L_PAREN):
        depth += (tokens[at].kind == TokenType.R_PAREN) - (tokens[at].kind == TokenType.L_PAREN)
        position += depth == 0 and tokens[at].kind == TokenType.COMMA
        at -= 1
    if at < 1 or _kind(tokens, at - 2) == TokenType.DOT:
        return ""
    last = closing(tokens, at)
    depth, count = 0, 1
    for token in tokens[at + 1 : last]:
        depth += (token.kind == TokenType.L_PAREN) - (token.kind == TokenType.R_PAREN)
        count += depth == 0 and token.kind == TokenType.COMMA
    return argument_types(unquoted(tokens[at - 1].text).lower(), count).get(position, "")


_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_TYPES = (
    "string|varchar|char|int|integer|bigint|long|smallint|short|tinyint|byte|float|real|double|decimal|numeric|boolean|date|timestamp|timestamp_ntz|"
    "binary|array|map|struct|variant"
)
"""Words by which a text that has a name before one of them may be a schema: `from_json(body, 'user string, n int')` makes a column of it."""


def _special_value(token: Token, kind: str, following: int, pins: Pins) -> _Found | None:
    text = _string(token)
    read = clock_text(text, kind) if text is not None else None
    if read is None or text is None:
        return None
    name = word_pin(kind, text.strip().lower())
    if not read.word:
        literal = _time_of_day(read, pins)
        return (name, following, literal) if literal else None
    date = date_literal(pins.as_of, pins.time_zone, CLOCK_WORDS[read.word])
    if kind == "date":
        return name, following, date
    if read.word == "now":
        now = timestamp_literal(pins.as_of, pins.time_zone)
        return name, following, now if kind == "timestamp" else f"TIMESTAMP_NTZ'{_digits(_local(pins))}'"
    return name, following, f"CAST({date} AS {kind.upper()})"


def _string(token: Token) -> str | None:
    """The text of a string token, None with escapes in it or for any other token."""
    if token.kind not in _STRINGS or ("\\" in token.text and token.kind == TokenType.STRING):
        return None
    return token.text.lstrip("rR")[1:-1]


def _time_of_day(read: ClockText, pins: Pins) -> str:
    """TIMESTAMP'…' of a time today, where "today" is that of the zone behind the time; '' for a zone that is not known."""
    try:
        date = pins.as_of.astimezone(zone_of(read.zone or pins.time_zone)).date()
    except ValueError:
        return ""
    return f"TIMESTAMP'{date.isoformat()} {read.time}{' ' if read.zone[:1].isalpha() else ''}{read.zone}'"
