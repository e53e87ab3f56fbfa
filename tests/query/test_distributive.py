"""Which grouped queries can be adjusted by what came and went, and what their columns are made of."""

from __future__ import annotations

import pytest

from spark_mv.query.delta.distributive import GroupPart, is_exact, parts
from spark_mv.query.syntax.select_tree import NotIncremental
from spark_mv.query.syntax.tree_builder import build

TABLES = {"t": ("id", "k", "x", "d", "s", "day"), "u": ("k", "y")}
TYPES = {"g": "int", "h": "string", "n": "bigint", "v": "bigint", "m": "date", "b": "boolean", "dx": "decimal(22,2)"}


def found(sql: str, **types: str) -> dict[str, GroupPart]:
    return parts(build(sql), {**TYPES, **types}, TABLES)


def test_columns_are_told_apart() -> None:
    assert found(
        "select k % 3 as g, count(*) as n, sum(x) filter (where s > 'a') as v, max(d) as m, every(x > 1) as b, sum(d) as dx "
        "from t where x > 0 group by k % 3"
    ) == {
        "g": GroupPart.PLAIN,
        "n": GroupPart.ROWS,
        "v": GroupPart.SUM,
        "m": GroupPart.MAX,
        "b": GroupPart.MIN,
        "dx": GroupPart.SUM,
    }
    assert found("select k as g, count(x) as n, count_if(x > 1) as v from t group by 1")["n"] is GroupPart.COUNT
    assert found("select k as g, count(1) as n, min(s) as h from t group by all")["n"] is GroupPart.ROWS
    assert found("select k as g, count(1, x) as n from t group by k")["n"] is GroupPart.COUNT
    assert found("select k as g, count(*) filter (where x > 1) as n from t group by k")["n"] is GroupPart.COUNT
    assert found("select 1 as g, count(*) as n from t") == {"g": GroupPart.PLAIN, "n": GroupPart.ROWS}


@pytest.mark.parametrize(
    "by",
    [
        "select t.k as g, count(*) as n from t join u on t.k = u.k group by t.k",
        "select x as g, count(*) as n from t group by X",
        "select date(s) as m, count(*) as n from t group by m",  # no column of that name: the output column
        "select date(s) as m, s as h, count(*) as n from t group by 1, s",
    ],
)
def test_groups_that_the_result_shows(by: str) -> None:
    assert GroupPart.ROWS in found(by).values()


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select id as g from t", "NO_PLAIN_GROUPS"),
        ("select distinct k as g, count(*) as n from t group by k", "NO_PLAIN_GROUPS"),
        ("select k as g, count(*) as n from t group by k union all select 1, 2", "NO_PLAIN_GROUPS"),
        ("select k as g, rank() over (order by count(*)) as n from t group by k", "NO_PLAIN_GROUPS"),
        ("select k as g, count(*) as n from t group by k having count(*) > 1", "HAVING"),
        ("select k as g, count(distinct x) as n from t group by k", "AGGREGATE"),
        ("select k as g, sum(distinct x) as v from t group by k", "AGGREGATE"),
        ("select k as g, sum(x) + 1 as v from t group by k", "AGGREGATE"),
        ("select k as g, avg(x) as v from t group by k", "AGGREGATE"),
        ("select k as g, count(*) as n from t group by k, x", "HIDDEN_GROUPS"),
        ("select k as g, my_own(x) as v from t group by all", "OWN_FUNCTION"),
        # `day` is a column of the table: it is grouped by that, not by the output column
        ("select date(s) as day, count(*) as n from t group by day", "HIDDEN_GROUPS"),
    ],
)
def test_groups_that_have_to_be_read_again(sql: str, code: str) -> None:
    with pytest.raises(NotIncremental) as error:
        found(sql, day="date")
    assert error.value.code == code


def test_types_without_an_exact_sum() -> None:
    with pytest.raises(NotIncremental, match="depends on the order of rows"):
        found("select k as g, sum(x) as v from t group by k", v="double")
    with pytest.raises(NotIncremental) as error:
        found("select x as g, count(*) as n from t group by x", g="double")  # 0.0 and -0.0 are one group
    assert error.value.code == "GROUP_TYPE"
    assert is_exact("bigint") and is_exact("decimal(38,6)") and is_exact("decimal(37, 20)")
    assert not is_exact("decimal(38,7)") and not is_exact("double") and not is_exact("interval day to second")


@pytest.mark.parametrize(
    "sql",
    [
        "select z.a as g, count(*) as n from (select id, named_struct('a', k, 'b', x) as z from t) q group by z.a, z.b",
        "select upper(c) as h, count(*) as n from t lateral view explode(array(s)) q as c group by c",
        "select upper(h) as h, count(*) as n from t lateral view explode(array(s)) q as h group by h",
    ],
)
def test_groups_by_what_is_not_shown(sql: str) -> None:
    with pytest.raises(NotIncremental) as refused:
        found(sql)
    assert refused.value.code == "HIDDEN_GROUPS"
