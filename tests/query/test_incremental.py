"""The algebra of incremental maintenance, checked on DuckDB with generated histories: the affected anchors are a superset
of what changed, and the restricted query gives exactly the new rows for them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.narrowed import KnownColumns
from spark_mv.query.delta.restrict import Move, NotIncremental, QueryTree, read_tree
from spark_mv.query.delta.texts import TableRef, with_tables
from spark_mv.query.rewrite.clock_split import split_clock
from spark_mv.query.rewrite.pin import Pins, clock_spans, pin
from spark_mv.query.syntax.select_tree import Leaf

SCHEMAS: Mapping[str, Mapping[str, str]] = {
    "t": {"id": "int", "k": "int", "x": "int", "ts": "timestamp"},
    "u": {"k": "int", "y": "int"},
    "e": {"id": "int", "z": "int"},
}
EXAMPLES = 15
START = datetime(2026, 1, 1, tzinfo=timezone.utc)

# name → (query, unique_key); each must be understood
QUERIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "projection": ("select id, x + 1 as x1 from t where k > 1", ("id",)),
    "star_except": ("select t.* except (k), k + 1 as k from t where x > 0", ("id",)),
    "star": ("select * from t where x is not null or k = 2", ("id",)),
    "alias": ("select a.id, a.x * 2 as d from t as a where a.k <> 0 -- why\n", ("id",)),
    "derived": ("select id, s from (select id, k + x as s from t where k < 3) q where s > 1", ("id",)),
    "cte": ("with a as (select id, x from t), b as (select * from a where x > 0) select b.id, b.x from b", ("id",)),
    "cte_twice": ("with a as (select * from t where x > 0) select l.id, r.k from a l join a r on l.id = r.x", ("id", "k")),
    "inner_join": ("select t.id, t.x, u.y from t join u on t.k = u.k where u.y > 0", ("id",)),
    "join_using": ("select id, x, y from t join u using (k)", ("id",)),
    "comma_join": ("select t.id, u.y from t, u where t.k = u.k", ("id", "y")),
    "left_join": ("select t.id, u.y from t left join u on t.k = u.k", ("id",)),
    "left_join_null": ("select t.id, t.x from t left join u on t.k = u.k and u.y > 1 where u.k is null", ("id",)),
    "left_joins": ("select t.id, u.y, e.z from t left join u on t.k = u.k left join e on e.id = u.y", ("id",)),
    "left_joins_null_safe": ("select t.id, e.z from t left join u on t.k = u.k left join e on e.id <=> u.y", ("id",)),
    "right_join": ("select u.k, u.y, t.id from t right join u on t.k = u.k", ("k",)),
    "self_join": ("select a.id, b.id as bid from t a join t b on a.k = b.x", ("id", "bid")),
    "semi": ("select t.id, t.x from t left semi join u on t.k = u.k and u.y > 0", ("id",)),
    "anti": ("select t.id, t.x from t left anti join u on t.k = u.k", ("id",)),
    "anti_and_join": ("select t.id, e.z from t join e on e.id = t.id left anti join u on t.k = u.k", ("id",)),
    "exists": ("select id, x from t where exists (select 1 from u where u.k = t.k and u.y > t.x)", ("id",)),
    "not_exists": ("select id, x from t where not exists (select 1 from u where u.k = t.k) and x > 0", ("id",)),
    "in": ("select id from t where k in (select k from u where y > 1) and x > 0", ("id",)),
    "exists_join": ("select id from t where exists (select 1 from u join e on u.y = e.id where u.k = t.k)", ("id",)),
    "union_all": ("select id, x as v from t where x > 0 union all select id, z from e", ("id",)),
    "union_in_cte": (
        "with a as (select id, x as v from t union all select id, z from e) select a.id, u.y from a join u on a.v = u.k",
        ("id",),
    ),
    "union": ("select id, x as v from t union select id, z from e", ("id", "v")),
    "except": ("select id, x as v from t except select id, z from e", ("id", "v")),
    "intersect": ("select id from t intersect select id from e", ("id",)),
    "group": ("select k, count(*) as n, sum(x) as s from t group by k", ("k",)),
    "group_expr": ("select k % 2 as p, max(x) as m from t where x > 0 group by k % 2 having count(*) > 1", ("p",)),
    "group_filter": ("select k, count(*) filter (where x > 1) as n from t group by all", ("k",)),
    "group_join": ("select u.y, sum(t.x) as s from t join u on t.k = u.k group by u.y", ("y",)),
    "group_left_join": ("select t.k, count(u.y) as n from t left join u on t.k = u.k group by t.k", ("k",)),
    "group_cte": ("with g as (select k, sum(x) as s from t group by k) select k, s * 2 as d from g where s > 2", ("k",)),
    "group_then_join": (
        "with g as (select k, sum(x) as s from t group by k) select e.id, g.s from e join g on g.k = e.z where g.s > 1",
        ("id",),
    ),
    "group_then_left_join": (
        "select e.id, g.s from e left join (select k, sum(x) as s from t group by 1) g on g.k = e.z",
        ("id",),
    ),
    "distinct": ("select distinct k, x from t where x > 0", ("k", "x")),
    "distinct_join": ("select distinct t.k from t join u on t.x = u.k", ("k",)),
    "window": ("select id, k, row_number() over (partition by k order by x, id, ts) as rn from t", ("id",)),
    "dedup": (
        "select id, x from (select *, row_number() over (partition by id order by x desc nulls last, k, ts) rn from t) "
        "where rn = 1",
        ("id",),
    ),
    "qualify": ("select id, x from t qualify row_number() over (partition by id order by x, k, ts) = 1", ("id",)),
    "windows": (
        "select id, k, sum(x) over w as s, max(x) over (partition by k) as m from t window w as (partition by k)",
        ("id",),
    ),
    "window_join": (
        "with l as (select *, row_number() over (partition by k order by y) rn from u) "
        "select t.id, l.y from t left join l on l.k = t.k and l.rn = 1",
        ("id",),
    ),
    "group_window": (
        "select k, x, count(*) as n, rank() over (partition by k order by count(*)) as r from t group by k, x",
        ("k", "x"),
    ),
    "recent": ("select id, x from t where ts > current_timestamp() - interval 2 hours", ("id",)),
    "recent_group": (
        "select k, count(*) as n from t where ts >= current_timestamp() - interval 3 hours and ts <= current_timestamp() "
        "group by k",
        ("k",),
    ),
    "recent_cte": (
        "with r as (select * from t where ts <= current_timestamp()) select u.k, r.id from u left join r on r.k = u.k",
        ("k",),
    ),
    "recent_dedup": (
        "select id, x from t where ts <= current_timestamp() "
        "qualify row_number() over (partition by id order by ts desc, x, k) = 1",
        ("id",),
    ),
    "recent_join": ("select t.id, u.y from t join u on t.k = u.k and t.ts < current_timestamp()", ("id",)),
}  # fmt: skip

FIXTURE = Path(__file__).parent / "fixtures" / "delta_queries.sql"


def written() -> dict[str, tuple[str, tuple[str, ...]]]:
    """The queries of the fixture file: a comment with name and key, then the text."""
    found = re.findall(r"^-- (\w+) \| ([\w, ]+)\n(.+)$", FIXTURE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (sql, tuple(k.strip() for k in key.split(","))) for name, key, sql in found}


SHAPES = written()
QUERIES |= SHAPES

small = st.one_of(st.none(), st.integers(0, 3))
hours = st.one_of(st.none(), st.integers(-4, 6).map(lambda h: START.replace(tzinfo=None) + timedelta(hours=h)))
ROWS = {
    "t": st.tuples(st.integers(0, 4), small, small, hours),
    "u": st.tuples(small, small),
    "e": st.tuples(st.integers(0, 4), small),
}
Bag = list[tuple[Any, ...]]


@st.composite
def history(draw: st.DrawFn) -> tuple[dict[str, Bag], dict[str, Bag]]:
    """Two states of the three tables; some tables stay as they are."""
    before = {name: draw(st.lists(row, max_size=5)) for name, row in ROWS.items()}
    after = {}
    for name, row in ROWS.items():
        kept = [r for r in before[name] if draw(st.integers(0, 3))]
        after[name] = draw(st.sampled_from([before[name], [*kept, *draw(st.lists(row, max_size=3))]]))
    return before, after


@dataclass(frozen=True)
class DuckTables:
    """Table `t` is `t__now`; what changed is in `t__changes` with `__mv_count`."""

    changes_of: frozenset[str]

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(columns) for name, columns in SCHEMAS.items()}

    def changed(self, leaf: Leaf) -> bool:
        return leaf.name in self.changes_of

    def now(self, leaf: Leaf) -> str:
        return f"{leaf.name}__now"

    def changes_text(self, leaf: Leaf) -> str:
        return f"(SELECT {', '.join(SCHEMAS[leaf.name])} FROM {leaf.name}__changes)"

    def now_and_before(self, leaf: Leaf) -> str:
        columns = ", ".join(SCHEMAS[leaf.name])
        changes = f"SELECT {columns} FROM {leaf.name}__changes WHERE __mv_count < 0"
        return f"(SELECT {columns} FROM {leaf.name}__now UNION ALL {changes})"

    def outweighs(self, name: str) -> bool:
        return name != "e"

    def types(self, name: str) -> Mapping[str, str]:
        return SCHEMAS[name]

    def pinned(self, sql: str) -> str:
        def replacement(ref: TableRef) -> str:
            if ref.name not in SCHEMAS:
                raise NotIncremental("UNKNOWN_TABLE", ref.name)
            return f"(SELECT * FROM {ref.name}__now)"

        return with_tables(sql, replacement)


@lru_cache(maxsize=4096)
def duck(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0].replace("TIMESTAMPTZ", "TIMESTAMP")


def values(name: str, suffix: str, rows: Bag) -> str:
    def cell(value: Any) -> str:
        return "null" if value is None else (f"'{value}'" if isinstance(value, datetime) else str(value))

    listed = ", ".join(f"({', '.join(map(cell, row))})" for row in rows)
    return f"; insert into {name}__{suffix} values {listed}" if rows else ""


@lru_cache(maxsize=1)
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


@lru_cache
def understood(name: str) -> tuple[Analysis, QueryTree]:
    sql, key = QUERIES[name]
    analysis = analyze(sql, unique_key=key, schemas=SCHEMAS)
    assert not analysis.errors
    uses = clock_spans(sql)
    return analysis, read_tree(analysis, split_clock(sql, SCHEMAS, "UTC") if uses else None, uses)


def load(con: duckdb.DuckDBPyConnection, before: dict[str, Bag], after: dict[str, Bag]) -> frozenset[str]:
    changed = set()
    for name, columns in SCHEMAS.items():
        types = ", ".join(f"{c} {k}" for c, k in columns.items())
        net = Counter(after[name])
        net.subtract(before[name])
        rows = [(*row, count) for row, count in net.items() if count]
        for suffix, extra, content in (
            ("before", "", before[name]),
            ("now", "", after[name]),
            ("changes", ", __mv_count int", rows),
        ):
            con.execute(
                f"create or replace temp table {name}__{suffix} ({types}{extra}){values(name, suffix, content)}"
            )
        if rows:
            changed.add(name)
    return frozenset(changed)


def at(sql: str, hour: int) -> str:
    """The query at an instant: the clock pinned, without a zone (DuckDB's TIMESTAMP has none)."""
    text = pin(sql, Pins(START + timedelta(hours=hour))).sql
    return text.replace("+00:00'", "'")


def check(name: str, before: dict[str, Bag], after: dict[str, Bag], hours: tuple[int, int]) -> bool | None:
    """Whether the changes could be followed; None where there were none."""
    sql, key = QUERIES[name]
    analysis, tree = understood(name)
    con = connection()
    tables = DuckTables(load(con, before, after))
    before_pins, now_pins = (Pins(START + timedelta(hours=hour)) for hour in hours)
    move = Move(tree.windows, before_pins, now_pins) if tree.windows and hours[0] != hours[1] else None
    if move is None and not tables.changes_of & {table.name for table in analysis.tables}:
        return None
    described = con.execute(f"describe {duck(at(tables.pinned(sql), hours[1]))}").fetchall()
    names = [name.lower() for name, *_ in described]  # DuckDB does not put what USING compares first
    old = con.execute(duck(at(with_tables(sql, lambda r: f"(select * from {r.name}__before)"), hours[0]))).fetchall()
    new = con.execute(duck(at(tables.pinned(sql), hours[1]))).fetchall()
    try:
        affected = tree.affected(tables, key, frozenset(c.name.lower() for c in analysis.columns), move)
    except NotIncremental:
        return False
    con.execute(f"create or replace temp table affected as {duck(at(affected.sql, hours[1]))}")
    touched = set(con.execute("select * from affected").fetchall())
    places = [names.index(anchor.lower()) for anchor in affected.anchors]

    def is_touched(row: tuple[Any, ...]) -> bool:
        return tuple(row[p] for p in places) in touched

    changed = (Counter(old) - Counter(new)) + (Counter(new) - Counter(old))
    assert all(is_touched(row) for row in changed), (affected.sql, changed, touched)
    types = {name.lower(): {"HUGEINT": "decimal(38, 0)"}.get(type_, type_) for name, type_, *_ in described}
    text = with_tables(
        tree.restricted("affected", affected, KnownColumns(tables.columns, types)),
        lambda r: "affected" if r.name == "affected" else f"(select * from {r.name}__now)",
    )
    found = con.execute(duck(at(text, hours[1]))).fetchall()
    assert Counter(found) == Counter(row for row in new if is_touched(row)), text
    return True


@pytest.mark.parametrize("name", QUERIES)
def test_affected_is_a_superset_and_restricted_is_exact(name: str) -> None:
    clocked = "current_" in QUERIES[name][0]

    @settings(max_examples=4 if name in SHAPES else EXAMPLES, deadline=None, database=None)
    @given(history(), st.tuples(st.integers(-2, 4), st.integers(-2, 4)) if clocked else st.just((0, 0)))
    def run(states: tuple[dict[str, Bag], dict[str, Bag]], hours: tuple[int, int]) -> None:
        check(name, *states, hours)

    run()


def at_hour(hour: int) -> datetime:
    return START.replace(tzinfo=None) + timedelta(hours=hour)


#: every row has a partner in some join and none in another, so that one change moves rows on both sides
BASE: dict[str, Bag] = {
    "t": [(0, 0, 0, at_hour(-1)), (1, 1, 1, at_hour(1)), (2, 2, None, None), (3, None, 2, at_hour(-3)), (4, 3, 3, at_hour(0))],
    "u": [(0, 1), (1, 2), (2, None), (None, 3)],
    "e": [(0, 0), (1, 1), (2, None), (3, 2)],
}  # fmt: skip
NEW: dict[str, Bag] = {
    "t": [(5, 1, 3, at_hour(-2)), (0, 3, 3, at_hour(2))], "u": [(3, 0), (1, 0), (None, 1)], "e": [(4, 1), (1, 3)],
}  # fmt: skip


def decisive() -> list[dict[str, Bag]]:
    """The base after each change of one row, and after some changes of several."""
    single = [(name, BASE[name][:k] + BASE[name][k + 1 :]) for name in BASE for k in range(len(BASE[name]))]
    single += [(name, [*BASE[name], row]) for name, rows in NEW.items() for row in rows]
    several = [dict(single[k::7][:3]) for k in range(7)]
    return [{**BASE, name: rows} for name, rows in single] + [{**BASE, **changes} for changes in several]


@pytest.mark.parametrize("name", QUERIES)
def test_changes_of_one_row_are_followed(name: str) -> None:
    clocked = "current_" in QUERIES[name][0]
    moves = ((0, 0), (0, 2)) if clocked else ((0, 0),)
    assert True in {check(name, BASE, after, moved) for after in decisive() for moved in moves}
