"""Fixture files: SQL statements, each under comment lines that tell its expected verdict. A new case needs no Python."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FIXTURES = Path(__file__).parent / "verdicts"
_WORDS = ("column", "rows", "error", "key", "freeze", "function", "table", "view", "predicate", "strategy")


@dataclass
class Case:
    """One statement. `columns` maps a name to (level, rest of the line); what is not named is deterministic."""

    place: str
    sql: str = ""
    columns: dict[str, tuple[str, str]] = field(default_factory=dict)
    rows: str = "deterministic"
    errors: list[tuple[str, str]] = field(default_factory=list)
    key: tuple[str, ...] = ("id",)
    freeze: tuple[str, ...] = ()
    functions: dict[str, dict[str, str]] = field(default_factory=dict)
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    predicates: list[str] = field(default_factory=list)
    strategies: list[str] = field(default_factory=list)


def cases(*names: str) -> list[Case]:
    """All cases of the named fixture files, or of all."""
    files = [FIXTURES / f"{name}.sql" for name in names] or sorted(FIXTURES.glob("*.sql"))
    return [case for file in files for case in _read(file)]


def _read(file: Path) -> list[Case]:
    found = []
    line = 1
    for block in re.split(r"\n\s*\n", file.read_text(encoding="utf-8")):
        case = Case(f"{file.stem}:{line}")
        sql = []
        for text in block.splitlines():
            word = text[3:].split(" ")[0].rstrip(":") if text.startswith("-- ") else ""
            if word in _WORDS:
                _expect(case, word, text[3 + len(word) :].strip(": "))
            elif not text.startswith("-- ") or sql:
                sql.append(text)
        line += block.count("\n") + 2
        case.sql = "\n".join(sql).strip("\n")
        if case.sql:
            found.append(case)
    return found


def _expect(case: Case, word: str, rest: str) -> None:
    if word == "column":
        name, level, *more = rest.split(" ", 2)
        case.columns[name] = (level, more[0] if more else "")
    elif word == "rows":
        case.rows = rest
    elif word == "error":
        code, _, place = rest.partition(" ")
        case.errors.append((code, place))
    elif word == "key":
        case.key = tuple(name.strip() for name in rest.split(",") if name.strip())
    elif word == "freeze":
        case.freeze = tuple(name.strip() for name in rest.split(","))
    elif word == "function":
        name, level = rest.split(" ")
        case.functions[name] = {"determinism": level}
    elif word == "table":
        name, columns = rest.split(" ", 1)
        case.tables[name] = dict(c.strip().split(" ", 1) for c in columns.split(","))
    elif word == "view":
        name, text = rest.split(": ", 1)
        case.views[name] = text
    elif word == "predicate":
        case.predicates.append(rest)
    elif word == "strategy":
        case.strategies.append(rest)
