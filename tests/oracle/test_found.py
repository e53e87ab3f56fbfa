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
    "a second USING compares the side that a RIGHT JOIN keeps": (
        "select k, u.y from t right join u using (k) join e using (k) where coalesce(t.x, 0) < 2",
        ("k",),
        History(
            {"t": (), "u": ((3, 0, None),), "e": ((3, 1, None, None),)},
            0,
            (Step((Op("t", None, (1, 3, 5, None, None, None)),), 0),),
        ),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_right_now(name: str) -> None:
    sql, key, history = FOUND[name]
    model, tally = model_of(Database(), Drawn(sql, key), Seen()), Tally()
    assert model is not None
    wrong = live(model, history, tally)
    assert wrong is None, f"{wrong}\n{sql}\n{history}"
    assert tally.pairs == 1
