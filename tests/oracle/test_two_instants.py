"""Predicates on the clock that are not solved, and the clock outside predicates, as a value of its own too: followed by asking at two instants."""

from __future__ import annotations

from random import Random

import pytest
from engine import Database, Model, Situation
from grammar import Drawn
from histories import draw_history, draw_menu
from pairs import Tally, live
from search import STEPS, Seen, model_of

pytestmark = pytest.mark.unit
HISTORIES = 5

FOLLOWED: dict[str, tuple[str, str]] = {
    "hour": ("select id, x from t where hour(ts) <= hour(now())", "id"),
    "weekday": ("select id, x, d from t where dayofweek(d) = dayofweek(current_date()) or x = 1", "id"),
    "month": ("select id from t where year(ts) = year(current_date()) and day(ts) >= day(current_date()) - 1", "id"),
    "negated": ("select id, x from t where not (hour(ts) <= hour(now()) and x > 0)", "id"),
    "mixed": ("select id from t where ts <= now() and hour(ts) <> hour(now())", "id"),
    "join": ("select t.id, u.y from t join u on t.k = u.k where hour(t.ts) <= hour(now()) + u.y", "id, y"),
    "join_on": ("select t.id, u.y from t join u on t.k = u.k and hour(t.ts) <= hour(now()) + u.y", "id, y"),
    "left_on": ("select t.id, u.y from t left join u on t.k = u.k and hour(t.ts) <= hour(now()) + u.y", "id"),
    "left_where": ("select t.id, u.y from t left join u on t.k = u.k where coalesce(u.y, 0) <= hour(now()) - 12", "id"),
    "semi": ("select t.id from t left semi join u on t.k = u.k and hour(t.ts) <= hour(now()) + u.y", "id"),
    "anti": ("select t.id from t left anti join u on t.k = u.k and hour(t.ts) <= hour(now()) + u.y", "id"),
    "exists": ("select id from t where exists (select 1 from e where e.k = t.x and hour(e.ts) <= hour(now()))", "id"),
    "not_exists": ("select id from t where not exists (select 1 from e where e.k = t.x and e.ts > now() - interval 2 hours)", "id"),
    "in": ("select id from t where x in (select e.k from e where hour(e.ts) <= hour(now()))", "id"),
    "group": ("select k, count(*) as n, sum(x) as s from t where hour(ts) <= hour(now()) and k is not null group by k", "k"),
    "count_if": ("select k, count(*) as n, count_if(ts > now() - interval 2 hours) as r from t where k is not null group by k", "k"),
    "filter": ("select k, sum(x) filter (where ts <= now()) as s, count(*) as n from t where k is not null group by k", "k"),
    "stddev": ("select k, count(distinct case when ts <= now() then x end) as n from t where k is not null group by k", "k"),
    "having": ("select k, max(ts) as m from t where k is not null group by k having max(ts) > now() - interval 3 hours", "k"),
    "one_subquery_twice": (
        "with w as (select k from e where k > 0) select k, count(*) as n, count_if(ts > now() - interval 2 hours) as r from t "
        "where k is not null and (x in (select k from w) or k in (select k from w)) group by k",
        "k",
    ),
    "group_then": (
        "select k, m from (select k, max(ts) as m from t where k is not null group by k) g where m < now() - interval 2 hours",
        "k",
    ),
    "keys": (
        "select k, if(ts > now(), 'new', 'old') as age, count(*) as n from t where k is not null group by k, if(ts > now(), 'new', 'old')",
        "k, age",
    ),
    "window": (
        "select id, k from (select id, k, row_number() over (partition by k order by ts desc, id) as rn from t where hour(ts) <= hour(now())) w "
        "where rn = 1",
        "id",
    ),
    "window_arg": ("select id, k, count(case when ts <= now() then 1 end) over (partition by k) as n from t", "id"),
    "after_window": (
        "select id, rn from (select *, row_number() over (partition by k order by ts desc, id) as rn from t) w "
        "where rn = 1 and hour(ts) <= hour(now())",
        "id",
    ),
    "shown": ("select id, x, ts > now() - interval 2 hours as recent from t", "id"),
    "shown_join": ("select t.id, u.k, case when u.y > day(current_date()) - 12 then 1 else 0 end as c from t join u on u.k = t.k", "id, k"),
    "carried": ("with a as (select *, datediff(current_date(), d) as age from t) select id, x from a where age <= 1", "id"),
    "carried_twice": (
        "with a as (select id, x, k, datediff(current_date(), d) as age from t), b as (select * from a where x > 0) "
        "select b.id, u.y from b join u on u.k = b.k and b.age + u.y <= 2",
        "id, y",
    ),
    "carried_group": (
        "with a as (select k, datediff(current_date(), d) as age from t where k is not null) "
        "select k, count_if(age <= 1) as n from a group by k",
        "k",
    ),
    "carried_window": (
        "select id from (select *, row_number() over (partition by k order by id) as rn, datediff(current_date(), d) as age from t) w "
        "where rn = 1 and age <= 1",
        "id",
    ),
    "carried_union": (
        "with a as (select 1 as s, id, x, datediff(current_date(), d) as age from t union all select 2, k, y, y - 1 from u) "
        "select s, id, x from a where age <= 1",
        "s, id",
    ),
    "carried_unions": (
        "with a as (select * from (select id, k, hour(now()) - hour(ts) as age from t where x > 0 union all (select id + 100, k, 3 from t "
        "union all select id + 200, x, day(current_date()) - 13 from t))) select a.id, u.y from a join u on u.k = a.k and a.age <= u.y",
        "id, y",
    ),
    "carried_star_union": (
        "with a as (select *, datediff(current_date(), d) as age from t), b as (select * from a where x > 0 union all "
        "select id + 100, k, x, s, ts, d, 1 from t) select k, count_if(age < 2) as n from b where k is not null group by k",
        "k",
    ),
    "carried_qualify": (
        "with a as (select *, hour(now()) - hour(ts) as age from t qualify row_number() over (partition by k order by id) = 1) "
        "select id from a where age <= 1",
        "id",
    ),
    "carried_named_window": (
        "with a as (select id, datediff(current_date(), d) as age, row_number() over w as n from t where x > 0 "
        "window w as (partition by k order by id)) select id, n from a where age <= 1",
        "id",
    ),
    "params": (
        "with p as (select current_date() - interval 1 day as start) select t.id, t.x from t cross join p where t.ts >= p.start",
        "id",
    ),
    "union": (
        "select 1 as a, id, x from t where hour(ts) <= hour(now()) union all select 2, k, y from u where y >= hour(now()) - 12",
        "a, id",
    ),
    "distinct": ("select distinct k from t where hour(ts) <= hour(now()) and k is not null", "k"),
    "null_at_one_instant": ("select id, x from t where x >= element_at(map(14, 0, 16, 1), day(current_date()))", "id"),
    "null_at_one_instant_joined": (
        "select t.id, u.y from t join u on t.k = u.k where t.x + u.y >= element_at(map(14, 0, 16, 1), day(current_date()))",
        "id, y",
    ),
    "left_on_newest": (
        "select a.id from t a left join t b on b.k = a.k and b.ts > a.ts and b.ts <= now() where b.id is null",
        "id",
    ),
    "left_on_then_anti": (
        "select t.id from t left join u on t.k = u.k and t.ts > now() left anti join r on r.y = u.y",
        "id",
    ),
    "unit": ("select id, day from (select id, ts > now() - interval 1 day as day from t) q", "id"),
    "left_on_then_null": ("select t.id, t.x from t left join u on t.k = u.k and t.ts > now() where u.k is null", "id"),
    "left_on_then_coalesce": ("select t.id, t.x from t left join u on t.k = u.k and t.ts > now() where coalesce(u.y, 0) = 0", "id"),
    "left_on_then_or": ("select t.id from t left join u on t.k = u.k and t.ts > now() where u.y > 1 or u.k is null", "id"),
    "left_on_then_distinct_from": ("select t.id from t left join u on t.k = u.k and t.ts > now() where u.y is distinct from 1", "id"),
    "left_on_then_case": (
        "select t.id from t left join u on t.k = u.k and t.ts > now() where case when u.y = 1 then false else true end",
        "id",
    ),
    "left_on_then_left": ("select t.id from t left join u on t.k = u.k and t.ts <= now() left join r on r.y = u.y where r.y is null", "id"),
    "left_on_then_left_on": (
        "select t.id from t left join u on t.k = u.k and t.ts <= now() left join r on r.y = u.y and t.d = current_date() where r.y is null",
        "id",
    ),
    "left_on_then_inner": ("select t.id, r.y from t left join u on t.k = u.k and t.ts > now() join r on r.y = u.y", "id, y"),
    "left_on_then_using": ("select t.id, t.x from t left join u on t.k = u.k and t.ts > now() join r using (y) where t.x > 0", "id"),
    "left_on_then_not_exists": (
        "select t.id from t left join u on t.k = u.k and t.ts <= now() where not exists (select 1 from r where r.y = u.y)",
        "id",
    ),
    "left_on_then_group": (
        "select t.k, count(*) as n from t left join u on t.x = u.k and t.ts > now() where u.k is null and t.k is not null group by t.k",
        "k",
    ),
    "left_on_below": (
        "with a as (select t.id, t.k from t left join u on t.k = u.k and t.ts > now() where u.k is null) "
        "select a.id, u.y from a left join u on u.k = a.id",
        "id",
    ),
    "left_on_then_window": (
        "select id, k, rn from (select t.id, t.k, row_number() over (partition by t.k order by t.id) as rn from t "
        "left join u on t.x = u.k and t.ts > now() where u.k is null) q",
        "id",
    ),
    "left_on_carried": (
        "with a as (select id, k, ts > now() as fut from t) select a.id from a left join u on u.k = a.k and a.fut where u.k is null",
        "id",
    ),
    "lateral_view_carried": (
        "with a as (select id, ts > now() as fut from t) select id, e from a lateral view explode(array(fut)) x as e",
        "id",
    ),
    "left_on_keyed": ("select t.id from t left join u on u.k = datediff(current_date(), t.d) where u.k is null", "id"),
    "words": ("select id from t where day(d) = day(date'today')", "id"),
    "own_value_that_a_subquery_reads": (
        "select id from (select *, datediff(current_date(), d) as age from t) a where exists (select 1 from u where u.y > a.age)", "id",
    ),
    "own_value": ("select id, datediff(current_date(), d) as age from t", "id"),
    "own_value_while_open": ("select id, x, datediff(coalesce(d, current_date()), cast(ts as date)) as days from t", "id"),
    "own_value_in_case": ("select id, case when x > 1 then hour(now()) - hour(ts) else x end as h from t", "id"),
    "own_value_summed": ("select k, sum(datediff(current_date(), d)) as age from t where k is not null group by k", "k"),
    "own_value_of_groups": ("select k, datediff(current_date(), max(d)) as age, count(*) as n from t where k is not null group by k", "k"),
    "own_value_as_key": ("select k, datediff(current_date(), d) as age, count(*) as n from t where k is not null and d is not null group by 1, 2", "k, age"),
    "own_value_joined": (
        "select t.id, u.k, datediff(current_date(), t.d) + u.y as c, coalesce(u.y, 0) as y from t left join u on u.k = t.k", "id, k",
    ),
    "own_value_of_two": ("select t.id, u.y, datediff(case when u.y > 0 then current_date() else t.d end, t.d) as c from t join u on u.k = t.k", "id, y"),
    "own_value_of_a_partition": ("select id, k, sum(datediff(current_date(), d)) over (partition by k) as n from t where k is not null", "id"),
    "own_value_beside_a_window": (
        "select id, k, row_number() over (partition by k order by ts, id) as rn, datediff(current_date(), d) as age from t where k is not null", "id",
    ),
    "own_value_handed_up": (
        "with a as (select *, datediff(current_date(), d) as age from t) select a.*, u.y from a left join u on u.k = a.k and u.y > 0", "id, y",
    ),
    "own_value_of_a_star": ("select * from (select id, x, d, datediff(current_date(), d) as age from t where hour(ts) <= hour(now())) q", "id"),
    "own_values_of_stars": (
        "with a as (select id, k, hour(now()) - hour(ts) as age from t where x > 0), b as (select k, y, datediff(current_date(), date'2024-03-01') as w from u) "
        "select a.*, b.w, b.y from a join b on a.k = b.k", "id, y",
    ),
    "own_value_in_a_union": (
        "select 1 as s, id, datediff(current_date(), d) as age from t union all select 2, k, y from u union all select 3, id, x from t where ts > now()", "s, id",
    ),
    "own_value_carried_to_sums": (
        "with a as (select k, x, datediff(coalesce(d, current_date()), cast(ts as date)) as age from t where k is not null) "
        "select k, sum(case when x > 0 then age end) as s, max(age) as m from a group by k", "k",
    ),
    "own_value_distinct": ("select distinct k, datediff(current_date(), d) as age from t where k is not null and d is not null", "k, age"),
    "own_value_of_an_aggregate_joined": (
        "with g as (select k, max(d) as last from t where k is not null group by k) "
        "select u.k, u.y, datediff(current_date(), g.last) as idle from u left join g on g.k = u.k", "k, y",
    ),
    "own_value_shown_and_compared": (
        "with a as (select id, x, datediff(current_date(), d) as age from t) select id, age, age > 1 as old from a where age <= 3", "id",
    ),
}  # fmt: skip


