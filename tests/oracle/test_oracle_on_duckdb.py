"""Whatever happens to the sources and the clock, the table is what the whole query gives: the engine's own plans for
generated queries and histories, executed on DuckDB. `python tests/oracle/search.py` looks further."""

from __future__ import annotations

import os
from random import Random

import pytest
from colliding import colliding
from engine import Database
from grammar import Drawn, draw_query
from packed import packed
from pairs import live
from search import Seen, histories_of, model_of, search, shrunk

pytestmark = pytest.mark.unit

QUERIES, HISTORIES = int(os.environ.get("ORACLE_QUERIES", 8)), int(os.environ.get("ORACLE_HISTORIES", 4))
"""About a hundred pairs, in seconds; the variables ask for more."""


def look(first: int, queries: int, histories: int) -> Seen:
    database, seen = Database(), Seen()
    found = list(search(database, range(first, first + queries), histories, seen))
    assert not found, "\n\n".join([f"{len(found)} wrong", *(str(shrunk(database, e, 20)) for e in found[:3])])
    return seen


def test_every_table_is_what_the_query_gives() -> None:
    seen = look(0, QUERIES, HISTORIES)
    print(seen)
    ran = seen.tally.runs
    if QUERIES >= 40:
        assert {"NO_OP", "APPEND_ONLY", "ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION"} <= set(ran)
    assert ran.total() > seen.tally.pairs / 4
    assert seen.queries["compared"] > QUERIES * 0.7
    # what DuckDB cannot say must stay the exception
    assert seen.tally.untranslated.total() + seen.tally.broken.total() < seen.tally.pairs * 0.03, seen


def test_columns_in_structs() -> None:
    """The same over tables whose columns are fields."""
    database, seen = Database(), Seen()
    for seed in range(QUERIES * 2):
        drawn = draw_query(seed)
        sql = packed(drawn.sql, Random(seed))
        model = model_of(database, Drawn(sql, drawn.key), seen) if sql is not None else None
        for history in histories_of(seed, model, HISTORIES) if model is not None else ():
            wrong = live(model, history, seen.tally)
            assert wrong is None, f"{wrong}\n{sql}\n{history}"
    assert seen.queries["compared"] > QUERIES * 0.7
    assert seen.tally.runs.total() > seen.tally.pairs / 4


def test_names_that_collide() -> None:
    """The same with FROM items and structs that are called like columns and tables."""
    database, seen = Database(), Seen()
    for seed in range(QUERIES * 2):
        drawn = draw_query(seed)
        sql = colliding(drawn.sql, Random(seed))
        model = model_of(database, Drawn(sql, drawn.key), seen)
        for history in histories_of(seed, model, HISTORIES) if model is not None else ():
            wrong = live(model, history, seen.tally)
            assert wrong is None, f"{wrong}\n{sql}\n{history}"
    assert seen.queries["compared"] > QUERIES
    assert seen.tally.runs.total() > seen.tally.pairs / 4


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 20_000, 500))
def test_many_more(first: int) -> None:
    look(first, 500, 25)
