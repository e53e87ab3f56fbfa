"""The lines of `spark-mv status` on a terminal or into a pipe."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_mv.report.facts import ProjectFacts
from spark_mv.report.status import lines, notes
from spark_mv.report.words import plain

HEADS = ("model", "state", "last run", "strategy", "rows", "next change", "AI")


def print_status(project: ProjectFacts, now: float, console: Console | None = None) -> None:
    """A table, errors below it, then what could not be read. A pipe gets neither colours nor cut cells."""
    out = console or Console(file=sys.stdout, highlight=False, soft_wrap=not sys.stdout.isatty())
    found = lines(project, now)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in HEADS:
        table.add_column(head, justify="right" if head == "rows" else "left", no_wrap=True)
    for line in found:
        cells = (line.last_run, line.strategy, line.rows, line.next_change, line.ai)
        table.add_row(Text(line.model), Text(line.condition, style=line.style), *map(Text, cells))
    if found:
        out.print(table, width=None if out.is_terminal else 400)
    else:
        out.print(f"project {plain(project.name)} has no model with materialized='nondeterministic_mv'", markup=False)
    for line in found:
        if line.error:
            out.print(Text(f"\n{line.model}: ", style="bold"), Text(line.error), sep="")
    for note in notes(project):
        out.print(Text(f"note: {note}", style="dim"))
