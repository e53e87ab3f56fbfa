"""Random filters through lives of changes, by an incremental strategy wherever one applies: a sample stays the same sample."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any, NamedTuple

import pytest
from direct import Direct, Model, Pool, schema

from spark_mv.maintenance.errors import RunFailed

FEED = "using delta tblproperties (delta.enableChangeDataFeed = true, delta.enableDeletionVectors = true)"
CLOCK = "current_timestamp()"


class Sampled(NamedTuple):
    """`sql` has its FROM and WHERE at the end, a draw where it says {0}, {1}. `rest` are the conditions of the candidates. `anew`: a column
    that the query draws at each look. `around`: what stands around this SELECT."""

    select: str
    source: str
    where: str
    rest: str = "true"
    draws: tuple[str, ...] = ("rand()",)
    keys: tuple[str, ...] = ("id",)
    anew: str = ""
    with_: str = ""
    around: str = "{}"

    @property
    def sql(self) -> str:
        drawn = f", rand() as {self.anew}" if self.anew else ""
        where = self.where.format(*self.draws)
        return self.around.format(f"{self.with_}select {self.select}{drawn} from {self.source} where {where}")

    def kept(self, state: str) -> str:
        """The query, with the draws of the state table."""
        columns = [f"st.__mv_draw_{k}" for k in range(len(self.draws))]
        same = " and ".join(f"st.{key} = t.{key}" for key in self.keys)
        where = self.where.format(*columns)
        return self.around.format(
            f"{self.with_}select {self.select} from {self.source} join {state} st on {same} where {where}"
        )

    @property
    def candidates(self) -> str:
        keys = ", ".join(f"t.{key}" for key in self.keys)
        return f"{self.with_}select {keys} from {self.source} where {self.rest}"


WEEK = f"ts <= {CLOCK} and ts > {CLOCK} - interval 2 days"
MODELS = {
    "share": Sampled("t.id, t.k, x", "s.t", "{0} < 0.5"),
    "star": Sampled("t.*", "s.t", "{0} < 0.5"),
    "condition": Sampled("t.id, t.k, x * 2 as y", "s.t", "x > 3 and {0} < 0.5", "x > 3"),
    "by_row": Sampled("t.id, t.k", "s.t", "{0} < x / 10.0 and t.k is not null", "t.k is not null"),
    "draws": Sampled(
        "t.id, t.k", "s.t", "{0} < 0.7 and ({1} > '4' or x < 5)", draws=("rand()", "uuid()"), anew="drawn"
    ),
    "join": Sampled("t.id, u.y", "s.t join s.u on u.k = t.k", "{0} < 0.6"),
    "by_partner": Sampled("t.id, u.y", "s.t left join s.u on u.k = t.k", "{0} < coalesce(u.y, 5) / 10.0"),
    "window": Sampled(
        "t.id, t.k, ts", "s.t", f"ts > {CLOCK} - interval 3 days and {{0}} < 0.5", f"ts > {CLOCK} - interval 3 days"
    ),
    "window_by_row": Sampled("t.id, x", "s.t", f"{WEEK} and {{0}} < x / 10.0", WEEK),
    "partners": Sampled(
        "t.id",
        "s.t",
        "{0} < 0.5 and exists (select 1 from s.u where u.k = t.k and u.y > 3)",
        "exists (select 1 from s.u where u.k = t.k and u.y > 3)",
    ),
    "groups": Sampled(
        "t.id, b.y",
        "t left join b on t.k = b.k",
        "{0} < 0.6",
        with_="with t as (select id, k, x from s.t where x > 2), b as (select k, max(y) as y from s.u group by k) ",
    ),
    "below": Sampled(
        "t.id, t.k, x",
        "s.t",
        "x > 3 and {0} < 0.6",
        "x > 3",
        around="with q as ({}), f as (select * from q) select * from f",
    ),
    "below_left": Sampled(
        "t.id, t.k", "s.t", "{0} < x / 10.0", around="select q.id, q.k, u.y from ({}) q left join s.u as u on u.k = q.k"
    ),
    "below_where": Sampled("t.id, t.k, x", "s.t", "{0} < 0.6", around="with q as ({}) select id, x from q where x > 4"),
    "below_join": Sampled(
        "t.id, t.k", "s.t", "{0} < 0.6", around="with q as ({}) select q.id, u.y from q join s.u as u on u.k = q.k"
    ),
    "below_window": Sampled(
        "t.id, ts", "s.t", "{0} < 0.6", around=f"select * from ({{}}) where ts > {CLOCK} - interval 3 days"
    ),
    "below_rank": Sampled(
        "t.id, t.k, x",
        "s.t",
        "{0} < 0.6",
        around="with q as ({}), r as (select *, row_number() over (partition by k order by x, id) as n from q) "
        "select id, n from r where n < 4",
    ),
    "in_a_union": Sampled(
        "t.id, t.k", "s.t", "{0} < 0.6", around="{} union all select k + 1000000 as id, y from s.u where y > 2"
    ),
    "two_keys": Sampled("t.id, t.k, x", "s.t", "t.k is not null and {0} < 0.5", "t.k is not null", keys=("id", "k")),
}
SOME = ("condition", "draws", "by_partner", "window_by_row", "groups", "two_keys", "below", "below_left")
RECOMPUTED = ("below_where", "below_join", "below_window", "below_rank", "in_a_union")
FOLLOWED = {"ROW_BASED", "NO_OP"}


class Life:
    """Sources that change, and models that follow them. `random` decides what happens."""

    def __init__(self, session: Direct, seed: int) -> None:
        self.session, self.random, self.next_id, self.day = session, random.Random(seed), 100, 5
        session.query(f"create table s.t (id int, k int, x int, ts timestamp) {FEED}")
        session.query(f"create table s.u (k int, y int) {FEED}")
        self.insert(range(60))
        session.query("insert into s.u values (1, 2), (2, 7), (3, 9), (4, 1)")

    @property
    def now(self) -> str:
        return f"2026-01-{self.day:02} 12:00:00"

    def insert(self, ids: Any) -> None:
        pick = self.random
        rows = ", ".join(
            f"({id}, {pick.choice(['null', 1, 2, 3, 4, 5])}, {pick.randint(0, 9)}, "
            f"timestamp'2026-01-{pick.randint(1, 12):02} {pick.randint(0, 23):02}:00:00')"
            for id in ids
        )
        self.session.query(f"insert into s.t values {rows}")

    def goes_on(self) -> None:
        for _ in range(self.random.randint(0, 3)):
            self.something()
        self.day += self.random.randint(0, 1)

    def something(self) -> None:
        query, pick = self.session.query, self.random
        what = pick.randint(0, 5)
        if what == 0:
            self.insert(range(self.next_id, self.next_id + 5))
            self.next_id += 5
        elif what == 1:
            query(f"delete from s.t where id % 7 = {pick.randint(0, 6)}")
        elif what == 2:
            query(f"update s.t set x = (x + 3) % 10 where id % 5 = {pick.randint(0, 4)}")
        elif what == 3:
            query(f"update s.t set k = {pick.randint(1, 6)} where id % 11 = {pick.randint(0, 10)}")
        elif what == 4:
            query(f"update s.u set y = (y * 3 + 1) % 10 where k = {pick.randint(1, 4)}")
        else:  # keys that come back
            there = {row["id"] for row in query("select id from s.t")}
            gone = [id for id in range(60) if id not in there]
            if gone:
                self.insert(gone[:3])


class Followed:
    """One model, compared after each run with its query over the kept draws, and these with those before."""

    def __init__(self, name: str, sampled: Sampled) -> None:
        self.model = Model("s", f"m_{name}", sampled.sql, {"unique_key": list(sampled.keys)})
        self.sampled, self.rows, self.draws = sampled, {}, {}  # type: ignore[var-annotated]
        self.strategies: list[str] = []

    def run(self, session: Direct, now: str, refresh: str) -> None:
        sampled, model = self.sampled, self.model
        state = f"s.`{model.name}__state`"
        made = model.run(session, now, refresh) if refresh else model.run_incrementally(session, now)
        assert not session.warnings, session.warnings
        self.strategies.append(made.plan.strategy)
        said = (model.name, len(self.strategies), made.plan.strategy)
        at = f"timestamp'{now}'"
        columns = f"* except ({sampled.anew})" if sampled.anew else "*"
        wanted = session.bag(sampled.kept(state).replace(CLOCK, at))
        got = session.bag(f"select {columns} from {model.table}")
        assert got == wanted, (*said, got - wanted, wanted - got)
        candidates = session.bag(sampled.candidates.replace(CLOCK, at))
        if made.plan.strategy == "NO_OP":  # candidates that the sample lacks have left since, and nothing was written
            candidates |= session.bag(f"select {', '.join(sampled.keys)} from {state}")
        assert session.bag(f"select {', '.join(sampled.keys)} from {state}") == candidates, said
        rows, draws = self.by_key(session, model.table), self.by_key(session, state)
        assert all(draws[key] == self.draws[key] for key in draws if key in self.draws), said
        if sampled.anew:
            assert all(rows[key][sampled.anew] == self.rows[key][sampled.anew] for key in rows if key in self.rows)
        if model.runs > 1:
            counts = made.response()
            true = (
                len(rows.keys() - self.rows.keys()),
                sum(rows[key] != self.rows[key] for key in rows.keys() & self.rows.keys()),
                len(self.rows.keys() - rows.keys()),
            )
            assert (counts.rows_inserted, counts.rows_updated, counts.rows_deleted) == true, said
        self.rows, self.draws = rows, draws

    def by_key(self, session: Direct, table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        return {tuple(row[key] for key in self.sampled.keys): row for row in session.query(f"select * from {table}")}


def live(
    pool: Pool, seed: int, rounds: int, refreshes: tuple[str, ...] = ("",), names: tuple[str, ...] = tuple(MODELS)
) -> dict[str, list[str]]:
    models = [Followed(name, MODELS[name]) for name in names]
    with schema(pool.first, "s") as session:
        life = Life(session, seed)
        for number in range(rounds + 1):
            if number:
                life.goes_on()
            refresh = refreshes[number % len(refreshes)]
            pool.each(lambda session, model, how=refresh: model.run(session, life.now, how), models)
    return {model.model.name: model.strategies for model in models}


@pytest.fixture
def pool(spark: Any) -> Pool:
    return Pool(spark)


def test_a_life(pool: Pool) -> None:
    """What a first run, an incremental one and a recompute leave, the next goes on from."""
    for name, strategies in live(pool, 2, 3, ("", "", "full", ""), SOME).items():
        assert {strategies[1], strategies[3]} <= FOLLOWED, (name, strategies)


def test_filters_below_what_leaves_rows_out(pool: Pool) -> None:
    """The draws of all rows of the SELECT that filters are kept, also of those that the result lacks: nothing follows that."""
    for name, strategies in live(pool, 3, 3, names=RECOMPUTED).items():
        assert set(strategies) <= {"COMPLETE_RECOMPUTE", "NO_OP"}, (name, strategies)


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ("(rand() < 2)", "true"),
        ("(ts <= {now}) and rand() < 2", "ts <= {now}"),
        ("{now} >= ts and rand() < 2", "{now} >= ts"),
        ("rand() < 2 and ts between {now} - interval 3 days and {now}", "ts between {now} - interval 3 days and {now}"),
        (
            "ts <= {now} and (rand() < 0 or ts > {now} - interval 3 days)",
            "ts <= {now} and ts > {now} - interval 3 days",
        ),
        ("ts <= {now} group by id having rand() < 2", "ts <= {now}"),
    ],
    ids=["in brackets", "the clock in brackets", "from", "between", "also by the draw", "groups"],
)
def test_rows_that_are_still_to_enter(pool: Pool, condition: str, truth: str) -> None:
    """No draw is kept for them yet, and no source changes when their time has come."""
    with schema(pool.first, "s") as session:
        session.query(f"create table s.t (id int, ts timestamp) {FEED}")
        session.query("insert into s.t select id, timestamp'2026-01-01' + make_dt_interval(4 * id) from range(4)")
        model = Model("s", "m", f"select id from s.t where {condition.format(now=CLOCK)}", {"unique_key": ["id"]})
        for day in (3, 7, 10):
            model.run(session, f"2026-01-{day:02} 12:00:00")
            there = truth.format(now=f"timestamp'2026-01-{day:02} 12:00:00'")
            assert session.bag("select id from s.m") == session.bag(f"select id from s.t where {there}"), day


LEFT = {
    "rows": "select id, x from s.t where rand() < 2",
    "a window": f"select id, x from s.t where ts > {CLOCK} - interval 3 days and rand() < 2",
    "groups": "select id, max(x) as x from s.t group by id having rand() < 2",
}
LATER = {("rows", "a run"), ("a window", "nothing"), ("groups", "nothing"), ("groups", "a run")}


DROPS_DRAWS, STAGES_ROWS = "then delete", r"create (or replace )?(temporary view|table) \S*m__mv_stage_(?!s_)"


class Died(BaseException):
    """Stands for the death of the process."""


def dies(model: Model, session: Direct, now: str, monkeypatch: pytest.MonkeyPatch, at: str = DROPS_DRAWS) -> None:
    """A run that dies before a statement in which a pattern is found: unless told otherwise it publishes, and drops no draws."""
    query = Direct.query

    def killed(self: Direct, sql: str) -> list[dict[str, Any]]:
        if re.search(at, sql):
            raise Died
        return query(self, sql)

    with monkeypatch.context() as patched:
        patched.setattr(Direct, "query", killed)
        with pytest.raises(Died):
            model.run(session, now)


@pytest.mark.parametrize(
    ("text", "between"),
    [
        pytest.param(
            text, between, id=f"{name}, {between} between", marks=pytest.mark.slow if (name, between) in LATER else ()
        )
        for name, text in LEFT.items()
        for between in ("nothing", "a run")
    ],
)
def test_a_key_comes_back_behind_a_run_that_died(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, text: str, between: str
) -> None:
    """Its row was gone in what the last run published, so that it draws anew, though nobody had dropped its draw."""
    with schema(pool.first, "s") as session:
        session.query(f"create table s.t (id int, x int, ts timestamp) {FEED}")
        session.query("insert into s.t select id, 1, timestamp'2026-01-04 12:00:00' from range(6)")
        session.query("insert into s.t values (6, 1, timestamp'2026-01-02 18:00:00')")
        model = Model("s", "m", text, {"unique_key": ["id"]})
        model.run(session, "2026-01-05 12:00:00")
        before = dict(session.bag("select id, __mv_draw_0 from s.m__state"))
        session.query("delete from s.t where id in (1, 2)")
        dies(model, session, "2026-01-06 12:00:00", monkeypatch)
        if between == "a run":
            assert model.run(session, "2026-01-06 12:00:00").plan.strategy == "NO_OP"
            assert not any("max(hash" in statement for statement in session.statements)  # who stays is not asked yet
        session.query("insert into s.t values (1, 7, timestamp'2026-01-06 12:00:00')")
        run = model.run(session, "2026-01-06 12:00:00")
        assert any("they are dropped now" in note for note in run.plan.notes)
        after = dict(session.bag("select id, __mv_draw_0 from s.m__state"))
        stay = {0, 3, 4, 5, *(() if CLOCK in text else (6,))}
        assert {id_ for id_, _ in after} == stay | {1}
        assert {row for row in before if row[0] in stay} == {row for row in after if row[0] in stay}
        assert not {row for row in before if row[0] == 1} & set(after)
        assert session.bag("select id from s.m") == Counter((id_,) for id_ in stay | {1})
        session.query("update s.t set x = 3 where id = 0")
        assert model.run_incrementally(session, "2026-01-06 12:00:00").plan.strategy == (
            "ROW_BASED" if "having" not in text else "COMPLETE_RECOMPUTE"
        )


TWO = "select id, x from s.t where rand() < 0.5 and rand() < 0.8"


@pytest.mark.parametrize(
    ("other", "comes"),
    [
        ("rand() < 0.1", False),
        ("uuid() < '8'", True),
        pytest.param("rand() < 0.1", True, marks=pytest.mark.slow),
        pytest.param("uuid() < '8'", False, marks=pytest.mark.slow),
    ],
)
def test_a_run_of_another_filter_that_published_nothing(pool: Pool, other: str, comes: bool) -> None:
    """Its SQL is taken back: the draws of the rows stand as the table has them."""
    with schema(pool.first, "s") as session:
        session.query(f"create table s.t (id int, x int) {FEED}")
        session.query("insert into s.t select id, 1 from range(30)")
        now, keys = "2026-01-05 12:00:00", {"unique_key": ["id"]}
        Model("s", "m", TWO, keys).run(session, now)
        rows, draws = session.bag("select * from s.m"), session.bag("select * from s.m__state")
        for runs in (5, 6):  # it is tried twice
            with pytest.raises(RunFailed, match="max_rows_changed"):
                Model("s", "m", f"select id, x from s.t where {other}", {**keys, "max_rows_changed": 0}, runs=runs).run(
                    session, now
                )
        assert session.bag("select * from s.m") == rows
        if comes:
            session.query("insert into s.t values (100, 1)")
        again = Model("s", "m", TWO, keys, runs=10)
        again.run(session, now)
        new = session.bag("select * from s.m__state where id = 100")
        assert session.bag("select * from s.m__state") == draws + new
        assert {row for row in session.bag("select * from s.m") if row[0] != 100} == set(rows)
        session.query("update s.t set x = 2 where id < 5")
        assert again.run_incrementally(session, now).plan.strategy == "ROW_BASED"
        assert session.bag("select * from s.m__state") == draws + new


@pytest.mark.parametrize("other", ["uuid() as r, x", "rand() as r, x + 10 as x"])
def test_remembered_rows_behind_runs_that_published_nothing(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """As for draws: the rows that the source has lost stand as the table has them."""
    with schema(pool.first, "s") as session:
        session.query(f"create table s.t (id int, x int, ts timestamp) {FEED}")
        session.query("insert into s.t select id, 1, timestamp'2026-01-04 12:00:00' from range(6)")
        text = "select id, {}, ts from s.t where ts > current_timestamp() - interval 5 days"
        config = {"unique_key": ["id"], "on_source_delete": "keep"}
        Model("s", "m", text.format("rand() as r, x"), config).run(session, "2026-01-05 12:00:00")
        rows = session.bag("select * from s.m")
        session.query("delete from s.t where id in (1, 2)")
        for runs in (5, 6):
            model = Model("s", "m", text.format(other), config, runs=runs)
            dies(model, session, "2026-01-05 12:00:00", monkeypatch, STAGES_ROWS)
        assert session.bag("select * from s.m") == rows
        session.query("delete from s.t where id = 3")
        again = Model("s", "m", text.format("rand() as r, x"), config, runs=10)
        again.run(session, "2026-01-05 13:00:00")
        assert session.bag("select * from s.m") == rows
        session.query("insert into s.t values (9, 1, timestamp'2026-01-05 12:00:00')")
        again.run(session, "2026-01-05 14:00:00")
        assert session.bag("select * from s.m where id < 9") == rows
        assert session.bag("select id, r, x, ts from s.m") == session.bag("select id, r, x, ts from s.m__state")


def test_a_filter_of_another_type(pool: Pool) -> None:
    with schema(pool.first, "s") as session:
        session.query(f"create table s.t (id int) {FEED}")
        session.query("insert into s.t select id from range(30)")
        for number, text in enumerate(("rand() < 0.5", "uuid() < '8' and rand() < 0.5", "rand() < 2 and uuid() < 'z'")):
            model = Model("s", "m", f"select id from s.t where {text}", {"unique_key": ["id"]}, runs=10 * number)
            model.run(session, "2026-01-05 12:00:00")
            (state,) = session.query("select count(*) as n, count(distinct id) as ids from s.m__state")
            assert state == {"n": 30, "ids": 30}
        assert session.bag("select id from s.m") == session.bag("select id from s.t")


def sample_of_six(session: Direct, now: str) -> Model:
    """A model with a random filter that lets all of six rows pass, after its first run."""
    session.query(f"create table s.t (id int, x int) {FEED}")
    session.query("insert into s.t select id, 1 from range(6)")
    model = Model("s", "m", "select id, x from s.t where rand() < 2", {"unique_key": ["id"]})
    model.run(session, now)
    return model


def test_a_run_that_dies_before_it_drops_a_draw(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run looks through all draws, so that a key which comes back later draws anew."""
    with schema(pool.first, "s") as session:
        model = sample_of_six(session, now := "2026-01-05 12:00:00")
        session.query("delete from s.t where id = 0")
        model.run_incrementally(session, now)  # the newest commit to the state is now one that dropped a draw
        (before,) = session.query("select __mv_draw_0 as draw from s.m__state where id = 1")
        session.query("delete from s.t where id = 1")
        dies(model, session, now, monkeypatch)
        assert session.bag("select id from s.m") == session.bag("select id from s.t")
        session.query("update s.t set x = 2 where id = 5")
        assert model.run_incrementally(session, now).plan.strategy == "COMPLETE_RECOMPUTE"
        assert session.bag("select id from s.m__state") == session.bag("select id from s.t")
        session.query("insert into s.t values (1, 1)")
        assert model.run_incrementally(session, now).plan.strategy == "ROW_BASED"
        (after,) = session.query("select __mv_draw_0 as draw from s.m__state where id = 1")
        assert after != before


