"""Draws that decide rows by way of columns, CTEs and subqueries: kept by the key of the row, or refused with place and cure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.draw_refusals import refused, unkept
from spark_mv.query.rewrite.filter_draws import expand_star, split_filter_draws

pytestmark = pytest.mark.unit

FIXTURE = Path(__file__).parent / "fixtures" / "filter_draws.sql"
CASES = [tuple(block.strip().split("\n", 1)) for block in FIXTURE.read_text(encoding="utf-8").split("\n\n")[1:]]
TABLES = {
    "c": {"id": "int", "k": "int", "v": "int", "s": "string"},
    "t": {"id": "int", "k": "int", "v": "int", "a": "array<int>"},
    "u": {"id": "int", "k": "int", "w": "int"},
}


def _analysis(sql: str) -> Analysis:
    return analyze(sql, unique_key="id", schemas=TABLES)


def _outcome(sql: str) -> str:
    """`kept`, or the place and the reason of the refusal; the way of spark/run/draws.py."""
    sql = expand_star(sql, _analysis(sql), _analysis)
    analysis = _analysis(sql)
    assert not analysis.errors and analysis.rows_level is Level.NONDETERMINISTIC
    found = split_filter_draws(sql, ["id"], "s.st", {}, analysis.drawn_reads)
    if found is not None and found.filtered_sql is None:
        return _said(unkept(found, analysis))
    rest = analysis if found is None or found.filtered_sql is None else _analysis(found.filtered_sql)
    if rest.rows_level is not Level.NONDETERMINISTIC:
        return "kept"
    return _said(refused(rest, analysis))


def _said(refusal: str) -> str:
    found = re.match(r"line (\d+), column (\d+): \S+ (.*)", refusal)
    assert found is not None
    return f"refused {found[1]}:{found[2]} {found[3]}"


@pytest.mark.parametrize(("expected", "sql"), CASES, ids=[sql for _, sql in CASES])
def test_outcome(expected: str, sql: str) -> None:
    assert _outcome(sql).startswith(expected.removeprefix("-- "))


def test_both_outcomes_are_there() -> None:
    kept = sum(expected == "-- kept" for expected, _ in CASES)
    assert kept > 30 and len(CASES) - kept > 30


def test_one_draw_is_one_value() -> None:
    """A drawn column that is filtered by and shown is read from the state table in both places."""
    sql = "with d as (select *, rand() as dice from c) select id, dice, dice * 2 as twice from d where dice < 0.1"
    found = split_filter_draws(sql, ["id"], "s.st", {}, _analysis(sql).drawn_reads)
    assert found is not None and found.filtered_sql is not None and found.draw_sql is not None
    assert found.draw_sql.startswith("WITH d as (select *, rand() as dice from c) SELECT id AS `id`, dice AS")
    select = found.filtered_sql.split(") select ")[1]
    assert "dice <" not in select and "dice *" not in select and "__mv_state.__mv_draw_0 AS `dice`" in select


def test_a_changed_draw_below_is_another_draw() -> None:
    """The state's fingerprint of a column is that of its expression."""
    prints = []
    for draw in ("rand()", "rand() ", "randn()"):
        sql = f"with d as (select *, {draw} as dice from c) select id from d where dice < 0.1"
        found = split_filter_draws(sql, ["id"], "s.st", {}, _analysis(sql).drawn_reads)
        assert found is not None
        prints.append(found.fingerprints)
    assert prints[0] == prints[1] != prints[2]
