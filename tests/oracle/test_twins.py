"""What is said of a query depends on what it says, not on how it is written."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from engine import Database
from grammar import Drawn, draw_query
from twins import SAME_PRINT, Compared, differences, readable_twins, said_of, verdict_of

from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit

QUERIES = int(os.environ.get("ORACLE_TWINS", 6))

FOUND = {
    "a comment behind IN": (
        "select id, x from t where k in (select b.k from u b where b.y = 1)",
        "select id, x from t where k in /* of u */ (select b.k from u b where b.y = 1)",
    ),
    "a WITH before a set operation": (
        "select id, 1 as o from (select id from t where x > 1) union all select k as id, 2 as o from u",
        "with q as (select id from t where x > 1) select id, 1 as o from q union all select k as id, 2 as o from u",
    ),
    "a CTE that nobody reads": (
        "select k, count(*) as id from t where k is not null group by k",
        "with o as (select y from r), p as (select y from o) select k, count(*) as id from t where k is not null group by k",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_the_same_now(name: str) -> None:
    database, compared = Database(), Compared()
    first, second = (said_of(database, Drawn(sql, ("id",)), compared) for sql in FOUND[name])
    assert {**first, "fingerprint": ""} == {**second, "fingerprint": ""}


def look(first: int, queries: int) -> Compared:
    database, compared = Database(), Compared()
    found = [
        text for seed in range(first, first + queries) for text in differences(database, draw_query(seed), compared)
    ]
    assert not found, "\n\n".join([f"{len(found)} differ", *found[:3]])
    return compared


def test_twins_are_equal() -> None:
    compared = look(0, QUERIES)
    print(compared)
    assert compared.pairs.total() > QUERIES * 4
    assert compared.untranslated.total() < QUERIES


def test_statements_of_the_fixtures_have_the_verdict_of_their_twins() -> None:
    """Those that other tests hold verdicts of, in their own schemas."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "query"))
    from sql_cases import cases

    compared, different = 0, []
    for case in cases():
        options = {
            "unique_key": case.key, "schemas": case.tables or None, "functions": case.functions, "freeze": case.freeze,
            "views": case.views, 
        }  # fmt: skip
        for name, one, other in readable_twins(case.sql):
            compared += 1
            first, second = (verdict_of(analyze(sql, **options)) for sql in (one, other))
            if name not in SAME_PRINT or first["errors"]:  # what is refused has a fingerprint of its text
                del first["fingerprint"], second["fingerprint"]
            if first != second:
                different.append(f"{case.place}, {name}: {first} or {second}\n{one}\n{other}")
    assert not different, "\n\n".join([f"{len(different)} differ", *different[:3]])
    assert compared > 1000


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1200, 50))
def test_many_more_twins(first: int) -> None:
    look(first, 50)
