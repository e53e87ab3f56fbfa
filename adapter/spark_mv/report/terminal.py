"""The lines of `spark-mv status` on a terminal or into a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_mv.report.facts import ProjectFacts
from spark_mv.report.status import Line, lines, notes
from spark_mv.report.words import plain

HEADS = ("model", "state", "last run", "strategy", "rows", "next change", "AI")
SPARED = ("strategy", "rows")
"""Columns that a narrow terminal goes without, in this order."""
WIDE = 400
"""Characters of a line in a pipe."""


def print_status(project: ProjectFacts, now: float, console: Console | None = None) -> None:
    """A table, errors below it, then what could not be read. A pipe gets neither colours nor cut cells."""
    piped = not sys.stdout.isatty()
    out = console or Console(file=sys.stdout, highlight=False, soft_wrap=piped, width=WIDE if piped else None)
    found = lines(project, now)
    if found:
        out.print(_fitting(found, out))
    else:
        out.print(f"project {plain(project.name)} has no model with materialized='nondeterministic_mv'", markup=False)
    for line in found:
        if line.error:
            out.print(Text(f"\n{line.model}: ", style="bold"), Text(line.error), sep="")
    for note in notes(project):
        out.print(Text(f"note: {note}", style="dim"))


def _fitting(found: Sequence[Line], out: Console) -> Table:
    """The table, with the columns that the console has room for; names that are still too long are folded."""
    heads = list(HEADS)
    table, free = _table(found, heads), out.options.update(max_width=WIDE)
    for head in SPARED:
        if out.measure(table, options=free).maximum > out.width:
            heads.remove(head)
            table = _table(found, heads)
    return table


def _table(found: Sequence[Line], heads: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in heads:
        whole = head not in ("model", "AI")
        table.add_column(head, justify="right" if head == "rows" else "left", no_wrap=whole, overflow="fold")
    for line in found:
        cells = (line.model, line.condition, line.last_run, line.strategy, line.rows, line.next_change, line.ai)
        texts = dict(zip(HEADS, map(Text, cells), strict=True))
        texts["state"].stylize(line.style)
        table.add_row(*(texts[head] for head in heads))
    return table