def test_a_run_that_cannot_drop_draws(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has published: that is said, and the next run drops them."""
    query = Direct.query

    def refused(self: Direct, sql: str) -> list[dict[str, Any]]:
        if re.search(DROPS_DRAWS, sql):
            raise RuntimeError("no disk")
        return query(self, sql)

    with schema(pool.first, "s") as session:
        model = sample_of_six(session, now := "2026-01-05 12:00:00")
        session.query("delete from s.t where id = 1")
        with monkeypatch.context() as patched:
            patched.setattr(Direct, "query", refused)
            run = model.run_incrementally(session, now)
        assert (run.plan.strategy, run.response().rows_deleted) == ("ROW_BASED", 1)
        (said,) = session.warnings
        assert "is published" in said and "no disk" in said, said
        made = [row["operation"] for row in session.query("describe history s.m")]
        assert len(made) == 2, made
        session.query("insert into s.t values (1, 1)")
        assert model.run_incrementally(session, now).plan.strategy == "COMPLETE_RECOMPUTE"
        assert session.bag("select id from s.m") == session.bag("select id from s.t")
        assert not [name for name in session.query("show tables in s") if "stage" in name["tableName"]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 9))
def test_long_lives(pool: Pool, seed: int) -> None:
    live(pool, seed, 10, ("", "", "auto", "", "full") if seed % 2 else ("",))


SCORED = "with scored as (select id, x, rand() as r from s.t) select {key}, x, r, case when r < 0.2 then 'low' else 'high' end as part "
SHAPES = {
    "a filter": "select {key}, x, x as r, 'high' as part from s.t where rand() < 0.6",
    "a drawn column": SCORED + "from scored where r < 0.6",
    "a drawn column below": SCORED.replace("from s.t)", "from s.t), q as (select * from scored where r < 0.6)")
    + "from q",
    "below": "with q as (select id, x from s.t where rand() < 0.6) select {key}, x, x as r, 'high' as part from q",
}


@pytest.mark.parametrize("shape", list(SHAPES))
def test_the_key_is_renamed(pool: Pool, shape: str) -> None:
    """Draws are found by the key that they had, as values of the table are."""
    with schema(pool.first, "s") as session:
        session.query(f"create table s.t (id int, x int) {FEED}")
        session.query("insert into s.t select id, id % 7 from range(40)")
        model = Model("s", "m", SHAPES[shape].format(key="id"), {"unique_key": ["id"]})
        model.run(session, "2026-01-05 12:00:00")
        rows, draws = (
            session.bag("select id, x, r, part from s.m"),
            session.bag("select id, __mv_draw_0 from s.m__state"),
        )
        model.sql, model.config = SHAPES[shape].format(key="id as nid"), {"unique_key": ["nid"]}
        run = model.run(session, "2026-01-06 12:00:00")
        assert session.bag("select nid, x, r, part from s.m") == rows, run.plan.notes
        assert session.bag("select nid, __mv_draw_0 from s.m__state") == draws
        assert not any("all rows draw anew" in note for note in run.plan.notes), run.plan.notes


@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_lost_state_is_made_again_from_the_table(pool: Pool, shape: str) -> None:
    """Its rows stay, and show what they were judged by."""
    with schema(pool.first, "s") as session:
        session.query(f"create table s.t (id int, x int) {FEED}")
        session.query("insert into s.t select id, id % 7 from range(40)")
        model = Model("s", "m", SHAPES[shape].format(key="id"), {"unique_key": ["id"]})
        model.run(session, "2026-01-05 12:00:00")
        rows = session.bag("select id, x, r, part from s.m")
        session.query("drop table s.m__state")
        session.query("insert into s.t values (100, 1)")
        model.run(session, "2026-01-06 12:00:00")
        assert rows <= session.bag("select id, x, r, part from s.m")
        judged = "select id from s.m__state where __mv_draw_0 < 0.6"
        assert session.bag(judged) == session.bag("select id from s.m")
        if "a drawn column" in shape:
            assert session.bag("select id, r from s.m") == session.bag(
                "select id, __mv_draw_0 from s.m__state where __mv_draw_0 < 0.6"
            )
