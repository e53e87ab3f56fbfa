"""The text of `spark-mv explain` on a terminal or into a pipe."""

from __future__ import annotations

import re
import sys

from rich.console import Console
from rich.text import Text

from spark_mv.explain.mark import WIDTH

_STYLES = (
    (re.compile(r" +\| +\^+$"), "bold red"),
    (re.compile(r"  error "), "red"),
    (re.compile(r"  note: "), "dim"),
    (re.compile(r" +\d+:\d+ \| "), "cyan"),
    (re.compile(r"\S"), "bold"),
)
"""What the start of a line looks like, and rich's style for it."""


def terminal_width(console: Console | None = None) -> int:
    """Columns that lines of SQL may take: those of the terminal, or a number that suits a file."""
    out = console or Console(file=sys.stdout)
    return out.width if out.is_terminal else WIDTH


def print_explained(text: str, console: Console | None = None) -> None:
    """Prints it; a pipe gets no colours, and NO_COLOR is followed."""
    out = console or Console(file=sys.stdout, highlight=False, soft_wrap=True)
    for line in text.split("\n"):
        style = next((style for start, style in _STYLES if start.match(line)), "")
        out.print(Text(line, style=style))
