"""Queries of every shape, put together at random from tables t(id, k, x, s, ts, d), u(k, y, w), e(k, z, amt)
and the view v of t's rows with a `k`.

`t.id` and `u.k` are unique and never NULL, all other columns may be; `e` has repeated rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

Draw = st.DrawFn
SAMPLE = "rand() < 0.5"
OF_U = 1_000_000
"""Keys of u's rows begin here, beside those of t."""


@dataclass(frozen=True)
class Query:
    """`{kept}` in `sql` is where kept columns stand; without them the text gives the deterministic columns."""

    shape: str
    sql: str
    key: tuple[str, ...]
    kept: tuple[str, ...] = ()
    redraw: bool = False
    keeps: bool = False  # on_source_delete: keep

    @property
    def model_sql(self) -> str:
        return self.sql.replace("{kept}", "".join(f", {text}" for text in self.kept))

    @property
    def kept_names(self) -> list[str]:
        return [text.split()[-1] for text in self.kept]

    def plain_sql(self, as_of: str, sample: str = "true") -> str:
        """The deterministic columns at an instant of UTC, put in by hand, with what the scripted model answers and
        `sample` for the condition on a draw."""
        text = self.sql.replace("{kept}", "").replace("ai_gen(", "concat('ai_gen: ', ").replace(SAMPLE, sample)
        return text.replace("current_timestamp()", f"TIMESTAMP'{as_of}'").replace(
            "current_date()", f"DATE'{as_of[:10]}'"
        )


def _pick(draw: Draw, *options: str) -> str:
    return draw(st.sampled_from(options))


def _filter(draw: Draw, a: str) -> str:
    return _pick(
        draw,
        f"{a}k > 1",
        f"{a}x is not null",
        f"{a}x > 1.0 or {a}s = 'b'",
        f"not ({a}k = 2)",
        f"coalesce({a}s, 'z') <> 'a'",
        f"{a}k in (1, 2, 3) and {a}x < 9",
        "true",
    )


def _clock(draw: Draw, a: str) -> str:
    return _pick(
        draw,
        f"{a}ts > current_timestamp() - interval 10 hours",
        f"{a}ts >= current_timestamp() - interval 1 day and {a}ts <= current_timestamp()",
        f"{a}ts <= current_timestamp()",
        f"{a}d >= date_sub(current_date(), 2)",
        f"{a}d between date_sub(current_date(), 1) and current_date()",
        f"{a}ts + interval 6 hours >= current_timestamp()",
        f"datediff(current_date(), {a}d) <= 1 and {a}d <= current_date()",
        f"cast({a}ts as date) = current_date()",
    )


def _values(draw: Draw, a: str) -> str:
    items = [f"{a}k", f"{a}x * 2 as x2", f"upper({a}s) as s", f"{a}ts", f"case when {a}x > 2 then {a}k end as c"]
    return ", ".join(draw(st.lists(st.sampled_from(items), min_size=1, max_size=3, unique=True)))


def _where(draw: Draw, a: str = "") -> str:
    return f"where {_filter(draw, a)}" if draw(st.booleans()) else ""


_AGGREGATES = (
    "count(*) as n", "sum({a}x) as sx", "avg({a}x) as ax", "count(distinct {a}s) as ds", "min({a}ts) as mt",
    "max({a}s) as ms", "count({a}k) filter (where {a}x > 2) as nf", "sum({a}k) as sk", "round(stddev({a}x), 6) as sd",
    "count_if({a}s = 'a') as na", "sum(cast({a}x as decimal(12, 2))) as dx", "bool_or({a}x > 3) as bo",
)  # fmt: skip


def _aggregates(draw: Draw, a: str = "") -> str:
    found = draw(st.lists(st.sampled_from(_AGGREGATES), min_size=1, max_size=4, unique=True))
    return ", ".join(text.replace("{a}", a) for text in found)


def _having(draw: Draw, a: str = "") -> str:
    return _pick(draw, "", "", "having count(*) > 1", f"having sum({a}x) > 3 or max({a}k) is null")


def projection(draw: Draw) -> Query:
    return Query("projection", f"select id, {_values(draw, '')}{{kept}} from t {_where(draw)}", ("id",))


def temporal(draw: Draw) -> Query:
    return Query(
        "temporal filter",
        f"select id, {_values(draw, '')}{{kept}} from t where {_clock(draw, '')} and {_filter(draw, '')}",
        ("id",),
    )


