"""Marts: a table with a key, to which groups, newest rows and other tables are joined, through CTEs or not. What is joined to affected keys is
restricted to them, and what only takes rows away is not read to find them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest
from engine import Database
from grammar import Drawn
from pairs import live
from search import Seen, histories_of, model_of

from spark_mv.maintenance.changes import SourceTexts

pytestmark = pytest.mark.unit
QUERIES, HISTORIES = int(os.environ.get("ORACLE_QUERIES", 10)), int(os.environ.get("ORACLE_HISTORIES", 4))
KEYS = {"t": "id", "u": "k", "r": "y"}
NUMBERS = {"t": ("id", "k", "x"), "u": ("k", "y"), "r": ("y", "flag"), "e": ("k", "z")}
"""Columns of one type, so that any can be joined with any other."""


class Marts:
    """Queries drawn from one seed. Each joined item has at most one row for each value of its column `g`, and a number `n`."""

    def __init__(self, random: Random, listed: float = 0.0) -> None:
        self.random, self.listed = random, listed  # the share of items whose rows are written out
        self.ctes: list[str] = []
        self.names: list[str] = []

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def number(self, table: str) -> str:
        return self.random.choice(NUMBERS[table])

    def ranged(self) -> str:
        """Every row of a table beside the groups that a range joins to it: dates from the first order on."""
        base, item = self.random.choice(list(KEYS)), self.side_by_side() if self.chance(0.3) else self.grouped()
        kind, comparison = self.random.choice(("join", "left join")), self.random.choice(("<=", ">", "<"))
        test = f"j.n {comparison} b.{self.number(base)}" + self.random.choice(
            ("", " and j.g > 0", " and b.k + 0 < 9" if base != "r" else "")
        )
        return f"select b.{KEYS[base]} as id, coalesce(j.g, -7) as g, j.n from {base} b {kind} ({item}) j on {test} where j.g is not null or j.n is null"

    def query(self) -> str:
        base = self.random.choice(list(KEYS))
        text = self.mart(base, self.random.choice((1, 2, 2, 3)))
        if self.chance(0.4):
            self.ctes.append(f"joined as ({text})")
            text = "select * from joined"
            if self.chance(0.6):
                self.ctes.append(
                    f"final as (select *, n0 + 1 as more from joined{self.random.choice(('', ' where id > 0'))})"
                )
                text = self.random.choice(("select * from final", "select id, more from final where more is not null"))
            elif self.chance(0.4):
                text = "select id, max(n0) as n0, count(*) as c from joined group by id"
            elif self.chance(0.4):
                text = "select a.id, a.n0, b.n0 as other from joined a left join joined b on b.id = a.n0"
        return (f"with {', '.join(self.ctes)} " if self.ctes else "") + text

    def mart(self, base: str, joins: int) -> str:
        key = KEYS[base]
        columns, items = [f"b.{key} as id"], f"{base} b"
        where: list[str] = []
        on = [f"b.{key}"]
        for k in range(joins):
            item, name = self.item(), f"j{k}"
            mine = self.random.choice(on if self.chance(0.8) else [f"b.{self.number(base)}"])
            test = self.random.choice((f"{name}.g = {mine}", f"{mine} = {name}.g", f"({mine} = {name}.g)"))
            if self.chance(0.2):
                test += self.random.choice(
                    (f" and {name}.n > 1", f" and b.{self.number(base)} > 0", f" and {name}.n <> {mine}")
                )
            kind = self.random.choice(
                ("left join", "left join", "left join", "join", "left outer join", "left semi join", "left anti join")
            )
            if k == 0 and self.chance(0.1):
                items = f"{item} {name} right join {base} b on {test}"
            elif k == 0 and self.chance(0.2):
                items = f"{item} {name} join {base} b on {test}"
            elif self.chance(0.08):
                items, kind = f"{items} cross join {item} {name}", "join"
                where.append(test)
            else:
                items += f" {kind} {item} {name} on {test}"
            if not kind.endswith(("semi join", "anti join")):
                columns.append(f"{self.random.choice((f'{name}.n', f'coalesce({name}.n, -1)'))} as n{k}")
                on.append(self.random.choice((f"{name}.g", f"{name}.n")))
            else:
                columns.append(f"b.{self.number(base)} as n{k}")
        if self.chance(0.2):
            where.append(self.random.choice((f"b.{key} > 0", f"b.{self.number(base)} is not null",
                f"exists (select 1 from e where e.k = b.{self.number(base)})")))  # fmt: skip
        if self.chance(0.15):
            columns.append(f"sum(b.{self.number(base)}) over (partition by b.{key}) as s")
        return f"select {', '.join(columns)} from {items}{' where ' + ' and '.join(where) if where else ''}"

    def item(self) -> str:
        if self.names and self.chance(0.15):
            return self.random.choice(self.names)  # a CTE that is read twice
        if self.chance(0.15):
            table = self.random.choice(list(KEYS))
            return f"(select {KEYS[table]} as g, {self.number(table)} as n from {table})"
        text = self.side_by_side() if self.chance(0.25) else self.grouped()
        if self.chance(0.5):
            name = f"c{len(self.ctes)}"
            self.ctes.append(f"{name} as ({text})")
            self.names.append(name)
            return name
        return f"({text})"

    def side_by_side(self) -> str:
        """Groups that are joined to groups before anything asks for them, often by a column that the join may leave empty."""
        g = self.random.choice(("p.g", "q.g", "coalesce(p.g, q.g)", "coalesce(q.g, p.g)"))
        n = self.random.choice(("p.n", "q.n", "coalesce(q.n, p.n, 0)"))
        kind = self.random.choice(("left join", "left join", "join", "left outer join"))
        return f"select {g} as g, {n} as n from ({self.grouped()}) p {kind} ({self.grouped()}) q on q.g = p.g"

    def grouped(self) -> str:
        if self.listed and self.chance(self.listed):
            rows = ", ".join(
                f"({g}, {self.random.choice(('null', '0', '5', '-2'))})" for g in range(self.random.choice((1, 3)))
            )
            return self.random.choice((
                f"select g, n from (values {rows}) as l(g, n)", f"select g, max(n) as n from (values {rows}) as l(g, n) group by g",
                f"select y as g, l.n from r left join (values {rows}) as l(g, n) on l.g = r.y",
            ))  # fmt: skip
        table = self.random.choice(list(NUMBERS))
        a, b = self.number(table), self.number(table)
        rows, where = f"{table} v", ""
        if table in ("t", "e") and self.chance(0.25):
            where = self.random.choice((" where v.ts > now() - interval 5 hours", " where v.ts <= now()"))
        elif self.chance(0.3):
            where = f" where v.{b} > 0"
        if self.chance(0.4):
            other = self.random.choice(list(NUMBERS))
            kind = self.random.choice(("join", "join", "left join"))
            both = f"v.{self.number(table)} = w.{self.number(other)}"
            rows = self.random.choice(
                (f"{table} v {kind} {other} w on {both}", f"{other} w {kind} {table} v on {both}")
            )
        return self.random.choice((
            f"select v.{a} as g, count(*) as n from {rows}{where} group by v.{a}",
            f"select v.{a} as g, max(v.{b}) as n from {rows}{where} group by 1 having count(*) > 1",
            f"select v.{a} as g, sum(v.{b}) as n, min(v.{b}) as m from {rows}{where} group by v.{a}",
            f"select g, count(distinct n) as n from (select distinct v.{a} as g, v.{b} as n from {rows}{where}) q group by g",
            f"select g, n from (select v.{a} as g, count(*) over (partition by v.{a}) as n, row_number() over (partition by v.{a} "
            f"order by v.{b}) as rn from {rows}{where}) q where rn = 1",
            f"select g, sum(n) as n from (select v.{a} as g, v.{b} as n from {rows}{where} union all select y, flag from r) q group by g",
        ))  # fmt: skip


def drawn(first: int, count: int, listed: float = 0.0) -> Iterator[tuple[int, Drawn]]:
    for seed in range(first, first + count):
        marts = Marts(Random(seed), listed)
        yield seed, Drawn(marts.ranged(), ("id", "g")) if seed % 8 == 5 else Drawn(marts.query(), ("id",))


def look(first: int, queries: int, histories: int, listed: float = 0.0) -> Seen:
    database, seen = Database(), Seen()
    for seed, query in drawn(first, queries, listed):
        model = model_of(database, query, seen)
        if model is None:
            continue
        with pytest.MonkeyPatch.context() as patch:
            if seed % 2:  # so few rows never outweigh their changes
                patch.setattr(SourceTexts, "outweighs", lambda texts, name: True)
            for history in histories_of(seed, model, histories):
                wrong = live(model, history, seen.tally)
                assert wrong is None, f"seed {seed}: {wrong}\n{query.sql}\n{history}"
    return seen


def test_they_are_followed() -> None:
    seen = look(0, QUERIES, HISTORIES)
    print(seen)
    assert sum(seen.tally.runs[name] for name in ("ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION")) > QUERIES


def test_rows_that_are_written_out_are_joined_as_tables_are() -> None:
    seen = look(0, QUERIES, HISTORIES, listed=0.5)
    print(seen)
    assert sum(seen.tally.runs[name] for name in ("ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION")) > QUERIES


@pytest.mark.slow
def test_many_more() -> None:
    look(1_000, 1_500, 8)
    look(3_000, 500, 8, listed=0.5)
