"""Reads the cases of `cases/*.sql`: a history of changes, and under each step the queries that it used to break."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """A query whose tables stand in braces, and the columns of its unique key."""

    name: str
    sql: str
    key: tuple[str, ...]
    always: bool = False

    def in_schema(self, schema: str) -> str:
        # the alias is the table's name, which a query may use to qualify a column
        return re.sub(r"\{(\w+)\}", rf"{schema}.\1", self.sql)

    def at(self, schema: str, instant: str) -> str:
        """The query with the clock put in by hand."""
        text = re.sub(r"\b(current_timestamp|now)\(\)", f"TIMESTAMP'{instant}'", self.in_schema(schema))
        return text.replace("current_date()", f"DATE'{instant[:10]}'")


@dataclass(frozen=True)
class Step:
    """Statements on the sources, then a run of each case at the instant."""

    name: str
    instant: str
    statements: tuple[str, ...]
    cases: tuple[Case, ...]


def read(name: str) -> tuple[Step, ...]:
    """The steps of one file, the first of which makes the sources."""
    steps = []
    for part in re.split(r"^== ", (CASES / name).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        title, _, instant = head.partition(" @ ")
        script, *queries = re.split(r"^-- ", body, flags=re.MULTILINE)
        cases = []
        for query in queries:
            words, _, sql = query.partition("\n")
            label, key, *rest = words.split(" | ")
            cases.append(Case(label, sql.strip(), tuple(k.strip() for k in key.split(",")), rest == ["always"]))
        statements = tuple(s.strip() for s in script.split(";\n") if s.strip())
        steps.append(Step(title.strip(), instant.strip(), statements, tuple(cases)))
    return tuple(steps)
