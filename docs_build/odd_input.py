"""Writes docs/reference/odd-input.md from what the tests noted.

ODD_COUNTED=build/odd.jsonl pytest -m slow integration_tests/materialization/test_odd_input.py
ODD_COUNTED=build/odd.jsonl pytest integration_tests/materialization/test_hostile_input.py
python docs_build/odd_input.py build/odd.jsonl
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "odd-input.md"
HEAD = """# Odd input

What comes of names, keys, values and times of a kind that one does not think of. Each line is a model that the tests run three times: first, after
rows of its source were changed, deleted and added, and once more. After each run the table is compared with the query, row for row; what is kept has to
stand where it stood, and the third run must find nothing to do. Or the run says what is wrong, and touches nothing. The lines are written by the test run itself
(`integration_tests/materialization/test_odd_input.py`, `test_hostile_input.py`, `docs_build/odd_input.py`); some of them are part of each one.

Not in the lines: YAML in which a few lines stand for billions of values. dbt-core writes out what stands in `--vars` and in the files of a project while it reads
them, and does not come back from that. A setting of more than 100,000 values that reaches a model is refused (`CONFIG`).
"""
_LONGEST = 300
"""Characters of a message that the page shows."""


def main(noted: Path) -> None:
    """The page, of the newest outcome of each case."""
    lines = (json.loads(line) for line in noted.read_text(encoding="utf-8").splitlines())
    found = {outcome["name"]: outcome for outcome in lines}
    PAGE.write_text(page(found.values()), encoding="utf-8")


def page(outcomes: Iterable[Mapping[str, Any]]) -> str:
    """The text of the page, in groups."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome["group"], []).append(outcome)
    every = [outcome for group in groups.values() for outcome in group]
    refused, wrong = (sum(bool(outcome[name]) for outcome in every) for name in ("refused", "wrong"))
    counts = f"{len(every)} cases: {len(every) - refused - wrong} as they should be, {refused} refused, {wrong} wrong."
    parts = [
        f"## {name}\n\n| what | what comes of it |\n| --- | --- |\n" + "".join(map(_row, group))
        for name, group in groups.items()
    ]
    return "\n".join([HEAD, counts + "\n", *parts])


def _row(outcome: Mapping[str, Any]) -> str:
    """How the changes got into the table, or what the refusal says."""
    if outcome["wrong"]:
        says = "**wrong**: " + _cell(" ".join(outcome["wrong"]))
    elif outcome["refused"]:
        says = "refused: " + _cell(outcome["refused"])
    else:
        says = f"right, by `{outcome['says'][1]}`"
    return f"| {_escaped(outcome['what'])} | {says} |\n"


def _cell(message: str) -> str:
    """A message in one line, without what is of the test alone."""
    text = " ".join(message.partition("> in macro ")[0].split())
    text = re.sub(r"^\w+ Error in model \w+ \([^)]*\) ", "", text)
    text = re.sub(r"test\d+_test_\w+?\.", "", text)
    return _escaped(text if len(text) <= _LONGEST else text[:_LONGEST] + " …")


def _escaped(text: str) -> str:
    """As Markdown shows it in a cell, word for word."""
    shown = html.escape(text.replace("\n", " ").replace("\t", " "), quote=False).replace("|", "&#124;")
    return re.sub(r"([\\`*_{}\[\]])", r"\\\1", shown)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