def leaving(draw: Draw) -> Query:
    """The columns that windows stand on are passed on, under another name or not."""
    join = _pick(draw, "", "", "left join u on t.k = u.k", "left semi join u on t.k = u.k")
    columns = ", u.w" if join.startswith("left join") else ""
    at = _pick(draw, "t.ts as at, t.d", "t.*")
    return Query(
        "leaving", f"select {'' if at == 't.*' else 't.id, '}{at}{columns}{{kept}} from t {join} "
        f"where {_clock(draw, 't.')} and {_filter(draw, 't.')}", ("id",),
    )  # fmt: skip


def join(draw: Draw) -> Query:
    kind = _pick(draw, "join", "left join", "left semi join", "left anti join")
    extra = _pick(draw, "", "and u.y > 1", "and u.y > t.x", "and t.s = 'a'")
    columns = ", u.y, u.w" if kind in ("join", "left join") else ""
    where = _pick(draw, "", f"where {_filter(draw, 't.')}", f"where {_clock(draw, 't.')}")
    if columns and not where and draw(st.booleans()):
        where = _pick(draw, "where u.k is null", "where u.w = 'p'", "where coalesce(u.y, 0) < 2")
    values = _values(draw, "t.")
    return Query(
        f"{kind}", f"select t.id, {values}{columns}{{kept}} from t {kind} u on t.k = u.k {extra} {where}", ("id",)
    )


def joins(draw: Draw) -> Query:
    second = _pick(draw, "join u b on b.k = t.id", "left join u b on b.k = u.y", "left anti join e on e.k = t.k",
                   "left semi join e on e.k = u.y")  # fmt: skip
    first = _pick(draw, "join", "left join")
    columns = ", b.w as bw" if " u b " in second else ""
    return Query(
        "joins",
        f"select t.id, t.x, u.y{columns}{{kept}} from t {first} u on t.k = u.k {second} {_where(draw, 't.')}",
        ("id",),
    )


def self_join(draw: Draw) -> Query:
    return Query(
        "self-join",
        f"select a.id, b.id as bid, a.x + b.x as xx{{kept}} from t a join t b on a.k = b.k and a.id < b.id {_where(draw, 'a.')}",
        ("id", "bid"),
    )


def union_all(draw: Draw) -> Query:
    clock = f" and {_clock(draw, '')}" if draw(st.booleans()) else ""
    return Query(
        "union all",
        f"select * {{kept}} from (select id, k as v, s from t where {_filter(draw, '')}{clock} "
        "union all select k + 1000000 as id, y, w from u where y > 0)",
        ("id",),
    )


def distinct(draw: Draw) -> Query:
    if draw(st.booleans()):
        return Query(
            "distinct", f"select distinct coalesce(k, -1) as k, coalesce(s, '') as s from t {_where(draw)}", ("k", "s")
        )
    return Query(
        "distinct",
        f"select *{{kept}} from (select distinct e.k, coalesce(t.s, '-') as s from e join t on t.k = e.k {_where(draw, 't.')})",
        ("k", "s"),
    )


def group(draw: Draw) -> Query:
    key = _pick(draw, "coalesce(k, -1)", "coalesce(s, '')", "coalesce(k, 0) % 2", "coalesce(k, -1), coalesce(s, '')")
    names = ["g", "h"][: key.count("coalesce")]
    parts = key.split(", coalesce")
    items = [parts[0], *(f"coalesce{p}" for p in parts[1:])]
    listed = ", ".join(f"{text} as {name}" for text, name in zip(items, names, strict=True))
    by = _pick(draw, key, ", ".join(str(i + 1) for i in range(len(items))), ", ".join(names))
    return Query(
        "group by",
        f"select {listed}, {_aggregates(draw)}{{kept}} from t {_where(draw)} group by {by} {_having(draw)}",
        tuple(names),
    )


def moving_group(draw: Draw) -> Query:
    return Query(
        "moving aggregate",
        f"select coalesce(k, -1) as g, {_aggregates(draw)}{{kept}} from t where {_clock(draw, '')} "
        f"group by coalesce(k, -1) {_having(draw)}",
        ("g",),
    )


