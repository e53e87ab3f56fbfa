"""UNION ALL whose arms read tables of their own: followed by changed rows alone, however many of the tables changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest
from engine import Database
from grammar import Drawn
from pairs import live
from search import Seen, histories_of, model_of

pytestmark = pytest.mark.unit
QUERIES, HISTORIES = int(os.environ.get("ORACLE_QUERIES", 12)), int(os.environ.get("ORACLE_HISTORIES", 4))
TABLES = {"t": ("id", "x", "s"), "u": ("k", "y", "w"), "r": ("y", "flag", "region")}
"""Their keys, a number and a text."""
JOINS = {"t": "left join u j on j.k = b.x", "u": "join r j on j.y = b.y", "r": "left join u j on j.k = b.flag"}
WHERE = (
    "",
    "",
    " where b.{n} > 0",
    " where b.{n} is null or b.{s} > 'a'",
    "\n-- few\nWhere b.{n} in (0, 1, 3)",
    " where exists (select 1 from e where e.k = b.{n})",
)


class Unions:
    """Queries drawn from one seed. Each row has the number of its arm and the key of the arm's table."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.arms = 0
        self.ctes: list[str] = []

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def query(self) -> str:
        body = self.union(list(TABLES), 2)
        if self.chance(0.5):
            where = self.random.choice(("", " where n is not null", " where kind < 2 or n > 0"))
            body = f"select kind, id, n + 1 as n, m from ({body}) v{where}"
        return (f"with {', '.join(self.ctes)} " if self.ctes else "") + body

    def union(self, tables: list[str], depth: int) -> str:
        self.random.shuffle(tables)
        word = self.random.choice((" union all ", "\nUNION ALL\n", " union all by name "))
        arms = [self.arm(table, depth, "name" in word) for table in tables[: self.random.choice((2, 3, 3))]]
        if self.chance(0.3):
            arms.insert(self.random.randrange(len(arms) + 1), self.of_nothing())
        return word.join(arms)

    def of_nothing(self) -> str:
        kind = self._number()
        return self.random.choice((
            f"select {kind} as kind, 7 as id, 0 as n, 'none' as m",
            f"(select {kind} as kind, 7 as id, 0 as n, 'none' as m)",
            f"select {kind} as kind, coalesce(k, 0) as id, count(*) as n, 'e' as m from e group by coalesce(k, 0)",
            f"select {kind} as kind, z as id, max(k) as n, max(s) as m from e where z is not null group by z having count(*) > 1",
            f"select distinct {kind} as kind, z as id, 0 as n, 'z' as m from e where z is not null -- all of them\n",
        ))  # fmt: skip

    def arm(self, table: str, depth: int, by_name: bool) -> str:
        key, n, s = TABLES[table]
        where = self.random.choice(WHERE).format(n=n, s=s)
        join, m = ("", f"b.{s}") if self.chance(0.8) else (f" {JOINS[table]}", f"concat(b.{s}, j.y)")
        items = [f"{self._number()} as kind", f"b.{key} as id", f"b.{n} as n", f"{m} as m"]
        if by_name:
            self.random.shuffle(items)
        text = f"select {', '.join(items)} from {table} b{join}{where}"
        if self.chance(0.2):
            text = f"select * from ({text}) a"
        elif self.chance(0.2):
            name = f"q{len(self.ctes)}"
            self.ctes.append(f"{name} as ({text})")
            text = f"select * from {name}"
        elif self.chance(0.2):
            text = f"({text})"
        if depth and not by_name and self.chance(0.25):
            text = f"({text} union all {self.of_nothing()})"
        return text

    def _number(self) -> int:
        self.arms += 1
        return self.arms


def drawn(first: int, count: int) -> Iterator[tuple[int, Drawn]]:
    for seed in range(first, first + count):
        yield seed, Drawn(Unions(Random(seed)).query(), ("kind", "id"))


def look(first: int, queries: int, histories: int) -> Seen:
    database, seen = Database(), Seen()
    for seed, query in drawn(first, queries):
        model = model_of(database, query, seen)
        assert model is not None, (query, seen)
        for history in histories_of(seed, model, histories):
            wrong = live(model, history, seen.tally)
            assert wrong is None, f"{wrong}\n{query.sql}\n{history}"
    return seen


def test_they_are_followed() -> None:
    seen = look(0, QUERIES, HISTORIES)
    print(seen)
    assert seen.tally.runs["ROW_BASED"] > QUERIES and seen.tally.runs["APPEND_ONLY"]


@pytest.mark.slow
def test_many_more() -> None:
    look(1_000, 1_500, 12)
