"""`refresh: incremental` over a query of which no run can be followed is refused at its first run, before there is a table."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from spark_mv.explain.judgement import judge
from spark_mv.maintenance.supposed_runs import NOW, Supposed

pytestmark = pytest.mark.unit

SCHEMAS = {
    "t": {"id": "bigint", "k": "bigint", "a": "double", "ts": "timestamp"},
    "u": {"id": "bigint", "b": "string"},
}


def supposed(sql: str) -> Supposed:
    found = judge(sql, unique_key=["id"], schemas=SCHEMAS).model
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sql", "strategy", "code"),
    [
        ("select id, rank() over (order by a) as r from t", "WINDOW_FUNCTION", "NO_PARTITION_BY"),
        ("select id, sum(a) over () as s, rand() as r from t", "WINDOW_FUNCTION", "NO_PARTITION_BY"),
        ("select t.id, b from t full join u on t.id = u.id", "ROW_BASED", "FULL_OUTER_JOIN"),
        ("select id, a from t order by a limit 5", "APPEND_ONLY", "LIMIT"),
    ],
)
def test_never(sql: str, strategy: str, code: str) -> None:
    said = {candidate.strategy: candidate.reasons[0].code for candidate in supposed(sql).never()}
    assert len(said) == 4 and said[strategy] == code, said


@pytest.mark.parametrize(
    "sql",
    [
        "select id, rand() as r from t",
        "select id, a from t where rand() < 0.5",
        "select id, a from t where ts > current_timestamp() - interval 1 day",
        "select k as id, count(*) as n from t group by k",
        "select id, k, rank() over (partition by k order by id) as r from t",
        "select t.id, b from t left join u on t.id = u.id",  # followed where only one of them changes, too
        "select id, uuid() as tag from range(10)",  # nothing of it ever changes
    ],
)
def test_at_times(sql: str) -> None:
    asked = supposed(sql)
    assert asked.never() == ()
    before = replace(asked, pins=asked.pins.at(NOW - timedelta(days=4000)))
    assert before.never() == ()
