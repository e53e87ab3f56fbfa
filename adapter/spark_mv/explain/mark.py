"""A place in a SELECT as a compiler shows it: the line of the text, and `^^^^` under what is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.cells import cell_len

from spark_mv.explain.plain_text import plain

WIDTH = 100
"""Columns of a terminal that a line takes where nobody says how many there are."""
TAB = 4
_LEAST = 12
"""Columns that are left to the text however narrow the terminal is."""
_WORD = re.compile(r"(?:`[^`\n]*`|\w+)(?:\.(?:`[^`\n]*`|\w+))*|'[^'\n]*'|\S")


def mark(sql: str, line: int, column: int, what: str = "", width: int = WIDTH) -> tuple[str, ...]:
    """Two lines: that of the text with its place before it, and the mark. Empty where the text has no such place.

    `line` and `column` count characters from 1. `what` is marked if it stands there, else the word that does. A line longer than
    `width` columns is cut around the place. Tabs are spaces, wide characters two columns, control characters left out.

    >>> print("\\n".join(mark("select id,\\n\\trand() as x", 2, 2)))
    2:2 |     rand() as x
        |     ^^^^
    """
    texts = sql.split("\n")
    if not 1 <= line <= len(texts):
        return ()
    text = texts[line - 1].rstrip("\r")
    if not 1 <= column <= len(text) + 1:
        return ()
    start = column - 1
    end = start + _length(text[start:], what)
    before = _shown(text[:start], 0)
    marked = _shown(text[start:end], cell_len(before))
    after = _shown(text[end:], cell_len(before + marked)).rstrip()
    gutter = f"{line}:{column} | "
    before, marked, after = _cut(before, marked, after, max(width - len(gutter), _LEAST))
    below = " " * cell_len(before) + "^" * max(cell_len(marked), 1)
    return gutter + before + marked + after, " " * (len(gutter) - 2) + "| " + below


def _length(text: str, what: str) -> int:
    """How many characters of the text are meant. `what` may go on behind the line."""
    first = what.split("\n", 1)[0].rstrip()
    if first and text[: len(first)].lower() == first.lower():
        return len(first)
    found = _WORD.match(text)
    return found.end() if found else 0


def _shown(text: str, at: int) -> str:
    """The text as a terminal shows it, if it starts in column `at` (from 0)."""
    shown = ""
    for part in re.split(r"(\t)", text):
        shown += " " * (TAB - (at + cell_len(shown)) % TAB) if part == "\t" else plain(part)
    return shown


def _cut(before: str, marked: str, after: str, width: int) -> tuple[str, str, str]:
    """The three parts on `width` columns; what was cut away is an ellipsis."""
    if cell_len(before + marked + after) <= width and cell_len(before) < width:
        return before, marked, after
    marked = _start(marked, width // 2)
    room = width - max(cell_len(marked), 1)
    behind = min(cell_len(after), max(room // 3, room - cell_len(before)))
    return _end(before, room - behind), marked, _start(after, behind)


def _start(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return _fitting(text, width - 1) + "…" if width > 0 else ""


def _end(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return "…" + _fitting(reversed(text), width - 1)[::-1] if width > 0 else ""


def _fitting(characters: Iterable[str], width: int) -> str:
    """The first characters that take no more than `width` columns."""
    taken, used = "", 0
    for character in characters:
        used += cell_len(character)
        if used > width:
            break
        taken += character
    return taken
