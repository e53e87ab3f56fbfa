"""Whether a query shows a fault: each thing that can go wrong is looked for without the engine's own rules about it."""

from __future__ import annotations

import re
from random import Random

from duck_sql import duck
from engine import SESSION, Database, Model
from fault import Fault, Shows
from grammar import Drawn
from histories import SCHEMAS, draw_history, draw_menu, instant
from pairs import Tally, live
from search import STEPS, Seen, model_of

from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.filter_draws import split_filter_draws
from spark_mv.spark.run import draws as draws_of_runs
from spark_mv.spark.run.pins import run_pins

HISTORIES = 100
_PLACE = re.compile(r"line (\d+), column (\d+): (\w+)")


def noticed(fault: Fault, histories: int = HISTORIES) -> str:
    """How the fault shows in its query, by so many histories at most; '' if it does not."""
    key = tuple(fault.key.split(", "))
    if fault.shows is Shows.LOGIC:
        return same_print(Database(), fault.query, fault.other, key)
    if fault.shows is Shows.DRAWS:
        return shared_draws(Database(), fault.query, key)
    return misplaced(fault.query, key) if fault.shows is Shows.PLACE else wrong_tables(fault.query, key, histories)


def wrong_tables(query: str, key: tuple[str, ...], histories: int) -> str:
    """A history that leaves another table than the query gives."""
    model = model_of(Database(), Drawn(query, key), Seen())
    assert model is not None, query
    for number in range(histories):
        menu = draw_menu(Random(number // 4), model.tables, model.clocked)
        history = draw_history(Random(number), model.tables, menu, STEPS)
        wrong = live(model, history, Tally())
        if wrong is not None:
            return f"{wrong}\n{history}"
    return ""


def verdict(sql: str, key: tuple[str, ...]) -> Analysis:
    return analyze(sql, unique_key=key, schemas=SCHEMAS, freeze=(), model="m")


# --- logic


def same_print(database: Database, query: str, other: str, key: tuple[str, ...], tries: int = 30) -> str:
    """Sources for which two queries of one fingerprint give other rows."""
    if verdict(query, key).fingerprint != verdict(other, key).fingerprint:
        return ""
    return different(database, query, other, key, tries)


def different(database: Database, query: str, other: str, key: tuple[str, ...], tries: int = 30) -> str:
    """Sources for which two queries give other rows, as SQL; '' if none was found. Raises DuckDB's errors, Untranslated."""
    texts = [duck(Model(sql, key, database).rewritten(0).sql) for sql in (query, other)]
    for number in range(tries):
        tables = tuple(SCHEMAS)
        history = draw_history(Random(number), tables, draw_menu(Random(number), tables, False), 0)
        database.load([{name: list(rows) for name, rows in history.rows.items()}])
        first, second = (database.bag(text) for text in texts)
        if {tuple(map(repr, row)): n for row, n in first.items()} != {
            tuple(map(repr, row)): n for row, n in second.items()
        }:
            return f"{query}\n{other}\n{history}"
    return ""


# --- draws


def shared_draws(database: Database, query: str, key: tuple[str, ...], tries: int = 20) -> str:
    """Candidates of a random filter whose key does not tell their draws apart: a key twice, or one draw (or its absence)
    with two keys. Nobody draws the same double twice."""
    analysis = verdict(query, key)
    split = split_filter_draws(query, key, "state", {}, analysis.drawn_reads)
    if split is None or split.draw_sql is None:
        return ""
    text, names = duck(split.draw_sql), ", ".join(f'"{k}"' for k in key)
    for number in range(tries):
        tables = tuple(SCHEMAS)
        history = draw_history(Random(number), tables, draw_menu(Random(number), tables, False), 0)
        database.load([{name: list(rows) for name, rows in history.rows.items()}])
        database.con.execute(f"create or replace temp table drawn as {text}")
        for column in split.columns:
            counted = f"select count(*), count(distinct ({names})), count(distinct coalesce({column}::varchar, 'none')) from drawn"
            rows, keys, draws = database.con.execute(counted).fetchall()[0]
            if keys < rows or draws < rows:
                return f"{rows} candidates, {keys} keys, {draws} draws\n{history}"
    return ""


def misplaced(query: str, key: tuple[str, ...]) -> str:
    """A refusal that names a line and a column at which the text has no draw."""
    message = refusal(query, key)
    found = _PLACE.search(message)
    if found is None:
        return message
    line, column = int(found[1]), int(found[2])
    here = query.splitlines()[line - 1][column - 1 :].lower() if line <= query.count("\n") + 1 else ""
    return "" if here.startswith(_names(query)) else f"{message}\nthere: {here}"


def _names(query: str) -> tuple[str, ...]:
    """What draws, or is drawn, in the text."""
    analysis = verdict(query, ())
    names = {name.lower() for name, level, _, _ in analysis.functions if level is Level.NONDETERMINISTIC}
    return tuple(names | {query[start:end].lower() for start, end, _ in analysis.drawn_reads})


def refusal(query: str, key: tuple[str, ...]) -> str:
    """What a run says of the draws that decide the query's rows; '' where it keeps them, or where there are none."""
    if verdict(query, key).rows_level is not Level.NONDETERMINISTIC:
        return ""
    database, pins = Database(), run_pins(instant(0), SESSION, SCHEMAS)
    try:
        draws_of_runs.kept_draws(database.described, "m", query, lambda sql: verdict(sql, key), key, {}, "state", pins)
    except RefusedError as error:
        return str(error)
    return ""