def group_join(draw: Draw) -> Query:
    kind = _pick(draw, "join", "left join")
    key = "u.w" if kind == "join" else "t.k"
    where = f"where {key} is not null" + (f" and {_clock(draw, 't.')}" if draw(st.booleans()) else "")
    return Query(
        "group by of a join",
        f"select {key} as g, {_aggregates(draw, 't.')}, sum(u.y) as sy{{kept}} from t {kind} u on t.k = u.k {where} "
        f"group by {key} {_having(draw, 't.')}",
        ("g",),
    )


_DISTRIBUTIVE = (
    "count(*) as n", "sum({a}k) as sk", "count({a}k) filter (where {a}x > 2) as nf", "min({a}ts) as mt", "max({a}s) as ms",
    "sum(cast({a}x as decimal(12, 2))) as dx", "count_if({a}s = 'a') as na", "bool_or({a}x > 3) as bo",
    "every({a}k > 0) as ev", "max({a}k) filter (where {a}s <> 'b') as mk", "sum(cast({a}x as decimal(30, 4))) as wx",
)  # fmt: skip


def adjusted(draw: Draw) -> Query:
    """Groups that are adjusted by what came and went."""
    found = draw(st.lists(st.sampled_from(_DISTRIBUTIVE), min_size=1, max_size=4, unique=True))
    listed = ", ".join(text.replace("{a}", "t.") for text in found)
    tables = _pick(draw, "t", "t", "t join u on t.k = u.k", "t left join u on t.id = u.k", "e join t on e.k = t.k")
    key, by = draw(
        st.sampled_from(
            [
                ("coalesce(t.k, -1) as g", "group by 1"),
                ("coalesce(t.k, -1) as g", "group by coalesce(t.k, -1)"),
                ("coalesce(t.s, '') as g", "group by g"),
                ("coalesce(t.k, -1) as g, t.s", "group by coalesce(t.k, -1), s"),
                ("1 as g", ""),
            ]
        )
    )
    name = ("g", "s") if by.endswith(", s") else ("g",)
    if by.endswith(", s"):
        key = key.replace("t.s", "coalesce(t.s, '') as s") if draw(st.booleans()) else key
        by = "group by 1, 2"
    where = _pick(
        draw, "", f"where {_clock(draw, 't.')}", f"where {_clock(draw, 't.')}", f"where {_filter(draw, 't.')}"
    )
    return Query("adjusted groups", f"select {key}, {listed}{{kept}} from {tables} {where} {by}", name)


