"""What a run says of itself: that nothing is to be done, and which columns depend on the order of rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_mv.maintenance.columns import _name_problems, _verdicts
from spark_mv.maintenance.config import read_config
from spark_mv.maintenance.facts import Column, RunFacts, TargetFacts
from spark_mv.maintenance.notes import order_notes, shared_notes, unknown_notes
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.strategies.no_op import no_op
from spark_mv.query.analysis.analyze import analyze

AT = "2026-01-10 06:00:00.000000"
PINS = {"current_date": "DATE'2026-01-10'"}
RECORD = RunRecord(query="q", config="c", as_of=AT, time_zone="UTC", sources={}, kept={}, pins=PINS, clock_solved=True)


def sentence(record: RunRecord, clock_elsewhere: bool) -> str:
    facts = RunFacts(
        "m", AT, "UTC", "i", (), TargetFacts(exists=True, ours=True, record=record, intact=True), pins=PINS
    )
    found = no_op(facts, "q", "c", clock_elsewhere)
    assert found.applies, found
    return found.reasons[0].sentence


@pytest.mark.parametrize(
    ("record", "elsewhere", "says"),
    [
        (RECORD, False, "no row will enter or leave by the clock"),
        (replace(RECORD, next_change_at=AT), False, f"the next row enters or leaves at {AT}"),
        (RECORD, True, "nor did current_date, which the result follows"),
        (replace(RECORD, next_change_at=AT), True, "nor did current_date, which the result follows"),
        (replace(RECORD, clock_solved=False), False, "nor did current_date, which the result follows"),
    ],
)
def test_a_run_without_work_promises_only_what_is_so(record: RunRecord, elsewhere: bool, says: str) -> None:
    assert says in sentence(record, elsewhere)


def test_columns_and_rows_that_depend_on_the_order_are_named() -> None:
    sql = "select id, row_number() over (order by date_trunc('day', ts)) as rn, rand() as r from t limit 3"
    notes = order_notes(analyze(sql, unique_key="id"))
    assert any(note.startswith("column rn depends on the order") for note in notes)
    assert any(note.startswith("which rows there are") for note in notes)
    assert not any("column r " in note or "column id" in note for note in notes)


def test_that_answers_are_not_found_in_another_order_is_said() -> None:
    def notes(asked: str) -> list[str]:
        return order_notes(analyze(f"select id, ai_gen({asked}) as s from t group by id", unique_key="id"))

    assert "is not found in another" in notes("concat_ws(' ', collect_list(body))")[0]
    assert not notes("concat_ws(' ', sort_array(collect_list(body)))") and not notes("max(struct(ts, body)).body")


SHARED = {
    "a draw of each customer": (
        "select o.id, c.r from orders o join (select id, rand() as r from customers) c on c.id = o.cid",
        "column r is drawn in c",
    ),
    "through the CTEs of a dbt model": (
        "with c as (select id as cid, rand() as r from t), f as (select o.id, r * 2 as d from o join c using (cid)) select * from f",
        "column d is drawn in c",
    ),
    "one draw for all rows": (
        "select c.id, t.v from c cross join (select rand() as v) t",
        "column v is drawn in t",
    ),
}
OWN = [
    "select o.id, rand() as r, c.x from o join c on c.id = o.id",
    "with c as (select id, rand() as r from t), f as (select c.id, o.n, c.r from c join o on c.id = o.cid) select * from f",
    "select c.id, x.u from c left join (select k, count(*) as n, uuid() as u from t group by k) x on x.k = c.id",
    "select id, x.u from c left join (select k as id, uuid() as u from t) x using (id)",
    "with a as (select id, uuid() as u from t), b as (select id, u from a where id > 2) select a.id, a.u, b.u as v from a left join b on a.id = b.id",
    "select o.id, c.r from o, (select k, rand() as r from t) c where c.k = o.id and o.x > 1",
    "select q.id, p.r from q, lateral (select rand() as r from t where t.k = q.k) p",
    "(select q.id, q.r from (select id, rand() as r from t) q)",
    "from (select id, rand() as r from t) q |> select id, r",
    "select id, r from (select id, rand() as r, a from t) q lateral view explode(a) z as w",
]


@pytest.mark.parametrize("name", SHARED)
def test_a_draw_that_rows_share_is_named(name: str) -> None:
    sql, said = SHARED[name]
    (note,) = shared_notes(analyze(sql, unique_key="id"), ["id"])
    assert note.startswith(said) and "nondeterministic_mv" in note


def test_a_draw_of_an_order_in_its_lines_is_shared() -> None:
    sql = "select o.id, l.line, o.u from (select id, uuid() as u from orders) o join lines l on l.oid = o.id"
    assert shared_notes(analyze(sql, unique_key=["id", "line"]), ["id", "line"])


@pytest.mark.parametrize("sql", OWN)
def test_a_draw_of_the_row_itself_is_not(sql: str) -> None:
    assert not shared_notes(analyze(sql, unique_key="id"), ["id"])


def test_a_star_over_using_has_an_order_of_its_own() -> None:
    schemas = {"t": {"id": "int", "k": "int"}, "u": {"y": "int", "k": "int"}}
    sql = "with d as (select id, rand() as r, k from t) select *, upper('x') from d join u using (k)"
    analysis = analyze(sql, unique_key="id", schemas=schemas)
    given = [Column(name, "int") for name in ("k", "id", "r", "y", "upper(x)")]
    found = _verdicts(analysis, given)
    assert [name for name, verdict in found.items() if verdict.kept] == ["r"]
    assert {c.name for c in given} <= set(found)


def test_names_of_the_run_are_not_the_users() -> None:
    config = read_config("m", {"unique_key": "id"})
    (problem,) = _name_problems([Column("id", "int"), Column("__mv_n", "int")], config)
    assert "__mv_n" in problem


@pytest.mark.parametrize(
    ("sql", "declared", "said"),
    [
        (
            "select id, s.up(name) as u, up(id) as v from t",
            (),
            ["function s.up gives", "column u keeps", "function up gives", "column v keeps"],
        ),
        ("select id, coalesce(q.u, '') as w from (select id, up(name) as u from t) q", (), ["column w keeps"]),
        ("select id from t where up(name) <> 'x'", (), ["which rows pass the filter stays"]),
        ("select id, up(name) as u from t", ("UP",), []),
        ("select id, s.up(name) as u from t", ("up",), []),
        ("select id, rand() as u, uuid() as v, upper(name) as w from t where rand() < 0.1", (), []),
    ],
)
def test_functions_that_nobody_knows(sql: str, declared: tuple[str, ...], said: list[str]) -> None:
    found = unknown_notes(analyze(sql, unique_key=("id",)), declared)
    assert len(found) == len({text for text in said if text.startswith("function")} or said)
    assert all(text in " ".join(found) for text in said)
