"""The picture of one model over four days, from the output of `make demo` that stands in docs/demo.md; and the other pictures.

`python docs_build/picture.py` writes them all into docs/assets.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from diagrams import DIAGRAMS
from drawing import Drawing

DOCS = Path(__file__).resolve().parents[1] / "docs"
LINE = re.compile(
    r"^(day \d+(?:, [^ ]+)?) +(\d[\d,]*) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+)   (\w+)$", re.M
)


@dataclass(frozen=True)
class Day:
    """One run: rows that came, changed, were deleted, were evicted; AI calls; rows afterwards; what dbt did."""

    name: str
    inserted: int
    updated: int
    deleted: int
    evicted: int
    calls: int
    rows: int
    did: str


def days(text: str) -> list[Day]:
    """The runs in the last table of the demo's output."""
    found = []
    for name, *figures, did in LINE.findall(text):
        found.append(Day(name, *(int(one.replace(",", "")) for one in figures), did))
    return found


def four_days(text: str) -> str:
    """The picture's SVG. A square is one row of the table; rows stand in the same order on each day."""
    played = [day for day in days(text) if "," not in day.name]
    drawing = Drawing(
        860,
        372,
        "One model over four days",
        "; ".join(
            f"{d.name}: {d.inserted} new, {d.updated} changed, {d.deleted + d.evicted} gone, {d.calls} AI calls, {d.rows} rows"
            for d in played
        ),
    )
    titles = ("first load", "new rows arrived", "edits and a deletion", "only the clock moved")
    side, gap, across, wide = 7, 1.6, 20, 205
    for number, (day, title) in enumerate(zip(played, titles, strict=True)):
        left = 22 + number * wide
        drawing.text(left, 24, day.name, "big")
        drawing.text(left, 42, title, "dim")
        gone = day.deleted + day.evicted
        kinds = ["gone"] * gone + ["changed"] * day.updated
        kinds += ["kept"] * (day.rows - day.updated - day.inserted) + ["new"] * day.inserted
        for place, kind in enumerate(kinds):
            x, y = left + place % across * (side + gap), 56 + place // across * (side + gap)
            inset = 1 if kind == "gone" else 0
            drawing.rect(x + inset, y + inset, side - 2 * inset, side - 2 * inset, kind, 1)
        drawing.text(left, 190, f"{day.rows} rows", "strong")
        parts = [f"+{day.inserted}"] if day.inserted else []
        parts += [f"~{day.updated}"] if day.updated else []
        parts += [f"-{gone}"] if gone else []
        drawing.text(left, 208, f"{day.did} {' '.join(parts)}", "dim")
    low, tall, most = 322, 70, max(2 * day.rows for day in played)
    drawing.text(
        22, 240, "AI calls of the run, beside two for every row, as a rebuild without kept answers would make", "dim"
    )
    for number, day in enumerate(played):
        left = 22 + number * wide
        for offset, calls, kind in ((0, day.calls, "new"), (58, 2 * day.rows, "other")):
            height = tall * calls / most
            if height:
                drawing.rect(left + offset, low - height, 44, height, kind, 2)
            drawing.text(left + offset + 22, low + 16, f"{calls}", "strong" if kind == "new" else "dim", "middle")
        drawing.line(left - 4, low, left + 112, low)
    legend = (("kept", "kept as it was"), ("new", "new"), ("changed", "changed; its draws kept"), ("gone", "gone"))
    left = 22
    for kind, words in legend:
        drawing.rect(left, 352, 10, 10, kind, 1)
        drawing.text(left + 16, 361, words, "dim")
        left += 40 + 7 * len(words)
    return drawing.svg()


def pictures() -> dict[str, str]:
    """Every picture: file name under docs/assets → SVG."""
    made = {name: diagram().svg() for name, diagram in DIAGRAMS.items()}
    return {"four-days.svg": four_days((DOCS / "demo.md").read_text(encoding="utf-8")), **made}


if __name__ == "__main__":
    for name, svg in pictures().items():
        (DOCS / "assets" / name).write_text(svg, encoding="utf-8")
        print(f"docs/assets/{name}")