def window(draw: Draw) -> Query:
    functions = draw(
        st.lists(
            st.sampled_from(
                [
                    "row_number() over (partition by k order by id) as rn",
                    "rank() over (partition by k order by x) as rk",
                    "lag(x) over (partition by k order by id) as lx",
                    "sum(x) over (partition by k order by id rows between 1 preceding and current row) as sr",
                    "sum(x) over (partition by k order by id range between 2 preceding and 1 following) as sg",
                    "max(s) over (partition by k) as ms",
                    "count(*) over (partition by k, s) as cs",
                    "dense_rank() over (partition by s, k order by x desc) as dr",
                ]
            ),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    where = _pick(draw, "", f"where {_filter(draw, '')}", f"where {_clock(draw, '')}")
    return Query("window", f"select id, k, {', '.join(functions)}{{kept}} from t {where}", ("id",))


def dedup(draw: Draw) -> Query:
    where = _pick(draw, "where k is not null", f"where k is not null and {_clock(draw, '')}")
    order = _pick(draw, "ts desc nulls last, id", "x, id desc")
    return Query(
        "dedup",
        "select k, id, x{kept} from "
        f"(select *, row_number() over (partition by k order by {order}) as rn from t {where}) where rn = 1",
        ("k",),
    )


def subquery(draw: Draw) -> Query:
    test = _pick(
        draw,
        "exists (select 1 from u where u.k = t.k and u.y > 1)",
        "not exists (select 1 from u where u.k = t.k)",
        "not exists (select 1 from e where e.k = t.k and e.z > t.x)",
        "k in (select y from u)",
        "k in (select k from e where z > 1)",
        "k not in (select k from e where k is not null)",
        "x > (select avg(y) from u)",
        "x >= (select max(e.z) from e where e.k = t.k)",
        "exists (select 1 from e join u on u.k = e.z where e.k = t.k)",
    )
    more = f" and {_clock(draw, '')}" if draw(st.integers(0, 3)) == 0 else ""
    return Query("subquery", f"select id, x, k{{kept}} from t where {test}{more}", ("id",))


def scalar(draw: Draw) -> Query:
    item = _pick(draw, "(select max(z) from e where e.k = t.k)", "(select sum(y) from u)", "(select count(*) from e)")
    return Query("scalar subquery", f"select id, x, {item} as q{{kept}} from t {_where(draw)}", ("id",))


def stacked(draw: Draw) -> Query:
    return draw(
        st.sampled_from(
            [
                Query(
                    "stacked",
                    "with g as (select k, sum(x) as s, count(*) as n from t group by k) "
                    "select u.k, u.w, g.s, g.n{kept} from u left join g on g.k = u.k",
                    ("k",),
                ),
                Query(
                    "stacked",
                    "with l as (select *, row_number() over (partition by k order by z, amt) as rn from e) "
                    "select t.id, t.x, l.z{kept} from t left join l on l.k = t.k and l.rn = 1",
                    ("id",),
                ),
                Query(
                    "stacked",
                    "select w, count(*) as n, sum(m) as sm{kept} from (select u.w, u.k, max(t.x) as m from u join t on t.k = u.k "
                    "group by u.w, u.k) where w is not null group by w",
                    ("w",),
                ),
                Query(
                    "stacked",
                    "with r as (select * from t where ts > current_timestamp() - interval 12 hours), "
                    "g as (select k, count(*) as n from r group by k) "
                    "select r.id, r.x, g.n{kept} from r join g on g.k = r.k",
                    ("id",),
                ),
                Query(
                    "stacked",
                    "select k, n, rank() over (partition by n order by k) as r{kept} from "
                    "(select k, count(*) as n from t where k is not null group by k)",
                    ("k",),
                ),
                Query(
                    "stacked",
                    "select k, s, sum(x) as sx, rank() over (partition by k order by sum(x), s) as r{kept} from t "
                    "where k is not null and s is not null group by k, s",
                    ("k", "s"),
                ),
                Query(
                    "stacked",
                    "select id, x, k{kept} from (select id, x, k from t union all select k + 1000000, y, y from u) "
                    "where k in (select z from e)",
                    ("id",),
                ),
                Query(
                    "stacked",
                    "select id, sum(v) as v, count(*) as n{kept} from (select id, x as v from t union all select k, y from u "
                    "union all select k, z from e where k is not null) group by id",
                    ("id",),
                ),
            ]
        )
    )


def asked(draw: Draw) -> Query:
    """Answers of a model as columns, groups, filters and join keys."""
    clock = f"and {_clock(draw, 't.')}" if draw(st.booleans()) else ""
    return draw(
        st.sampled_from(
            [
                Query(
                    "asked", f"select id, x, ai_gen(s) as a{{kept}} from t where {_filter(draw, '')} {clock}", ("id",)
                ),
                Query(
                    "asked",
                    "select coalesce(ai_gen(s), '-') as a, count(*) as n, max(x) as m{kept} from t group by 1",
                    ("a",),
                ),
                Query(
                    "asked",
                    f"select t.id, t.x, ai_gen(u.w) as a{{kept}} from t left join u on t.k = u.k where true {clock}",
                    ("id",),
                ),
                Query("asked", f"select id, s{{kept}} from t where ai_gen(s) like '%a' {clock}", ("id",)),
                Query(
                    "asked",
                    "select id, x, ai_gen(s) as a{kept} from (select id, x, s from t union all select k + 1000000, y, w from u "
                    "where k in (select z from e))",
                    ("id",),
                ),
                Query(
                    "asked",
                    "with q as (select id, x, ai_gen(s) as a, ts, d from t), w as (select *, ai_gen(a) as c from q) "
                    f"select id, x, c, ai_gen(c) as b{{kept}} from w as t where c like '%a' {clock}",
                    ("id",),
                ),
                Query(
                    "asked",
                    "select k, s, concat(ai_gen(s), max(x)) as a, count(*) as n{kept} from t where k is not null and s is not null "
                    "group by k, s",
                    ("k", "s"),
                ),
                Query(
                    "asked",
                    f"select t.id, ai_gen((select max(u.w) from u where u.k = t.k)) as a{{kept}} from t where true {clock}",
                    ("id",),
                ),
                Query(
                    "asked",
                    f"with c as (select * from t where true {clock} order by x desc nulls last, id limit 4) "
                    "select id, x, ai_gen(s) as a{kept} from c",
                    ("id",),
                ),
                Query(
                    "asked",
                    "select u.k, (select max(ai_gen(t.s)) from t where t.k = u.k) as a, "
                    f"(select count(*) from t where t.k = u.k {clock} and ai_gen(t.s) > 'ai_gen: a') as n{{kept}} from u",
                    ("k",),
                ),
            ]
        )
    )


def over_view(draw: Draw) -> Query:
    """A view in between is looked through to its table."""
    if draw(st.booleans()):
        return Query("view", f"select id, {_values(draw, '')}{{kept}} from v where {_clock(draw, '')}", ("id",))
    return Query("view", f"select k, {_aggregates(draw)}{{kept}} from v {_where(draw)} group by k", ("k",))


def sampled(draw: Draw) -> Query:
    """A random filter: the draws of all candidates are kept, so that a sample stays the same sample."""
    more = _pick(draw, "", f"and ({_filter(draw, '')})", f"and {_clock(draw, '')}")
    below = f"with q as (select * from t where {SAMPLE} {more})"
    sql = _pick(
        draw,
        f"select id, {_values(draw, '')} from t where {SAMPLE} {more}",
        f"{below} select * from q",
        f"{below} select q.id, q.x, u.w from q left join u on u.k = q.k",
        f"{below} select id, x from q where {_clock(draw, '')}",
        f"{below}, r as (select *, row_number() over (partition by k order by x, id) as rn from q) select id, rn from r where rn < 3",
        f"select id, x from t where {SAMPLE} {more} union all select k + {OF_U}, y from u",
    )
    return Query("sampled", sql, ("id",))


def keeping(draw: Draw) -> Query:
    """Rows that the source loses stay."""
    sql = _pick(
        draw,
        f"select id, {_values(draw, '')}{{kept}} from t",
        "select t.id, t.x, u.y{kept} from t left join u on t.k = u.k",
        "select coalesce(k, -1) as g, count(*) as n, sum(k) as sk{kept} from t group by 1",
    )
    return Query("kept rows", sql, ("g",) if " as g" in sql else ("id",), keeps=True)


def whole(draw: Draw) -> Query:
    """Shapes that only a complete recompute follows."""
    return draw(
        st.sampled_from(
            [
                Query("whole", "select id, x{kept} from t order by x desc, id limit 4", ("id",)),
                Query("whole", "select id, rank() over (order by x, id) as r{kept} from t", ("id",)),
                Query("whole", "select 1 as one, count(*) as n, sum(x) as sx{kept} from t", ("one",)),
                Query("whole", "select id, x, current_date() as today{kept} from t", ("id",)),
                Query(
                    "whole",
                    "select coalesce(t.id, -u.k) as id, t.x, u.y{kept} from t full outer join u on t.id = u.k",
                    ("id",),
                ),
                Query("whole", "select id, x{kept} from t where k > hour(current_timestamp()) % 4", ("id",)),
                Query(
                    "whole",
                    "select coalesce(k, -1) as k, count(*) filter (where ts > current_timestamp() - interval 5 hours) as n{kept} "
                    "from t group by coalesce(k, -1)",
                    ("k",),
                ),
                Query("whole", "select id, k{kept} from (select id, k from t except select k, y from u)", ("id",)),
                Query("whole", "select id{kept} from (select id from t intersect select k from e)", ("id",)),
            ]
        )
    )


SHAPES: tuple[Callable[[Draw], Query], ...] = (
    projection, temporal, join, join, joins, self_join, union_all, distinct, group, group, moving_group, moving_group,
    group_join, adjusted, adjusted, window, window, dedup, subquery, subquery, scalar, stacked, stacked, whole,
    asked, asked, over_view, sampled, keeping, leaving, leaving,
)  # fmt: skip


@st.composite
def queries(draw: Draw, shape: Callable[[Draw], Query]) -> Query:
    query = shape(draw)
    kept: tuple[str, ...] = ()
    if "{kept}" in query.sql:
        kept = draw(
            st.sampled_from([(), ("rand() as r_",), ("uuid() as u_",), ("rand() as r_", "current_timestamp() as seen")])
        )
    redraw = bool(kept) and draw(st.integers(0, 3)) == 0
    return replace(query, kept=kept, redraw=redraw)
