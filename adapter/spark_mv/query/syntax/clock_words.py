"""Strings that are the clock: what Spark 4.1 makes of 'today' or '12:30' where it casts a string to a date or timestamp.

Measured on Spark 4.1.4. A constant string becomes the clock in a typed literal, a cast, an argument of a function of
dates, and beside a date or timestamp (comparison, IN, BETWEEN, COALESCE, CASE, array): `now`, `today`, `yesterday`,
`tomorrow`, in any case, with white space around, all but `now` also with a zone behind, which is not looked at. `epoch` is
a constant. A time of day alone takes today's date where it becomes a TIMESTAMP (of the zone behind it, else of the
session's), and so does a column that holds one; a DATE or TIMESTAMP_NTZ it is not. A column that holds `today` is an error,
or NULL: only constants are looked at. The rule is `convertSpecialDate` and its sisters in Spark's SparkDateTimeUtils.

A pin is named after the function it stands for, or after type and word: `date 'today'`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.parser import Call

CLOCK_WORDS = {"now": 0, "today": 0, "yesterday": -1, "tomorrow": 1}
"""The word → by how many days its date is not today's."""

CASTING_CALLS = {
    "date": "date", "to_date": "date", "timestamp": "timestamp", "to_timestamp": "timestamp",
    "to_timestamp_ltz": "timestamp", "to_timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
"""Functions that cast their first argument → the type they cast to."""

CASTING_TYPES = {
    "date": "date", "timestamp": "timestamp", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
"""Types as written, whose literals and casts know the words → the type."""

_WORD = re.compile(r"\s*(?:(now)|(today|yesterday|tomorrow)(?:\s+\S+)?)\s*", re.IGNORECASE)
_TIME = re.compile(
    r"\s*(?:T(?=\d)(?P<hour>\d{1,2})|T?(?P<time>\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?))(?P<zone>\s*[A-Za-z+-]\S*)?\s*"
)

_DATE_FIRST = (
    "add_months date date_add date_sub day dayname dayofmonth dayofweek dayofyear last_day month monthname next_day quarter "
    "to_date trunc try_to_date weekday weekofyear year"
)
_TIMESTAMP_FIRST = (
    "date_format from_utc_timestamp hour minute second timestamp to_timestamp to_timestamp_ltz to_utc_timestamp "
    "try_to_timestamp window"
)
TIME_ARGUMENTS: dict[str, dict[int, str]] = {
    **{name: {0: "date"} for name in _DATE_FIRST.split()},
    **{name: {0: "timestamp"} for name in _TIMESTAMP_FIRST.split()},
    **{name: {0: "date", 1: "date"} for name in ("datediff", "date_diff")},
    "to_timestamp_ntz": {0: "timestamp_ntz"},
    "convert_timezone": {1: "timestamp_ntz", 2: "timestamp_ntz"},
    "months_between": {0: "timestamp", 1: "timestamp"},
    **{name: {1: "timestamp"} for name in ("date_trunc", "date_part", "datepart", "extract")},
    **{name: {1: "timestamp", 2: "timestamp"} for name in ("timestampdiff", "timediff")},
    **{name: {2: "timestamp"} for name in ("timestampadd", "dateadd")},
}
"""Function → position of an argument → the type that a string there is cast to. With a format behind it, a string of the
parsing functions is read by the format: `PARSING`."""
PARSING = frozenset(
    {"to_date", "try_to_date", "to_timestamp", "try_to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz"}
)
_MAKES_LETTERS = frozenset(
    [
        "aes_decrypt", "char", "chr", "conv", "decode", "from_csv", "from_json", "from_xml", "try_aes_decrypt", "try_url_decode",
        "unbase64", "unhex", "url_decode",
    ]
)  # fmt: skip
_NO_STRINGS = {*TIME_ARGUMENTS, "binary", "parse_json", "to_binary", "try_parse_json", "try_to_binary"} - {
    "date_format"
}
"""Functions that give no string, or no letters but those of a day's or month's name."""
_SAME_LETTERS = frozenset({"lower", "lcase", "upper", "ucase", "trim", "ltrim", "rtrim", "initcap", "string"})


@dataclass(frozen=True)
class ClockText:
    """`word` is one of CLOCK_WORDS, or '' for a time of day; then `time` and `zone` ('' for the session's) are its parts."""

    word: str
    time: str = ""
    zone: str = ""


def clock_text(text: str, kind: str) -> ClockText | None:
    """What a string becomes as a value of type `kind` (date, timestamp, timestamp_ntz); None where no clock is read."""
    found = _WORD.fullmatch(text)
    if found:
        return ClockText((found[1] or found[2]).lower())
    time = _TIME.fullmatch(text) if kind in ("timestamp", "timestamp_ltz") else None
    if time is None:
        return None
    return ClockText("", time["time"] or f"{time['hour']}:00", (time["zone"] or "").strip())


def time_type(kind: str) -> str:
    """`kind` without what does not matter here: date, timestamp or timestamp_ntz; '' for any other type."""
    word = kind.strip().lower().split("(")[0]
    names = {"timestamp_ltz": "timestamp", "timestampltz": "timestamp", "timestampntz": "timestamp_ntz"}
    word = names.get(word, word)
    return word if word in ("date", "timestamp", "timestamp_ntz") else ""


def argument_types(name: str, count: int) -> dict[int, str]:
    """Position of an argument → what a string there is cast to, in a call with so many arguments."""
    if name in PARSING and count > 1:
        return {}
    if name in ("datediff", "date_diff") and count == 3:
        return {1: "timestamp", 2: "timestamp"}
    known = TIME_ARGUMENTS.get(name, {})
    return {0: "date"} if name == "date_add" and count == 2 else known


def constant_text(node: exp.Expr) -> str | None:
    """The string that a constant expression is, as far as it is easily known: literals put together."""
    if _is_wrapped(node):
        return constant_text(node.this)
    if isinstance(node, exp.Literal | exp.RawString):
        return str(node.name) if isinstance(node, exp.RawString) or node.is_string else None
    if isinstance(node, exp.Cast) and node.to.is_type("text", "varchar", "char"):
        if isinstance(node.this, exp.HexString):
            return _bytes(node.this.name)
        return constant_text(node.this)
    call = node.meta.get("call")
    joins = isinstance(node, exp.Concat | exp.DPipe) or (isinstance(call, Call) and call.name == "concat")
    if joins or (isinstance(call, Call) and call.name in _SAME_LETTERS):
        parts = [constant_text(part) for part in node.iter_expressions()]
        return None if None in parts else "".join(part for part in parts if part is not None)
    return None


def _is_wrapped(node: exp.Expr) -> bool:
    """Whether it is what sqlglot puts around an argument, or parentheses."""
    made = isinstance(node, exp.TsOrDsToDate | exp.TsOrDsToTimestamp | exp.TimeStrToTime) and "call" not in node.meta
    return isinstance(node.this, exp.Expr) and (made or isinstance(node, exp.Paren))  # datediff(a) has one of nothing


def _bytes(digits: str) -> str | None:
    try:
        return bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")).decode()
    except ValueError:
        return None


def leaves(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions one of which is the value of `node`: branches of CASE, arguments of COALESCE."""
    call = node.meta.get("call")
    name = call.name if isinstance(call, Call) else ""
    if isinstance(node, exp.Paren):
        yield from leaves(node.this)
    elif isinstance(node, exp.Case):
        for branch in node.args.get("ifs") or []:
            yield from leaves(branch.args["true"])
        if node.args.get("default") is not None:
            yield from leaves(node.args["default"])
    elif isinstance(node, exp.If):
        yield from leaves(node.args["true"])
        if node.args.get("false") is not None:
            yield from leaves(node.args["false"])
    elif isinstance(node, exp.Coalesce | exp.Nvl2 | exp.Nullif) or name in (
        "nvl",
        "ifnull",
        "coalesce",
        "nvl2",
        "nullif",
    ):
        for part in node.iter_expressions():
            yield from leaves(part)
    else:
        yield node


def may_spell(node: exp.Expr) -> bool:
    """Whether a constant string that is not easily known may be one of CLOCK_WORDS: its letters are there, or are made. Spark computes
    whatever reads no column before it looks for the words."""
    if node.find(exp.Column, exp.Query):
        return False
    while _is_wrapped(node):
        node = node.this
    if isinstance(node, exp.Cast) and not node.to.is_type("text", "varchar", "char"):
        return False
    call = node.meta.get("call")
    if isinstance(call, Call) and call.name in _NO_STRINGS:
        return False
    names = {inner.name for part in node.walk() if isinstance(inner := part.meta.get("call"), Call)}
    if names & _MAKES_LETTERS:
        return True
    letters = set("".join(part.name.lower() for part in node.find_all(exp.Literal, exp.RawString)))
    return any(set(word) <= letters for word in CLOCK_WORDS)


def level_of_call(call: Call) -> Level | None:
    """The catalogued level of a function as it is called: unix_timestamp reads the clock without arguments only."""
    if call.name == "unix_timestamp" and not call.empty:
        return Level.DETERMINISTIC
    return level_of(call.name)


def is_clock_word(text: str) -> bool:
    """Whether Spark takes this string for the clock where it is cast to a date or timestamp."""
    return text.strip().lower() in CLOCK_WORDS


def word_pin(kind: str, word: str) -> str:
    """The name of the pin of a word that is cast to the type `kind`."""
    return f"{kind} '{word}'"


def pin_level(name: str) -> Level:
    """The level of what a pinned literal stands for: a function of the table, or a word of the clock."""
    return Level.COMMAND if name.endswith("'") else level_of(name) or Level.COMMAND
