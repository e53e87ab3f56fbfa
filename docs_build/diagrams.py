"""The small diagrams of the concept pages, and the picture of the benchmarks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from drawing import Drawing

DOCS = Path(__file__).resolve().parents[1] / "docs"
INCREMENTAL = DOCS / "incremental.md"


def levels() -> Drawing:
    drawing = Drawing(
        760, 170, "Levels of determinism", "From deterministic to nondeterministic, and where the value is kept"
    )
    rows = (
        ("deterministic", "upper, sum", "computed whenever"),
        ("session, user", "current_user()", "one value a run"),
        ("command", "current_date", "one value a run"),
        ("AI", "ai_classify", "one answer a question"),
        ("order-dependent", "first", "while its group stays"),
        ("nondeterministic", "rand, uuid", "one draw a row, kept"),
    )
    for number, (level, example, kept) in enumerate(rows):
        drawing.box(8 + number * 125, 14, 118, 92, level, example, kept)
    drawing.arrow(20, 128, 740, 128)
    drawing.text(20, 150, "any evaluation gives the same", "dim")
    drawing.text(740, 150, "every evaluation gives another", "dim", "end")
    return drawing


def kept_values() -> Drawing:
    drawing = Drawing(
        760, 190, "The life of a kept value", "Insert draws, update keeps, delete forgets, return draws anew"
    )
    steps = (
        ("insert", "ticket 7 arrives", "draws: train"),
        ("update", "its body is edited", "keeps: train"),
        ("--full-refresh", "the table is rebuilt", "reads back: train"),
        ("delete", "ticket 7 leaves", "forgets"),
        ("insert", "ticket 7 is back", "draws: test"),
    )
    for number, (head, event, value) in enumerate(steps):
        x = 8 + number * 152
        drawing.box(x, 20, 130, 92, head, event, value)
        if number:
            drawing.arrow(x - 21, 66, x - 3, 66)
    drawing.text(380, 150, "The value lives in the table's own row and is found by unique_key.", "", "middle")
    drawing.text(
        380, 170, "AI answers live longer: in ai_results, found by the question, for every model.", "dim", "middle"
    )
    return drawing


def windows() -> Drawing:
    drawing = Drawing(
        760, 220, "A window on the clock", "Three rows with the instants at which they enter and leave, and two runs"
    )
    days = ("26 Feb", "27 Feb", "28 Feb", "1 Mar", "2 Mar", "3 Mar", "4 Mar")
    for number, day in enumerate(days):
        drawing.text(150 + number * 92, 24, day, "dim", "middle")
        drawing.line(150 + number * 92, 32, 150 + number * 92, 176)
    for number, (name, start) in enumerate((("ticket 1, 27 Feb", 1), ("ticket 2, 28 Feb", 2), ("ticket 4, 1 Mar", 3))):
        y = 46 + number * 42
        drawing.text(8, y + 16, name)
        drawing.rect(150 + start * 92, y, 3 * 92 if start < 3 else 2.9 * 92, 24, "kept", 4)
    for x, words, side in (
        (150 + 3.25 * 92, "a run: all three are in the table", "end"),
        (150 + 4.25 * 92, "a day later: ticket 1 leaves", "start"),
    ):
        drawing.line(x, 32, x, 192, "ink")
        drawing.text(x, 210, words, "dim", side)
    return drawing


def strategies() -> Drawing:
    drawing = Drawing(
        760,
        196,
        "How a strategy is chosen",
        "Facts of sources, clock and settings go in; the cheapest strategy that applies comes out",
    )
    drawing.box(8, 20, 150, 60, "what changed", "sources, clock, SQL")
    drawing.box(8, 100, 150, 60, "what the query is", "joins, groups, windows")
    drawing.arrow(162, 50, 208, 82)
    drawing.arrow(162, 130, 208, 98)
    drawing.box(212, 58, 130, 64, "which apply?", "others say why not")
    drawing.arrow(346, 90, 384, 90)
    drawing.box(388, 58, 130, 64, "cheapest", "rows read, written")
    drawing.arrow(522, 90, 560, 90)
    names = ("NO_OP", "APPEND_ONLY", "ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION", "COMPLETE_RECOMPUTE")
    for number, name in enumerate(names):
        drawing.rect(566, 10 + number * 28, 184, 22, "box", 4)
        drawing.text(658, 25 + number * 28, name, "", "middle")
    drawing.text(658, 190, "the table is the same after each", "dim", "middle")
    return drawing


def one_commit() -> Drawing:
    drawing = Drawing(
        760,
        180,
        "One commit",
        "Look, ask, stage, check, publish; a run that dies before the commit has changed nothing",
    )
    steps = (
        ("look", "versions, clock"),
        ("ask", "AI, what is new"),
        ("stage", "rows that differ"),
        ("check", "keys, limits"),
        ("publish", "one commit"),
    )
    for number, (head, words) in enumerate(steps):
        x = 8 + number * 152
        drawing.box(x, 20, 130, 64, head, words)
        if number:
            drawing.arrow(x - 21, 52, x - 3, 52)
    drawing.line(8, 104, 594, 104)
    drawing.text(301, 126, "a run that stops or dies here leaves the table as it was", "dim", "middle")
    drawing.line(616, 104, 746, 104)
    drawing.text(681, 126, "rows and record, together", "dim", "middle")
    drawing.text(301, 146, "AI answers that came are kept", "dim", "middle")
    return drawing


def benchmark() -> Drawing:
    """Runs beside rebuilds, from the tables of docs/incremental.md."""
    text = INCREMENTAL.read_text(encoding="utf-8")
    bars: list[tuple[str, float, float]] = []
    for rows, changes in (
        ("10 million", ("10,000 new rows", "10,000 scattered updates", "2 hours leave the window")),
        ("50 million", ("50,000 new rows", "50,000 scattered updates", "2 hours leave the window")),
    ):
        part = text.split("At 50 million rows")[rows == "50 million"].split("With a text of 200")[0]
        for change in changes:
            found = re.search(rf"^\| {re.escape(change)}[^|]*\| ([\d.]+) \| ([\d.]+) \|", part, re.M)
            if found is None:
                raise ValueError(f"docs/incremental.md has no figures for {change!r} in {rows} rows")
            bars.append((f"{change}, {rows}", float(found[1]), float(found[2])))
    return _beside("Seconds of a run beside a rebuild", bars)


def growth() -> Drawing:
    """Runs of a fixed change beside rebuilds, over tables of different sizes, from the table of docs/benchmarks.md."""
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    head = re.search(r"^\| change of 10,000 rows((?: \| [\d,]+ rows \| rebuild)+) \|$", text, re.M)
    if head is None:
        raise ValueError("docs/benchmarks.md has no table of how cost grows")
    sizes = re.findall(r"([\d,]+) rows", head[1])
    bars: list[tuple[str, float, float]] = []
    for line in text[head.end() :].split("\n\n")[0].splitlines()[2:]:
        name, *cells = (cell.strip() for cell in line.strip("| ").split("|"))
        seconds = [float(cell) for cell in cells]
        named = name.split(" (")[0]
        bars += [
            (f"{named}, {size} rows", *seconds[2 * n : 2 * n + 2])  # type: ignore[misc]
            for n, size in enumerate(sizes)
        ]
    return _beside("Seconds of a run that takes in 10,000 changed rows, beside a rebuild", bars)


def _beside(title: str, bars: Sequence[tuple[str, float, float]]) -> Drawing:
    """Pairs of bars, seconds of a run and of a rebuild, each with its name."""
    drawing = Drawing(760, 40 + 44 * len(bars), title, "; ".join(f"{n}: {a:g} and {b:g} s" for n, a, b in bars))
    scale = 400 / max(b for _, _, b in bars)
    drawing.text(300, 18, "this run, and a rebuild, in seconds", "dim")
    for number, (name, run, rebuild) in enumerate(bars):
        y = 30 + 44 * number
        drawing.text(290, y + 21, name, "", "end")
        drawing.rect(300, y, run * scale, 14, "new", 2)
        drawing.text(306 + run * scale, y + 12, f"{run:g}", "strong")
        drawing.rect(300, y + 17, rebuild * scale, 14, "kept", 2)
        drawing.text(306 + rebuild * scale, y + 29, f"{rebuild:g}", "dim")
    return drawing


def planning() -> Drawing:
    """Seconds of planning against the length of a chain of CTEs, from the table of docs/benchmarks.md."""
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| chain of (\d+) CTEs \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|", text, re.M)
    points = [(int(n), int(lines.replace(",", "")), float(verdict), float(all_)) for n, lines, verdict, all_ in found]
    if not points:
        raise ValueError("docs/benchmarks.md has no figures for a chain of CTEs")
    drawing = Drawing(
        620,
        250,
        "Seconds of planning against the length of the model",
        "; ".join(f"{lines} lines: verdict {v:g} s, everything {a:g} s" for _, lines, v, a in points),
    )
    left, low = 60, 200
    across, up = 480 / points[-1][1], 160 / max(a for *_, a in points)
    drawing.line(left, low, left + 500, low)
    drawing.line(left, low, left, 30)
    drawing.text(left, 20, "CPU seconds", "dim", "middle")
    drawing.text(left + 500, low + 34, "lines of the model", "dim", "end")
    for which, kind, words in ((2, "kept", "the verdict"), (3, "new", "everything that explain shows")):
        spots = [(left + p[1] * across, low - p[which] * up) for p in points]
        for (x1, y1), (x2, y2) in pairwise([(left, low), *spots]):
            drawing.line(x1, y1, x2, y2)
        for x, y in spots:
            drawing.rect(x - 3, y - 3, 6, 6, kind, 3)
        drawing.text(spots[-1][0] - 10, spots[-1][1] - 8, f"{words}: {points[-1][which]:g}", "dim", "end")
    for _, lines, _, _ in points[2:]:
        drawing.text(left + lines * across, low + 16, f"{lines:,}", "dim", "middle")
    return drawing


DIAGRAMS = {
    "levels.svg": levels,
    "kept-values.svg": kept_values,
    "windows.svg": windows,
    "strategies.svg": strategies,
    "one-commit.svg": one_commit,
    "benchmark.svg": benchmark,
    "planning.svg": planning,
    "growth.svg": growth,
}