def _model(database: Database, name: str) -> Model:
    sql, key = FOLLOWED[name]
    seen = Seen()
    model = model_of(database, Drawn(sql, tuple(key.split(", "))), seen)
    assert model is not None, seen
    return model


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_clock_is_followed_and_the_table_is_what_the_query_gives(name: str) -> None:
    database, tally = Database(), Tally()
    model = _model(database, name)
    menu = draw_menu(Random(name), model.tables, True)
    for number in range(HISTORIES):
        wrong = live(model, draw_history(Random(f"{name}{number}"), model.tables, menu, STEPS), tally)
        assert wrong is None, wrong
    assert not tally.broken and not tally.untranslated, tally
    # the clock alone: an incremental strategy applies
    (plan, *_) = model.plans(Situation((), 0, 24, None))
    assert plan.strategy != "COMPLETE_RECOMPUTE", [c.reasons for c in plan.candidates]


RECOMPUTED = {
    "a scalar subquery": "with p as (select date_sub(current_date(), 1) as start) select id, x from t where d >= (select start from p)",
    "a name of the select list": "select id, k, ts > now() as r from t qualify row_number() over (partition by k order by r, id) = 1",
    "in LATERAL VIEW": "select id, x.e from t lateral view explode(array(hour(now()))) x as e",
    "partners of a right join": "select u.k, t.id from t right join u on t.k = u.k and hour(t.ts) <= hour(now())",
    "a named window": (
        "with a as (select id, k, ts > now() as fut from t) select id, k, count(*) over w as n from a window w as (partition by k, fut)"
    ),
    "LATERAL VIEW of a column that carries it": (
        "with a as (select id, ts, case when ts > now() then 'soon,open' else 'done' end as tags from t), "
        "b as (select id, ts, tag from a lateral view explode(split(tags, ',')) l as tag) "
        "select id, tag from b where ts > now() - interval 30 days"
    ),
    "a column of the select list that what follows the clock reads": (
        "select id, k, x + 1 as y, y > datediff(current_date(), d) as f, count(*) over (partition by k) as n from t where k is not null"
    ),
    "a generator of the clock": "select id, explode(array(d, current_date())) as day from t",
    "a named window by a field of a struct that carries it": (
        "with a as (select id, k, named_struct('fut', ts > now()) as z from t where ts is not null) "
        "select id, k, count(*) over w as n from a window w as (partition by k, z.fut)"
    ),
    "LATERAL VIEW of a field of a struct that carries it": (
        "with a as (select id, ts, named_struct('age', datediff(current_date(), d)) as z from t) "
        "select id, e from a lateral view explode(array(z.age)) x as e where ts > now() - interval 30 days"
    ),
    "USING of a column that carries it": (
        "with a as (select id, ts, if(ts > now(), 1, 2) as y from t), b as (select a.id, a.ts, r.region from a join r using (y)) "
        "select id, region from b where ts > now() - interval 3 days"
    ),
    "HAVING of a group's key": (
        "select k, count(*) as n from t where k is not null and ts is not null group by k, ts > now() having ts > now()"
    ),
    "LATERAL VIEW of a partner": (
        "select t.id, e from t left join u on t.k = u.k and hour(t.ts) <= hour(now()) lateral view explode(array(u.y)) x as e"
    ),
    "a join on a partner that is there at times": (
        "select t.id, r.y as k from t left join u on t.k = u.k and t.ts > now() join r on r.y = coalesce(u.y, t.x)"
    ),
}


