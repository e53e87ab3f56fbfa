"""What the search has found, made small: each was a wrong table once."""

from __future__ import annotations

from datetime import datetime

import pytest
from engine import Database
from grammar import Drawn
from histories import History, Op, Step
from pairs import Tally, live
from search import Seen, model_of

pytestmark = pytest.mark.unit


def at(day: int, hour: int) -> datetime:
    return datetime(2026, 1, day, hour)


FOUND = {
    # "the next bound" named a table in ON of a join before it, which no engine understands
    "bounds in ON of one join and in WHERE of a later one": (
        "select a.id from t a join u b on b.k = a.k and a.ts >= now() - interval 9 hours join e c on c.k = b.y where c.ts is null or c.ts <= now()",
        ("id",),
        History(
            {"t": ((1, 1, 5, "a", at(14, 3), None),), "u": ((1, 2, None),), "e": ((2, 3, at(14, 8), None),)},
            3,
            (Step((), 9),),
        ),
    ),
    # its row of the same key has not moved at all
    "a row comes and leaves its window within one run": (
        "select k, id, x from t where ts > now() - interval 10 hours",
        ("k",),
        History(
            {"t": ((1, 1, 5, "a", at(14, 3), None), (3, 5, 5, "a", at(13, 18), None))},
            3,
            (Step((Op("t", None, (2, 1, 9, "b", at(13, 18), None)),), 12),),
        ),
    ),
    "a left join whose condition is of a column that cannot be followed": (
        "select q.c, b.s from (select a.k as c, count(*) over (partition by z.w) as n from u as a left join u as z on a.y = z.k) "
        "as q left join t as b on q.c = b.id",
        ("c",),
        History(
            {"t": ((7, None, None, "a", None, None),), "u": ((4, None, None),)},
            0,
            (Step((Op("u", (4, None, None)),), 0),),
        ),
    ),
    # NULL NOT IN (no rows) is true
    "a missing partner is in no empty list": (
        "select t.id from t left join u on u.k = t.k where u.y not in (select y from r) and coalesce(u.w, 'none') = 'none'",
        ("id",),
        History(
            {"t": ((1, 2, None, None, None, None),), "u": ((2, 1, "x"),), "r": ()},
            0,
            (Step((Op("u", (2, 1, "x")),), 0),),
        ),
    ),
    "a column has the name of a parameter of a lambda beside it": (
        "select t.id from t left join u on u.k = t.k where size(filter(array(1, 2, 3), y -> y > 1)) > coalesce(y, 0)",
        ("id",),
        History({"t": ((5, 2, None, None, None, None),), "u": ()}, 0, (Step((Op("u", None, (2, 2, None)),), 0),)),
    ),
    # a star of what is no FROM item was taken for no columns: what stands behind it was one place off, and the clock in it unseen
    "a star of a generator's columns before ORDER BY positions": (
        "select q.*, id, x from t lateral view explode(array(k)) q as c order by 1, 2 limit 1",
        ("id",),
        History(
            {"t": ((1, 9, 0, None, None, None), (2, 5, 0, None, None, None))},
            0,
            (Step((Op("t", None, (3, 1, 0, None, None, None)),), 0),),
        ),
    ),
    "a star of a struct before ORDER BY positions": (
        "with a as (select named_struct('c', k) z, id, x from t) select z.*, id, x from a order by 1, 2 limit 1",
        ("id",),
        History(
            {"t": ((1, 9, 0, None, None, None), (2, 5, 0, None, None, None))},
            0,
            (Step((Op("t", None, (3, 1, 0, None, None, None)),), 0),),
        ),
    ),
    "stars of generated columns in the arms of a UNION": (
        "select q.*, id, x from t lateral view explode(array(k)) q as c union select k, q.*, 1 from u "
        "lateral view explode(array(y + 100)) q as c",
        ("id",),
        History(
            {"t": ((1, 9, 0, None, None, None),), "u": ((7, 3, None),)},
            0,
            (Step((Op("u", (7, 3, None), (7, 4, None)),), 0),),
        ),
    ),
    "the clock in a field, which a star shows": (
        "with q as (select id, x, named_struct('age', datediff(current_date(), d)) as z from t) select id, x, z.* from q",
        ("id",),
        History(
            {"t": ((1, 5, 1, None, None, at(10, 0).date()), (2, 6, 1, None, None, at(9, 0).date()))},
            0,
            (Step((Op("t", None, (3, 1, 0, None, None, at(12, 0).date())),), 48),),
        ),
    ),
    # PARTITION BY a field counted as PARTITION BY all of the struct
    "a window over a field, and another field shown": (
        "with q as (select id, named_struct('a', k, 'b', x) as z from t) select id, z.b as g, count(*) over (partition by z.a) as n from q",
        ("id",),
        History(
            {"t": ((1, 1, 5, None, None, None), (2, 1, 6, None, None, None))},
            0,
            (Step((Op("t", None, (3, 1, 9, None, None, None)),), 0),),
        ),
    ),
    # one arm alone gave its own type, of which a text is another one: 3 and 3.0
    "a text made of a column of two types": (
        "select cast(v as string) as kk, count(*) as n from (select x as v from t union all select cast(y as double) from u) q "
        "where v is not null group by cast(v as string)",
        ("kk",),
        History(
            {"t": (), "u": ((1, 3, None),)},
            0,
            (Step((Op("t", None, (1, 1, 3, None, None, None)),), 0),),
        ),
    ),
    "RIGHT JOIN USING shows the right side's column, which has another type": (
        "select id, w from t right join (select cast(k as double) as k, w from u) q using (k) where id is not null and cast(k as string) like '%.0'",
        ("id",),
        History(
            {"t": (), "u": ((3, 0, "a"),)},
            0,
            (Step((Op("t", None, (1, 3, 5, None, None, None)),), 0),),
        ),
    ),
    "a distinct column that the clock moves below": (
        "select distinct coalesce(a3.z, -1) as z, a3.c1 as c1 from (select k as z, now() as c1 from u) as a3",
        ("z", "c1"),
        History({"u": ((4, None, None),)}, 0, (Step((), 21),)),
    ),
    # solved as a date, of which the first arm alone is one: true from that day's first instant, not from the next day's
    "a union of dates and timestamps, compared with the clock": (
        "with a as (select 1 as src, id, d as v from t where d is not null union all select 2, id, ts from t where ts is not null) "
        "select src, id from a where v <= current_date()",
        ("src", "id"),
        History({"t": ((2, None, 1, "b", at(14, 3), None),)}, 12, (Step((), 24),)),
    ),
    "a star over USING, whose column is the left side's timestamp": (
        "select id, id2 from (select * from (select id, ts as v from t) x left join (select id as id2, d as v from t) y using (v)) q "
        "where v <= current_date()",
        ("id",),
        History({"t": ((2, None, 1, "b", at(14, 3), None),)}, 12, (Step((), 24),)),
    ),
    "dates and timestamps in one column of UNPIVOT": (
        "select id, n, d from (select id, d, ts from t) unpivot (d for n in (d, ts)) where d <= current_date()",
        ("id", "n"),
        History({"t": ((3, 2, None, "a", at(14, 1), at(14, 0).date()),)}, 12, (Step((), 24),)),
    ),
    # HAVING means the column of the select list, which the group's query at the other instant does not have
    "HAVING by an alias that FROM has, too": (
        "select k, max(age) as age from (select k, datediff(current_date(), d) as age from t where k is not null and d is not null) q "
        "group by k having age > 1",
        ("k",),
        History({"t": ((1, 1, 1, "b", None, at(13, 0).date()),)}, 0, (Step((), 24),)),
    ),
    "the next bound behind two CTEs of one name": (
        "with a as (select * from t) select * from (with a as (select id, ts from a) select id from a where ts < now()) q",
        ("id",),
        History({"t": ((1, 1, 1, "b", at(14, 3), None),)}, 0, (Step((), 24),)),
    ),
    "the next bound behind a CTE that ends with a comment": (
        "with a as (\n  select id, ts from t -- all rows (also old ones)\n)\nselect id from a where ts < now()",
        ("id",),
        History({"t": ((1, 1, 1, "b", at(14, 3), None),)}, 0, (Step((), 24),)),
    ),
    "a second USING compares the side that a RIGHT JOIN keeps": (
        "select k, u.y from t right join u using (k) join e using (k) where coalesce(t.x, 0) < 2",
        ("k",),
        History(
            {"t": (), "u": ((3, 0, None),), "e": ((3, 1, None, None),)},
            0,
            (Step((Op("t", None, (1, 3, 5, None, None, None)),), 0),),
        ),
    ),
    "EXISTS of the first row": (
        "select t.id, t.x from t where exists (select 1 from u where u.k = t.k limit 1) and not exists (select 1 from e where e.k = t.k limit 2)",
        ("id",),
        History(
            {"t": ((1, 3, None, None, None, None), (2, 4, 1, None, None, None)), "u": ((4, None, None),), "e": ()},
            0,
            (Step((Op("u", None, (3, 1, "b")), Op("e", None, (4, 1, None, None))), 0),),
        ),
    ),
    # what stands behind SEMI and ANTI JOIN was taken for a column that Spark sees there
    "a column of the clock, called like one behind a SEMI JOIN": (
        "select t.id from t left semi join u on u.k = t.k "
        "join (select id as i2, datediff(current_date(), d) as w from t) q on q.i2 = t.id where w > 1",
        ("id",),
        History(
            {"t": ((5, 0, None, None, None, at(14, 0).date()),), "u": ((0, None, None),)},
            0,
            (Step((Op("u", None, (9, None, None)),), 48),),
        ),
    ),
    "a column of the clock, called like one behind an ANTI JOIN": (
        "select t.id from t left anti join u on u.k = t.k "
        "join (select id as i2, datediff(current_date(), d) as w from t) q on q.i2 = t.id where w > 1",
        ("id",),
        History(
            {"t": ((5, 7, None, None, None, at(14, 0).date()),), "u": ()},
            0,
            (Step((Op("u", None, (9, None, None)),), 48),),
        ),
    ),
    "what is behind a SEMI JOIN is not joined to what comes later": (
        "select t.id, flag from t left semi join u on u.k = t.x, r where y = t.id",
        ("id",),
        History(
            {"t": ((0, None, 1, None, None, None),), "r": ((0, 9, None),), "u": ()},
            0,
            (Step((Op("u", None, (1, 1, "b")),), 0),),
        ),
    ),
    # q.u.k was taken for u.k
    "a field of a column that is called like a table": (
        "select q.id, u.k, s.n from (select id, k, named_struct('k', x) as u from t) q join u on u.k = q.k "
        "left join (select y, count(*) as n from r group by y) s on s.y = q.u.k",
        ("k", "id"),
        History(
            {"t": ((5, 4, None, None, None, None),), "r": ((0, None, None),), "u": ((4, 2, None),)},
            0,
            (
                Step(
                    (
                        Op("t", (5, 4, None, None, None, None), (5, 4, 0, None, None, None)),
                        Op("u", (4, 2, None), (4, 3, None)),
                    ),
                    0,
                ),
            ),
        ),
    ),
    "a field of a column that is called like a table, of a partner that is missing": (
        "select u.k, coalesce(q.u.y, -1) as yy, count(*) as n from u left join (select k, z, named_struct('y', z) as u from e) q "
        "on q.k = u.k and q.u is not null group by u.k, coalesce(q.u.y, -1)",
        ("k", "yy"),
        History({"u": ((1, None, None),), "e": ((1, 0, None, None),)}, 0, (Step((Op("e", (1, 0, None, None)),), 0),)),
    ),
    "a field of a column that is called like a table, beside partitions": (
        "select q.id, q.u.k as kk, count(*) over (partition by u.k) as n from (select id, named_struct('k', k) as u from t) q "
        "left join u on u.k = q.u.k where q.u is not null",
        ("id",),
        History(
            {"t": ((1, 2, None, None, None, None), (2, None, None, None, None, None)), "u": ()},
            0,
            (Step((Op("u", None, (2, 1, "")),), 0),),
        ),
    ),
    # w.c was taken for a field of the table's column w
    "a LATERAL VIEW called like a column": (
        "select t.id, count(*) as n from t left join u on t.k = u.k lateral view explode(array(1)) w as c "
        "where w.c = 1 and coalesce(u.y, 0) = 0 group by t.id",
        ("id",),
        History({"t": ((0, 3, None, None, None, None),), "u": ()}, 0, (Step((Op("u", None, (3, 1, "b")),), 0),)),
    ),
    "a LATERAL VIEW called like the column that it takes apart": (
        "select id, tags.c as tag, count(*) over (partition by size(tags), tags) as n "
        "from (select id, array(coalesce(k, -1)) as ks, array(1) as tags from t) q lateral view explode(ks) tags as c",
        ("id", "tag"),
        History(
            {"t": ((1, 1, None, None, None, None), (2, 5, None, None, None, None))},
            0,
            (Step((Op("t", None, (3, 7, None, None, None, None)),), 0),),
        ),
    ),
    "a LATERAL VIEW called like the column of a partition": (
        "select k, w.c as g, count(*) over (partition by u.w) as n from u lateral view explode(array(coalesce(y, -1))) w as c",
        ("k", "g"),
        History({"u": ((1, None, None), (3, 1, None))}, 0, (Step((Op("u", (1, None, None)),), 0),)),
    ),
    # the ON of a join does not see what is joined later, and a query in FROM nothing of the others: these are names of the row around
    **{
        f"a name of the row around in a subquery's {place}, where a later item has one like it": (
            f"select t.id, c.w from t left join u c on c.k = t.k where not exists (select 1 from {text} where i.k = t.id)",
            ("id",),
            History(
                {
                    "t": ((1, 5, None, None, None, None),),
                    "u": ((5, 0, "a"),),
                    "e": ((1, 2, None, None),),
                    "r": ((2, 0, "x"),),
                },
                0,
                (Step((Op("u", (5, 0, "a"), None),), 0),),
            ),
        )
        for place, text in {
            "ON": "e i join r p on p.y = i.z and c.w = 'a' join (select y as kk, region as w from r) c on c.kk = i.z",
            "ON, by its name alone": "e i join r p on p.y = i.z and w = 'a' join (select y as kk, region as w from r) q on q.kk = i.z",
            "FROM": "(select k, z from e where c.w = 'a') i join (select y as kk, region as w from r) c on c.kk = i.z",
        }.items()
    },
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_right_now(name: str) -> None:
    sql, key, history = FOUND[name]
    model, tally = model_of(Database(), Drawn(sql, key), Seen()), Tally()
    assert model is not None
    wrong = live(model, history, tally)
    assert wrong is None, f"{wrong}\n{sql}\n{history}"
    assert tally.pairs == 1
