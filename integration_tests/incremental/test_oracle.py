"""Whatever happens to the sources and the clock, the table is what a complete recompute gives: the suite's oracle.

Hypothesis draws queries, changes and moves of the clock. After each run the table's deterministic columns must equal the
query at that instant, as a bag, and kept columns must be kept. Every beginning of a sequence of changes is a history of its
own, and is checked: one (query, history) pair per run after the first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
from direct import Direct, Model, Pool
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from oracle_changes import CREATE, Step, histories
from oracle_queries import OF_U, SAMPLE, SHAPES, Query, queries

from spark_mv.maintenance.errors import RunFailed

LENGTH, FEW = 7, 5  # steps after the first one


@dataclass
class World:
    """Sessions to run models in, and what was seen so far."""

    pool: Pool
    seen: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    schemas: int = 0


@pytest.fixture(scope="module")
def world(spark: Any) -> Iterator[World]:
    found = World(Pool(spark))
    yield found
    print(f"\n{found.pairs} histories: {dict(found.seen)}")


@dataclass
class Watched:
    """A model under test and what its kept columns held after the last run, by key."""

    query: Query
    model: Model
    kept: dict[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)
    data: dict[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)
    draws: dict[Any, float] = field(default_factory=dict)
    names: Sequence[str] = ()


def check(world: World, step: Step, first: bool, session: Direct, watched: Watched) -> None:
    query, model = watched.query, watched.model
    rows = session.spark.sql(query.plain_sql(step.as_of).replace("{schema}", model.schema)).collect()
    names = rows[0].__fields__ if rows else []
    wanted = Counter(tuple(_plain(v) for v in row) for row in rows)
    keys = Counter(tuple(row[name] for name in query.key) for row in rows)
    broken = any(n > 1 for n in keys.values()) or any(None in key for key in keys)
    try:
        run = model.run(session, step.as_of) if first else model.run_incrementally(session, step.as_of)
    except RunFailed as error:
        assert broken, f"{query.model_sql}\n{error}"
        world.seen["refused keys"] += 1
        return
    assert not broken, f"keys that are not unique were let through\n{query.model_sql}"
    world.seen[run.plan.strategy] += 1
    assert not session.warnings, session.warnings
    if SAMPLE in query.sql:
        rows = _sampled(session, watched, step)
        wanted = Counter(tuple(_plain(v) for v in row) for row in rows)
    if query.keeps:
        now = {tuple(row[name] for name in query.key): tuple(_plain(v) for v in row) for row in rows}
        wanted = Counter({**watched.data, **now}.values())
        names = names or watched.names
    watched.names = names
    width = len(names or query.key)
    listed = ", ".join(f"`{name}`" for name in (names or query.key))
    kept = "".join(f", {name}" for name in query.kept_names)
    found = session.spark.sql(f"select {listed}{kept} from {model.table}").collect()
    got = Counter(tuple(_plain(v) for v in row[:width]) for row in found)
    assert got == wanted, _report(query, run, session, f"missing {wanted - got}, too many {got - wanted}")
    _check_kept(watched, run, session, found, width, step)


def _sampled(session: Direct, watched: Watched, step: Step) -> Sequence[Any]:
    """The rows whose draw says so. A candidate that stayed has kept its draw."""
    query, model = watched.query, watched.model
    state = f"{model.schema}.`{model.name}__state`"
    drawn = session.spark.table(state).columns[-1]
    draws = {row[0]: row[1] for row in session.spark.sql(f"select id, `{drawn}` from {state}").collect()}
    assert all(draws[key] == draw for key, draw in watched.draws.items() if key in draws)
    watched.draws = draws
    kept = f"id in (select id from {state} where `{drawn}` < 0.5)"
    found = session.spark.sql(query.plain_sql(step.as_of, kept)).collect()
    candidates = session.spark.sql(query.plain_sql(step.as_of)).collect()
    others = {row["id"] for row in candidates if row["id"] >= OF_U}  # of another term of a UNION, which draws nothing
    assert {row["id"] for row in candidates} - others <= draws.keys(), "a candidate has no draw"
    return found


def _check_kept(watched: Watched, run: Any, session: Direct, found: Sequence[Any], width: int, step: Step) -> None:
    query = watched.query
    now, data = {}, {}
    for row in found:
        key = tuple(row[name] for name in query.key)
        now[key], data[key] = tuple(row[width:]), tuple(_plain(v) for v in row[:width])
    for key, values in now.items():
        before = watched.kept.get(key)
        redrawn = before is not None and query.redraw and watched.data.get(key) != data[key]
        for name, value, old in zip(query.kept_names, values, before or [None] * len(values), strict=True):
            assert value is not None, _report(query, run, session, f"{name} of {key} is NULL")
            if name == "seen":  # frozen: never drawn anew
                expected = old if before is not None else step.as_of
                assert str(value) == str(expected), _report(query, run, session, f"{name} of {key}: {value}")
            elif before is not None:
                assert (value != old) == redrawn, _report(query, run, session, f"{name} of {key} was {old}, is {value}")
    watched.kept, watched.data = now, data


def _report(query: Query, run: Any, session: Direct, what: str) -> str:
    rejected = [(c.strategy, c.applies, [r.code for r in c.reasons]) for c in run.plan.candidates]
    return "\n".join(
        [f"{query.model_sql} ({', '.join(query.key)}): {run.plan.strategy}", what, str(rejected), *session.statements]
    )


def _plain(value: Any) -> Any:
    return repr(value) if isinstance(value, float | list | dict) else value


def live(world: World, found: Sequence[Query], steps: Sequence[Step]) -> None:
    """Take all queries through all steps. The statements so far stand in the message of what goes wrong."""
    world.schemas += 1
    schema = f"oracle_{world.schemas}"
    session = world.pool.first
    session.query(f"drop schema if exists {schema} cascade")
    session.query(f"create schema {schema}")
    for table, columns in CREATE.items():
        session.query(f"create table {schema}.{table} {columns}")
    session.query(f"create view {schema}.v as select id, k, x, s, ts, d from {schema}.t where k is not null")
    everyone = []
    for k, query in enumerate(found):
        config = {"unique_key": list(query.key)}
        if query.redraw:
            config["on_row_update"] = "redraw"
        if "seen" in query.kept_names:
            config["freeze"] = ["seen"]
        if query.keeps:
            config["on_source_delete"] = "keep"
        named = replace(query, sql=in_schema(query.sql, schema))
        everyone.append(Watched(named, Model(schema, f"m{k}", named.model_sql, config)))
    done: list[str] = []
    try:
        for number, step in enumerate(steps):
            for statement in step.statements:
                done.append(statement)
                session.query(statement.replace("{schema}", schema))
            done.append(f"-- run at {step.as_of}")
            world.pool.each(partial(check, world, step, number == 0), everyone)
            world.pairs += len(everyone) if number else 0
    except Exception as error:
        raise AssertionError("\n".join([str(error), "--- history", *done])) from error
    finally:
        session.query(f"drop schema if exists {schema} cascade")


def in_schema(sql: str, schema: str) -> str:
    """The tables t, u and e and the view v of a query, found as words behind FROM and JOIN."""
    return re.sub(r"\b(from|join) ([tuev])\b", rf"\1 {schema}.\2", sql)


@st.composite
def worlds(draw: st.DrawFn, at: int, count: int, length: int) -> tuple[list[Query], tuple[Step, ...]]:
    """Queries of `count` shapes in a row, and one history for all of them."""
    shapes = [SHAPES[(at + k) % len(SHAPES)] for k in range(count)]
    return [draw(queries(shape)) for shape in shapes], draw(histories(length))


QUIET = {
    "deadline": None,
    "database": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


def explore(world: World, start: int, shapes: int, examples: int, length: int = LENGTH) -> None:
    """So many worlds drawn from one seed. Hypothesis begins with the simplest one, which is too simple to be worth it."""
    simplest: list[object] = []

    @seed(20260110 + start)
    @settings(max_examples=examples + 1, **QUIET)
    @given(worlds(start, shapes, length))
    def run(drawn: tuple[list[Query], tuple[Step, ...]]) -> None:
        if not simplest:
            simplest.append(drawn)
        else:
            live(world, *drawn)

    run()


@pytest.mark.parametrize(
    "start", [pytest.param(at, marks=[pytest.mark.slow] if at % 16 else []) for at in range(0, len(SHAPES), 8)]
)
def test_every_table_equals_the_recompute(world: World, start: int) -> None:
    explore(world, start, shapes=8, examples=1, length=FEW)


def test_enough_was_seen(world: World) -> None:
    """Every strategy, and a good number of histories (fewer when tests were picked by hand)."""
    if world.pairs < 80:
        pytest.skip(f"only {world.pairs} histories ran")
    assert {"NO_OP", "APPEND_ONLY", "ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION", "COMPLETE_RECOMPUTE"} <= set(
        world.seen
    )


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 400, 7))
def test_many_more(world: World, start: int) -> None:
    explore(world, start, shapes=7, examples=2)
