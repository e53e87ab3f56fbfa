"""Whatever happens to the sources and the clock, the table is what the whole query gives: the engine's own plans for
generated queries and histories, executed on DuckDB. `python tests/oracle/search.py` looks further."""

from __future__ import annotations

import os

import pytest
from engine import Database
from search import Seen, search, shrunk

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


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 20_000, 500))
def test_many_more(first: int) -> None:
    look(first, 500, 25)
