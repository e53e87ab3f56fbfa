"""Which strategies a query's shape allows."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.eligibility import STRATEGIES, eligible

pytestmark = pytest.mark.unit
ROW = {"NO_OP", "APPEND_ONLY", "ROW_BASED", "COMPLETE_RECOMPUTE"}
FULL = {"NO_OP", "COMPLETE_RECOMPUTE"}
CASES = [
    ("select id, upper(a) as a from t", ROW),
    ("select id, rand() as r from t where rand() < 0.5", ROW),
    ("select id from t where ts > current_timestamp() - interval 3 days", ROW - {"APPEND_ONLY"}),
    ("select id, now() as n from t", ROW - {"NO_OP"}),
    ("select t.id from t join u on t.id = u.id", ROW - {"APPEND_ONLY"}),
    ("select id from t union all select id from u", ROW),
    ("select id from t union select id from u", FULL),
    ("select id, explode(a) as x from t", ROW),
    ("select id, count(*) as n from t group by id", FULL | {"GROUP_AGGREGATE"}),
    ("select id, first(v) as n from t group by id", FULL | {"GROUP_AGGREGATE"}),
    (
        "with g as (select k, count(*) as n from t group by k) select k as id, n from g where n > 3",
        FULL | {"GROUP_AGGREGATE"},
    ),
    ("select count(*) as id from t group by k", FULL),
    ("select count(*) as id from t", FULL),
    ("select id, k, count(*) as n from t group by rollup (id, k)", FULL),
    ("select distinct id from t", FULL | {"GROUP_AGGREGATE"}),
    ("select k as id, max(n) as m from (select k, d, count(*) as n from t group by k, d) group by k", FULL),
    ("select id, k, sum(v) over (partition by k) as s from t", FULL | {"WINDOW_FUNCTION"}),
    ("select id, sum(v) over (partition by k) as s from t", FULL),
    ("select id, sum(v) over () as s from t", FULL),
    ("select id from t limit 10", FULL),
    ("select id from t tablesample (10 percent)", FULL),
    ("select id from t where id in (select id from u)", FULL),
    ("select * from t pivot (sum(v) for k in ('a', 'b'))", FULL),
    ("select id from my_tvf(3)", {"COMPLETE_RECOMPUTE"}),
    ("from t |> where id > 3", {"COMPLETE_RECOMPUTE"}),
    ("select id from", set()),
]


@pytest.mark.parametrize(("sql", "expected"), CASES, ids=[sql for sql, _ in CASES])
def test_strategies(sql: str, expected: set[str]) -> None:
    found = eligible(analyze(sql, unique_key="id"))
    assert tuple(e.strategy for e in found) == STRATEGIES
    assert {e.strategy for e in found if e.applies} == expected
    assert all(e.applies != bool(e.reasons) for e in found)


def test_reasons_name_what_stands_in_the_way() -> None:
    found = {
        e.strategy: [r.code for r in e.reasons] for e in eligible(analyze("select sum(v) over () as id from t limit 3"))
    }
    assert found["ROW_BASED"] == ["LIMIT", "WINDOW"]
    assert found["GROUP_AGGREGATE"] == ["LIMIT", "NO_GROUP_BY"]
    assert found["WINDOW_FUNCTION"] == ["LIMIT", "NO_PARTITION_BY"]
