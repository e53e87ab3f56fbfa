"""Queries split from their clock predicates; fixtures/clock_split.sql holds pairs of query and result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.restrict import kept_spans
from spark_mv.query.rewrite.clock_split import calls_any, next_change_sql, split_clock

SCHEMAS = {
    "db.orders": {"id": "int", "ts": "timestamp", "d": "date", "amount": "double", "status": "string"},
    "items": {"oid": "int", "added": "date"},
}
FIXTURE = Path(__file__).parent / "fixtures" / "clock_split.sql"


def cases() -> Iterator[tuple[str, str, str]]:
    """(query, '' or why its windows cannot be pulled out, the query for all instants)."""
    for case in FIXTURE.read_text(encoding="utf-8").split("\n----\n"):
        query, _, wanted = case.partition("\n-->")
        kind, _, text = wanted.strip().partition("\n")
        yield query.strip(), kind.removeprefix("stays:").strip() if kind.startswith("stays:") else "", text.strip()


@pytest.mark.parametrize(("sql", "reason", "unclocked"), list(cases()))
def test_split(sql: str, reason: str, unclocked: str) -> None:
    split = split_clock(sql, SCHEMAS, "Europe/Berlin")
    assert split.reason == reason
    assert (split.unclocked_sql or "") == unclocked
    assert split.pullable == (reason == "")


def test_verdicts_carry_place_and_bounds() -> None:
    sql = """with r as (
  select id from orders where d > current_date()
) select id, now() as t from r having max(id) < unix_timestamp()"""
    split = split_clock(sql, SCHEMAS, "UTC")
    first, second = split.predicates
    assert (first.text, first.clause, first.scope, first.line, first.column) == (
        "d > current_date()",
        "WHERE",
        "r",
        2,
        31,
    )
    assert (first.solved, first.valid_to, first.guard) == (True, "CAST(d AS TIMESTAMP)", "d IS NOT NULL")
    assert (second.clause, second.solved) == ("HAVING", False)
    assert not split.all_solved and split.clock_elsewhere and not split.bounds_complete
    assert next_change_sql(split, "now()") is None


@pytest.mark.parametrize("word", ["having", "qualify"])
def test_a_comment_right_behind_a_clause(word: str) -> None:
    plain, remarked = (
        split_clock(
            f"select id from orders group by id {word}{remark} max(d) > current_date() and /* b */ count(*) > 1",
            SCHEMAS,
            "UTC",
        )
        for remark in (" ", " -- recent ones\n /* a */")
    )
    assert plain.predicates and plain.reason == remarked.reason and plain.all_solved == remarked.all_solved
    assert [p.text for p in remarked.predicates] == [p.text for p in plain.predicates]


def test_each_scope_has_its_bound_query() -> None:
    sql = (
        "with r as (select * from orders where d > current_date() - 3 and id > 1) "
        "select id, count(*) from r join items i on i.oid = r.id and i.added <= current_date() group by id"
    )
    split = split_clock(sql, SCHEMAS, "UTC")
    assert split.bound_queries == (
        "SELECT CAST(NULL AS TIMESTAMP) AS valid_from, CAST(date_add(d, 3) AS TIMESTAMP) AS valid_to "
        "from orders where (d IS NOT NULL) and id > 1",
        "WITH r as (select * from orders where d > current_date() - 3 and id > 1) "
        "SELECT CAST(i.added AS TIMESTAMP) AS valid_from, CAST(NULL AS TIMESTAMP) AS valid_to "
        "from r join items i on i.oid = r.id and (i.added IS NOT NULL)",
    )
    statement = next_change_sql(split, "TIMESTAMP'2026-01-01 00:00:00Z'")
    assert (
        statement is not None
        and "CASE WHEN valid_from > TIMESTAMP'2026-01-01 00:00:00Z' THEN valid_from END" in statement
    )


def test_a_query_without_clock() -> None:
    split = split_clock("select id from orders where d > date'2024-01-01'", SCHEMAS, "UTC")
    assert (split.predicates, split.pullable, split.reason) == ((), False, "no clock function")


def test_unknown_columns_stay_unsolved() -> None:
    split = split_clock("select id from other where d > current_date()", SCHEMAS, "UTC")
    assert not split.all_solved and "type" in split.reason


def test_of_a_structure_that_is_not_understood_nothing_is_solved() -> None:
    split = split_clock("from orders select id where d > current_date()", SCHEMAS, "UTC")
    assert not split.all_solved and not split.bounds_complete and not split.pullable
    assert split.clock_elsewhere and "FROM first" in split.reason
    split = split_clock("values (1, now()), (2, now())", SCHEMAS, "UTC")
    assert (split.all_solved, split.clock_elsewhere, split.reason) == (False, True, "no SELECT stands in it")


def test_what_a_kept_column_says_of_the_clock_is_said_once() -> None:
    sql = "select id, current_timestamp() as seen, rand() as r from db.orders where d > current_date() - 3"
    assert split_clock(sql, SCHEMAS, "UTC").clock_elsewhere
    analysis = analyze(sql, unique_key=("id",), schemas=SCHEMAS, freeze=("seen",))
    split = split_clock(sql, SCHEMAS, "UTC", kept=kept_spans(sql, analysis))
    assert (split.clock_elsewhere, split.all_solved, split.bounds_complete, split.pullable) == (False, True, True, True)
    assert next_change_sql(split, "TIMESTAMP'2026-01-01 00:00:00'")
    # the same function in a column that follows the clock still moves every row
    analysis = analyze(sql, unique_key=("id",), schemas=SCHEMAS)
    assert split_clock(sql, SCHEMAS, "UTC", kept=kept_spans(sql, analysis)).clock_elsewhere


@pytest.mark.parametrize(
    "arms,said_once",
    [
        ("union all select id, now() from db.orders", True),
        ("union all (select id, now() from db.orders union all select oid, current_timestamp() from items)", True),
        ("union all (select id, now() from db.orders union select oid, current_timestamp() from items)", False),
        ("union select id, now() from db.orders", False),
        ("union all select * from (select id, now() from db.orders) a", False),
        ("union all select now() as seen, id from db.orders", False),  # by place the other column
    ],
)
def test_a_kept_column_stands_in_each_arm_of_a_union(arms: str, said_once: bool) -> None:
    sql = f"select id, current_timestamp() as seen from db.orders {arms}"
    analysis = analyze(sql, unique_key=("id",), schemas=SCHEMAS, freeze=("seen",))
    split = split_clock(sql, SCHEMAS, "UTC", kept=kept_spans(sql, analysis))
    assert split.clock_elsewhere != said_once


def test_bounds_do_not_wait_for_answers() -> None:
    """A row that is not valid yet has not been asked about: its bound counts, whatever the answer will be."""
    sql = "select id from db.orders where d <= current_date() and AI_GEN(status) like '%a' and amount > 1"
    split = split_clock(sql, SCHEMAS, "UTC", asked=["ai_gen"])
    assert "AI_GEN" in sql and not calls_any(split.bound_queries[0], ["ai_gen"])
    assert "amount > 1" in split.bound_queries[0]
    assert calls_any(split_clock(sql, SCHEMAS, "UTC").bound_queries[0], ["ai_gen"])


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("a > 1 and `ai_filter`(s, 'x')", True),
        ("ai_filter /* paid */ (s, 'x')", True),
        ("select id from t where ai_filter(s, 'x')", True),
        ("note = 'ai_filter(s)'", False),
        ("a > 1 -- ai_filter(s)", False),
        ("ai_filter(s, 'x'", True),
    ],
)
def test_a_call_is_one_of_the_tree(text: str, calls: bool) -> None:
    assert calls_any(text, ["ai_filter"]) is calls