@pytest.mark.parametrize("name", RECOMPUTED)
def test_what_cannot_be_followed_is_recomputed_and_said(name: str) -> None:
    model = Model(RECOMPUTED[name], ("id",) if "id" in RECOMPUTED[name] else ("k",), Database())
    (plan,) = model.plans(Situation((), 0, 24, None))
    assert plan.strategy == "COMPLETE_RECOMPUTE"
    said = {reason.code for candidate in plan.candidates for reason in candidate.reasons}
    assert said & {"CLOCK_ELSEWHERE", "LATERAL_VIEW", "NO_JOIN_CONDITION", "SUBQUERY"}, said


FROZEN = {
    "select id, now() as seen, seen + interval 1 day as expiry from t": "seen",
    "select id, now() as seen, date(seen) as day, ts > now() as f from t": "seen",
    "select id, k, ts > now() as f, sum(case when f then 1 else 0 end) over (partition by k) as c from t": "f",
    "select id, k, datediff(current_date(), d) as age from t qualify age > 1 and row_number() over (partition by k order by id) = 1": "age",
    "select id, now() as seen from t union all select id + 100, now() as seen from t": "seen",
}
"""Frozen columns; but for the last, another part of the SELECT reads them by their names, and with them the clock of each run."""


@pytest.mark.parametrize("sql", FROZEN)
def test_what_reads_a_frozen_clock_by_its_name(sql: str) -> None:
    model, tally = Model(sql, ("id",), Database(), {"freeze": [FROZEN[sql]]}), Tally()
    menu = draw_menu(Random(sql), model.tables, True)
    for number in range(HISTORIES * 2):
        wrong = live(model, draw_history(Random(f"{sql}{number}"), model.tables, menu, STEPS), tally)
        assert wrong is None, wrong
    assert not tally.broken and not tally.untranslated, tally
