"""Writes docs/reference/odd-input.md from what the tests counted.

FAULTS_COUNTED=build/odd.jsonl pytest integration_tests/incremental/test_odd_input.py integration_tests/materialization/test_hostile_input.py
python docs_build/odd_input.py build/odd.jsonl
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "odd-input.md"
HEAD = """# Odd and hostile input

What came of input that breaks other programs. The outcomes are those that the tests met (`integration_tests/incremental/test_odd_input.py`,
`integration_tests/materialization/test_hostile_input.py`), put into this page by `docs_build/odd_input.py`.

*Kept right by* strategies: after a first run, after each of several changes of the source (rows edited, deleted, new ones), after a run over nothing new and after a
`--full-refresh`, the table was the query's, byte for byte, and each row that stayed had the random value that it had before. Spark's own equality holds for keys: `0.0` and `-0.0` are one key, and so are
`'a'` and `'A'` under a collation that takes them for one.
"""
WORDS = {
    "keys": "As keys",
    "columns": "Columns and their names",
    "values": "As values",
    "clock": "Windows where days are odd",
    "hostile": "Input that wants to be code, or too much",
}


def main(counted: Path) -> None:
    found: dict[str, dict[str, str]] = {}
    for line in counted.read_text(encoding="utf-8").splitlines():
        kind, *key, _ = json.loads(line)
        if kind == "odd":
            group, name, said = key
            found.setdefault(group, {})[name] = said
    parts = [HEAD]
    for group, title in WORDS.items():
        rows = "\n".join(f"| {_cell(name)} | {_cell(said)} |" for name, said in found.get(group, {}).items())
        parts.append(f"\n## {title}\n\n| input | outcome |\n|---|---|\n{rows}\n")
    PAGE.write_text("".join(parts), encoding="utf-8")


def _cell(text: str) -> str:
    """One line of a table; what is code in a message stays text."""
    short = text if len(text) <= 400 else text[:400] + " …"
    return re.sub(r"([|*<>{}\[\]\\])", r"\\\1", short.replace("\n", " "))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
