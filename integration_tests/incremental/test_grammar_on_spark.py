"""The oracle's grammar on Spark: queries that nobody thought of, through runs on real tables.

The queries and histories of tests/oracle, which DuckDB executes there by the thousand. Here each batch of models lives through
one history together; after each run a table must equal its query, whose clock the test itself has replaced by the instant.
GRAMMAR_FIRST starts the slow test at another query, GRAMMAR_PAIRS ends it earlier.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import pytest
from direct import Bag, Direct, Model, Pool
from grammar import Drawn, all_rows, draw_query
from histories import SCHEMAS, History, Menu, Op, draw_history, instant, literal, same_row
from pairs import comparable
from shapes import shapes
from twins import plainly, with_views

from spark_mv.maintenance.errors import RefusedError, RunFailed
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.syntax.table_name import quoted

STEPS = 3
QUICK, BATCH = range(3), 40
SLOW_FIRST, MARKED = int(os.environ.get("GRAMMAR_FIRST", 1000)), int(os.environ.get("GRAMMAR_PAIRS", 1000))


@dataclass
class Lives:
    """What was seen, and the tables that were wrong."""

    seen: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Watched:
    drawn: Drawn
    analysis: Analysis
    model: Model
    over: bool = False


def pinned(sql: str, at: str) -> str:
    """The query at an instant (UTC), by text: the grammar writes the clock in these ways only."""
    sql = re.sub(r"\bcurrent_date\(\)", f"date'{at[:10]}'", sql)
    return re.sub(r"\b(current_timestamp|now)\(\)", f"timestamp'{at}'", sql)


def statements(op: Op) -> list[str]:
    """A change of one row. Where there are copies of it, all go and the others come back."""
    found = []
    if op.old is not None:
        found.append(f"delete from {op.table} where {same_row(op.table, op.old)}")
    if op.new is not None:
        found.append(f"insert into {op.table} values ({', '.join(map(literal, op.new))})")
    return found


def copies(session: Direct, op: Op) -> int:
    """How many rows like the one that goes stay."""
    if op.table != "e" or op.old is None:
        return 0
    like = same_row(op.table, op.old)
    return int(session.query(f"select count(*) as n from {op.table} where {like}")[0]["n"]) - 1


def change(session: Direct, op: Op) -> None:
    stay = copies(session, op)
    for statement in statements(op):
        session.query(statement)
    if stay > 0:
        values = ", ".join(map(literal, op.old or ()))
        session.query(f"insert into {op.table} values {', '.join([f'({values})'] * stay)}")


def watched(schema: str, numbers: Sequence[int], lives: Lives) -> list[Watched]:
    found = []
    for number in numbers:
        drawn = draw_query(number)
        analysis = analyze(drawn.sql, unique_key=drawn.key, schemas=SCHEMAS, model="m")
        why = comparable(drawn.sql, drawn.key, analysis)
        if " by name " in drawn.sql:
            why = "UNION BY NAME, which DuckDB has and Spark has not"
        lives.seen[why or "compared"] += 1
        if not why:
            model = Model(schema, f"m{number}", drawn.sql, {"unique_key": list(drawn.key)})
            found.append(Watched(drawn, analysis, model))
    return found


def check(lives: Lives, at: str, first: bool, session: Direct, one: Watched) -> None:
    if one.over:
        return
    sql, model = pinned(one.drawn.sql, at), one.model
    try:
        rows = session.spark.sql(sql)
        names, rows = rows.columns, rows.collect()
    except Exception as error:  # Spark refuses the query itself
        lives.seen[f"Spark refuses: {str(error)[:40]}"] += 1
        one.over = True
        return
    # of rows that share a key beyond a LIMIT, any may be the last one
    beyond = rows if all_rows(sql) == sql else session.spark.sql(all_rows(sql)).collect()
    keys = Counter(tuple(row[names.index(name)] for name in one.drawn.key) for row in beyond)
    broken = any(n > 1 or None in key for key, n in keys.items())
    try:
        run = model.run(session, at) if first else model.run_incrementally(session, at)
    except RunFailed as error:
        if not broken:
            lives.wrong.append(f"{one.drawn}: {error}")
        lives.seen["keys that are not unique"] += 1
        one.over = True
        return
    except RefusedError as error:
        lives.seen[f"refused: {str(error)[:60]}"] += 1
        one.over = True
        return
    except Exception as error:
        lives.wrong.append(f"{one.drawn}: {type(error).__name__}: {str(error)[:500]}")
        one.over = True
        return
    lives.seen[run.plan.strategy] += 1
    if not first:
        lives.pairs += 1
        lives.shapes.update(+shapes([one.drawn.sql]))
    columns = [quoted(c.name) for c in one.analysis.columns if not c.kept]
    at_columns = [k for k, c in enumerate(one.analysis.columns) if not c.kept]
    wanted = Counter(tuple(_plain(row[k]) for k in at_columns) for row in rows)
    found = session.spark.sql(f"select {', '.join(columns)} from {model.table}").collect()
    got = Counter(tuple(_plain(v) for v in row) for row in found)
    if got != wanted or broken:
        what = "repeated keys were let through" if broken else f"missing {wanted - got}, too many {got - wanted}"
        lives.wrong.append("\n".join([f"{one.drawn}: {run.plan.strategy} at {at}", what, *session.statements]))
        one.over = True
    if session.warnings:
        lives.seen[f"warned: {session.warnings[0].split(':', 1)[1][:70]}"] += 1


def _plain(value: Any) -> Any:
    return repr(value) if isinstance(value, float | list | dict) else value


@contextmanager
def tables_of(pool: Pool, schema: str, seed: int) -> Iterator[History]:
    """The tables as a history finds them, in a schema of their own that every session uses meanwhile."""
    session = pool.first
    session.query(f"drop schema if exists {schema} cascade")
    session.query(f"create schema {schema}")
    for other in pool.sessions.queue:
        other.query(f"use {schema}")
    every = frozenset(SCHEMAS)
    one = frozenset(Random(seed).sample(sorted(every), 1))
    menu = Menu(((every, frozenset(), frozenset(), True), (one, one, frozenset(), False)), (0, 1, 3, 24, 48))
    history = draw_history(Random(seed), SCHEMAS, menu, STEPS)
    try:
        for table, columns in SCHEMAS.items():
            listed = ", ".join(f"{n} {t}" for n, t in columns.items())
            feed = "tblproperties (delta.enableChangeDataFeed = true)"
            session.query(f"create table {table} ({listed}) using delta {feed}")
            rows = ", ".join(f"({', '.join(map(literal, row))})" for row in history.rows.get(table, ()))
            if rows:
                session.query(f"insert into {table} values {rows}")
        yield history
    finally:
        for other in pool.sessions.queue:
            other.query("use default")
        session.query(f"drop schema if exists {schema} cascade")


def live(pool: Pool, lives: Lives, numbers: range) -> None:
    """A batch of models through one history."""
    schema, session = f"grammar_{numbers.start}", pool.first
    with tables_of(pool, schema, numbers.start) as history:
        models = watched(schema, numbers, lives)
        pool.each(partial(check, lives, _text(history.hour), True), models)
        for step in history.steps:
            before = len(lives.wrong)
            for op in step.ops:
                change(session, op)
            pool.each(partial(check, lives, _text(step.hour), False), models)
            lives.wrong[before:] = [f"{text}\n--- history\n{history}" for text in lives.wrong[before:]]


def live_with_views(pool: Pool, numbers: range) -> Counter[str]:
    """Each query beside its twin over views, through one history: the tables and the strategies must be the same."""
    schema, session, seen = f"views_{numbers.start}", pool.first, Counter[str]()
    with tables_of(pool, schema, numbers.start) as history:
        twins = [pair for one in watched(schema, numbers, Lives()) if (pair := _with_views(session, one, seen))]
        for hour, changes in [(history.hour, ()), *((step.hour, step.ops) for step in history.steps)]:
            for op in changes:
                change(session, op)
            for pair in list(twins):
                one, other = (
                    _ran(session, model, columns, _text(hour), hour == history.hour) for model, columns in pair
                )
                assert one == other, f"{pair[0][0].sql}\n{pair[1][0].sql}\n{one}\n{other}"
                seen[one[0]] += 1
                if one[1] is None:
                    twins.remove(pair)
    return seen


def _with_views(session: Direct, one: Watched, seen: Counter[str]) -> list[tuple[Model, str]] | None:
    made, plain = with_views(one.drawn.sql), plainly(one.drawn.sql)
    if made is None or plain is None:
        return None
    names = [(name, f"{name}_of_{one.model.name}") for name, _ in made[0]]
    try:
        for (_, text), (_, view) in zip(made[0], names, strict=True):
            session.query(f"create view {view} as {_renamed(text, names)}")
    except Exception as error:  # two columns of one name, one without a name: Spark refuses the view
        seen[f"no view: {str(error)[:40]}"] += 1
        return None
    columns = ", ".join(quoted(c.name) for c in one.analysis.columns if not c.kept)
    model = replace(one.model, sql=plain)
    return [(model, columns), (replace(model, name=f"twin_{model.name}", sql=_renamed(made[1], names)), columns)]


def _ran(session: Direct, model: Model, columns: str, at: str, first: bool) -> tuple[str, Bag | None]:
    """The strategy and the table; or what stopped the run."""
    try:
        run = model.run(session, at) if first else model.run_incrementally(session, at)
    except (RunFailed, RefusedError) as error:
        return type(error).__name__, None
    return run.plan.strategy, session.bag(f"select {columns} from {model.table}")


def _renamed(sql: str, views: Sequence[tuple[str, str]]) -> str:
    for name, view in views:
        sql = re.sub(rf"\b{name}\b", view, sql)
    return sql


def _text(hour: int) -> str:
    return instant(hour).strftime("%Y-%m-%d %H:%M:%S")


@pytest.fixture(scope="module")
def pool(spark: Any) -> Pool:
    return Pool(spark)


def report(lives: Lives) -> None:
    print(f"\n{lives.pairs} histories: {dict(lives.seen)}\nshapes: {dict(lives.shapes)}")
    assert not lives.wrong, "\n\n".join(lives.wrong)
    assert lives.pairs


def test_every_table_equals_its_query(pool: Pool) -> None:
    lives = Lives()
    live(pool, lives, QUICK)
    report(lives)


@pytest.mark.slow
def test_a_view_is_what_it_says(pool: Pool) -> None:
    seen = live_with_views(pool, range(20, 26))
    print(seen)
    assert seen.total() > 10


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_table_of_a_thousand_histories_equals_its_query(pool: Pool) -> None:
    lives, first = Lives(), SLOW_FIRST
    while lives.pairs < MARKED:
        known = len(lives.wrong)
        live(pool, lives, range(first, first + BATCH))
        first += BATCH
        print(
            f"queries up to {first}: {lives.pairs} histories, {len(lives.wrong)} wrong",
            *lives.wrong[known:],
            flush=True,
        )
    report(lives)
