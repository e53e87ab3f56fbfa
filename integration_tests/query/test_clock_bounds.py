"""Solved bounds against Spark: a predicate holds at T exactly when T lies within its bounds.

Every predicate is evaluated on rows full of awkward instants, at fixed T and at the microseconds around each bound that
was solved for the row. Many predicates go into one statement.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spark_mv.query.rewrite.clock_split import next_change_sql, split_clock
from spark_mv.query.rewrite.pin import Pins, clock_spans, pin, timestamp_literal
from spark_mv.query.solver.solve import Bounds, solve
from spark_mv.query.syntax.source_text import Edit, apply_edits

pytestmark = pytest.mark.spark

TYPES = {"ts": "timestamp", "d": "date", "n": "int", "s": "string", "z": "timestamp_ntz", "e": "bigint"}

#: local times (and so also dates): month ends, leap days, year ends, summer time in New York, Berlin, Beirut, Lord Howe
LOCAL = (
    "2023-02-28 23:59:59.999999",
    "2024-01-31 00:00:00",
    "2024-02-29 12:30:00",
    "2024-02-29 00:00:00",
    "2024-03-01 00:00:00.000001",
    "2024-03-10 02:30:00",
    "2024-03-10 03:00:00",
    "2024-03-31 00:00:00",
    "2024-03-31 02:30:00",
    "2024-04-30 23:00:00",
    "2024-10-27 02:30:00",
    "2024-11-03 01:30:00",
    "2024-11-03 00:00:00",
    "2024-12-31 23:59:59",
    "2025-01-01 00:00:00",
)
INSTANTS = (
    "2023-03-01 00:00:00",
    "2024-01-30 23:59:59.999999",
    "2024-02-28 10:00:00",
    "2024-02-29 00:00:00",
    "2024-03-10 06:59:59",
    "2024-03-10 07:00:00",
    "2024-03-31 00:30:00",
    "2024-03-31 01:00:00",
    "2024-06-15 12:00:00",
    "2024-10-27 00:30:00",
    "2024-10-27 01:30:00",
    "2024-11-03 05:30:00",
    "2024-11-03 06:30:00",
    "2024-12-31 22:00:00",
    "2025-02-28 23:00:00",
)


def rows() -> str:
    """A relation of about forty rows, a quarter of them with a NULL somewhere."""
    lines = []
    for i, local in enumerate(LOCAL):
        other = LOCAL[(i * 7 + 3) % len(LOCAL)]
        for k, (ts, d, n) in enumerate(
            [
                (f"TIMESTAMP'{local}'", f"DATE'{other[:10]}'", str((i * 5) % 32 - 3)),
                (f"TIMESTAMP'{other}'", f"DATE'{local[:10]}'", "30"),
                ("NULL", f"DATE'{local[:10]}'", "1") if i % 2 else (f"TIMESTAMP'{local}'", "NULL", "NULL"),
            ]
        ):
            text = f"'{other[:10]}'" if k else f"'{local}'"
            lines.append(f"({3 * i + k}, {ts}, {d}, {n}, {text}, TIMESTAMP_NTZ'{local}', unix_seconds({ts}) + {k - 1})")
    return f"VALUES {', '.join(lines)} AS r(id, ts, d, n, s, z, e)"


def at_column(predicate: str) -> str:
    """The predicate with the clock read from the column `__t`, as the pinned text would have it as a literal."""
    forms = {
        "current_date": "CAST(__t AS DATE)",
        "curdate": "CAST(__t AS DATE)",
        "current_timestamp": "__t",
        "now": "__t",
        "localtimestamp": "CAST(__t AS TIMESTAMP_NTZ)",
        "unix_timestamp": "unix_seconds(__t)",
    }
    edits = []
    for span in clock_spans(predicate, list(TYPES)):
        text = span.of(predicate)
        edits.append(Edit(span.start, span.end, special(text) or forms[text.split("(")[0].strip().lower()]))
    return apply_edits(predicate, edits)


def special(text: str) -> str:
    """DATE'yesterday' and the like, read from `__t`."""
    found = re.search(r"'(now|today|yesterday|tomorrow)'", text, re.IGNORECASE)
    if not found:
        return ""
    word, date = found[1].lower(), re.search(r"timestamp", text, re.IGNORECASE) is None
    if word == "now":
        return "CAST(__t AS DATE)" if date else "__t"
    day = f"date_add(CAST(__t AS DATE), {['yesterday', 'today', 'tomorrow'].index(word) - 1})"
    return day if date else f"CAST({day} AS TIMESTAMP)"


def check_query(number: int, predicate: str, bounds: Bounds) -> str:
    fixed = ", ".join(f"TIMESTAMP'{instant}Z'" for instant in INSTANTS)
    near = ", ".join(f"{b} - INTERVAL '0.000001' SECOND, {b}, {b} + INTERVAL '0.000001' SECOND" for b in ("vf", "vt"))
    # the next days at midnight and a while later: where what is not monotone turns around again
    near += "".join(f", date_trunc('DAY', {b}) + INTERVAL {days} DAY" for b in ("vf", "vt") for days in (1, 2, 3))
    near += ", vf - INTERVAL 20 HOUR, vt + INTERVAL 20 HOUR"
    lower = bounds.valid_from or "CAST(NULL AS TIMESTAMP)"
    upper = bounds.valid_to or "CAST(NULL AS TIMESTAMP)"
    return f"""SELECT {number} AS number, id, __t, true_value
        FROM (SELECT id, __t, coalesce(g AND (vf IS NULL OR vf <= __t) AND (vt IS NULL OR __t < vt), false) AS solved,
                     coalesce({at_column(predicate)}, false) AS true_value
              FROM (SELECT *, explode(array({fixed}, {near})) AS __t
                    FROM (SELECT *, {lower} AS vf, {upper} AS vt, {bounds.guard or "true"} AS g
                          FROM rows_at_awkward_times))
              WHERE __t IS NOT NULL)
        WHERE solved <> true_value"""


@dataclass
class Checked:
    solved: int
    unsolved: int
    wrong: list[str]


def prepare(session: Any, zone: str) -> None:
    session.conf.set("spark.sql.session.timeZone", zone)
    session.sql(f"CREATE OR REPLACE TEMP VIEW rows_at_awkward_times AS SELECT * FROM {rows()}")


def check(session: Any, zone: str, predicates: Iterable[str], batch: int = 40) -> Checked:
    """Solve and compare; every wrong predicate with an example row and instant."""
    prepare(session, zone)
    unique = list(dict.fromkeys(predicates))
    found = {p: solve(p, TYPES, zone) for p in unique}
    pairs = [(p, b) for p, b in found.items() if b is not None]
    wrong = []
    for start in range(0, len(pairs), batch):
        queries = [check_query(start + i, p, b) for i, (p, b) in enumerate(pairs[start : start + batch])]
        for row in session.sql(f"SELECT * FROM ({' UNION ALL '.join(queries)}) LIMIT 10").collect():
            wrong.append(f"{zone}: {pairs[row['number']]} is {row['true_value']} for row {row['id']} at {row['__t']}")
    return Checked(len(pairs), len(unique) - len(pairs), wrong)


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "1")
    own.conf.set("spark.sql.codegen.wholeStage", "false")  # hundreds of small queries: interpreting is quicker
    return own


DATE_CLOCKS = st.sampled_from(["current_date()", "current_date", "curdate()", "to_date(now())", "CAST(now() AS DATE)"])
TIME_CLOCKS = st.sampled_from(
    ["current_timestamp()", "now()", "current_timestamp", "CAST(current_date() AS TIMESTAMP)"]
)
UNITS = st.sampled_from(["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"])
SMALL = st.integers(-40, 40)
DATE_STEPS = st.one_of(
    st.builds("INTERVAL {} DAY".format, st.integers(0, 70)),
    st.builds("INTERVAL '{}' MONTH".format, st.integers(-14, 14)),
    st.builds("INTERVAL {} WEEKS".format, st.integers(0, 9)),
    st.builds("INTERVAL '{}' YEAR".format, st.integers(-2, 2)),
)
TIME_STEPS = st.one_of(DATE_STEPS, st.builds("INTERVAL {} HOURS".format, st.integers(0, 60)))


def dates(clocks: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Date expressions over the clock."""
    return st.recursive(
        clocks,
        lambda inner: st.one_of(
            st.builds("({} - {})".format, inner, st.integers(0, 40)),
            st.builds("({} + {})".format, inner, st.one_of(st.integers(0, 40), st.just("n"))),
            st.builds("({} {} {})".format, inner, st.sampled_from("+-"), DATE_STEPS),
            st.builds("date_add({}, {})".format, inner, st.one_of(SMALL, st.just("n"))),
            st.builds("date_sub({}, {})".format, inner, SMALL),
            st.builds("add_months({}, {})".format, inner, st.one_of(SMALL, st.just("n"))),
            st.builds("trunc({}, '{}')".format, inner, st.sampled_from(["MM", "YEAR", "quarter", "week"])),
            st.builds("last_day({})".format, inner),
            st.builds("to_date(date_trunc('{}', {}))".format, UNITS, inner),
        ),
        max_leaves=3,
    )


def times(clocks: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Timestamp expressions over the clock."""
    return st.recursive(
        st.one_of(clocks, dates(DATE_CLOCKS).map("CAST({} AS TIMESTAMP)".format)),
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from("+-"), TIME_STEPS),
            st.builds("date_trunc('{}', {})".format, UNITS, inner),
            st.builds("timestampadd({}, {}, {})".format, UNITS, SMALL, inner),
            st.builds("dateadd({}, {}, {})".format, UNITS, SMALL, dates(DATE_CLOCKS)),
        ),
        max_leaves=3,
    )


ROW_DATES = st.sampled_from(["d", "d + n", "d + INTERVAL 1 MONTH", "to_date(ts)", "add_months(d, 1)", "last_day(d)"])
ROW_TIMES = st.sampled_from(["ts", "ts + INTERVAL 1 MONTH", "ts - INTERVAL 36 HOURS", "CAST(d AS TIMESTAMP)", "z"])
ROWS = st.one_of(ROW_DATES, ROW_TIMES, st.just("s"))
OPERATORS = st.sampled_from(["<", "<=", ">", ">=", "=", "=="])


def compare(left: st.SearchStrategy[str], right: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{} {} {}".format, left, OPERATORS, right),
        st.builds("{} {} {}".format, right, OPERATORS, left),
    )


DIFFERENCES = st.one_of(
    compare(st.builds("datediff({}, {})".format, dates(DATE_CLOCKS), ROWS), st.one_of(SMALL.map(str), st.just("n"))),
    compare(st.builds("datediff({}, {})".format, ROWS, times(TIME_CLOCKS)), st.one_of(SMALL.map(str), st.just("n"))),
    compare(st.builds("timestampdiff({}, {}, {})".format, UNITS, ROWS, times(TIME_CLOCKS)), SMALL.map(str)),
    compare(st.builds("timestampdiff({}, {}, {})".format, UNITS, dates(DATE_CLOCKS), ROW_DATES), SMALL.map(str)),
    compare(st.builds("datediff({}, {}, {})".format, UNITS, ROW_DATES, dates(DATE_CLOCKS)), SMALL.map(str)),
    compare(st.builds("({} - d)".format, dates(DATE_CLOCKS)), st.builds("INTERVAL '{}' DAY".format, SMALL)),
    compare(st.builds("(d - {})".format, dates(DATE_CLOCKS)), st.builds("INTERVAL '{}' HOUR".format, SMALL)),
    compare(st.builds("({} - ts)".format, times(TIME_CLOCKS)), st.builds("INTERVAL '{}' HOUR".format, SMALL)),
    compare(st.builds("(ts - {})".format, times(TIME_CLOCKS)), st.builds("INTERVAL '{}' DAY".format, SMALL)),
    compare(st.just("unix_timestamp() - e"), st.integers(-90000, 90000).map(str)),
    compare(st.just("e - unix_timestamp()"), st.one_of(st.just("n"), st.just("3600"))),
    compare(
        st.sampled_from(["unix_seconds(now())", "unix_timestamp(current_date())", "unix_timestamp()"]), st.just("e")
    ),
    compare(st.just("unix_date(current_date())"), st.just("unix_date(d) + n")),
    compare(
        st.builds("year({})".format, st.one_of(dates(DATE_CLOCKS), times(TIME_CLOCKS))),
        st.sampled_from(["year(d)", "2024"]),
    ),
    compare(st.just("localtimestamp()"), st.sampled_from(["z", "ts", "d"])),
)
ATOMS = st.one_of(
    compare(dates(DATE_CLOCKS), ROWS),
    compare(times(TIME_CLOCKS), ROWS),
    DIFFERENCES,
    st.builds("{} BETWEEN {} AND {}".format, dates(DATE_CLOCKS), ROWS, ROWS),
    st.builds("{} BETWEEN {} AND {}".format, ROWS, dates(DATE_CLOCKS), times(TIME_CLOCKS)),
    st.builds("{} NOT BETWEEN {} AND {}".format, times(TIME_CLOCKS), ROWS, ROWS),
    st.builds("{} IN ({})".format, ROWS, dates(DATE_CLOCKS)),
)
FREE = st.sampled_from(["n > 5", "s IS NULL", "d IS NOT NULL", "ts < TIMESTAMP'2024-03-31 00:00:00'", "NOT n = 30"])
PREDICATES = st.recursive(
    st.one_of(ATOMS, ATOMS, ATOMS, FREE),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=4,
)
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Asia/Beirut", "Australia/Lord_Howe"]


@settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_bounds_agree_with_the_predicate(session: Any, data: st.DataObject) -> None:
    zone = data.draw(st.sampled_from(ZONES))
    predicates = data.draw(st.lists(PREDICATES, min_size=50, max_size=50))
    assert check(session, zone, predicates).wrong == []


FIXTURE = Path(__file__).parents[2] / "tests" / "query" / "fixtures" / "clock_bounds.txt"


def test_golden_pairs_agree_with_the_predicate(session: Any) -> None:
    """Every solved predicate of the fixture whose columns exist here, in zones with and without summer time."""
    lines = FIXTURE.read_text(encoding="utf-8").splitlines()
    predicates = [line for line in lines if line.strip() and not line.startswith((" ", "#", "zone:"))]
    # the clock in a plain 'today' is found by its neighbour's type, which at_column does not know
    known = [p for p in predicates if not re.search(r"\bx\b|payload|= 'today'", p)]
    for zone in ("UTC", "America/New_York"):
        checked = check(session, zone, known)
        assert checked.wrong == [] and checked.solved > 20


SOURCES = {
    "v_orders": "SELECT id, ts, d, n FROM rows_at_awkward_times",
    "v_items": "SELECT id AS oid, d AS added FROM rows_at_awkward_times WHERE id % 2 = 0",
}
SCHEMAS = {
    "v_orders": {"id": "int", "ts": "timestamp", "d": "date", "n": "int"},
    "v_items": {"oid": "int", "added": "date"},
}
ZONE = "America/New_York"
QUERIES = (
    "select id, n -- kept\nfrom v_orders o where n > 1 and ts >= current_date() - 30 /* é */ and d <= current_date",
    "select * from v_orders where (d > current_date() - interval 1 month or n = 30) and id > 2",
    "with src as (select * from v_orders where d > current_date() - 60), f as (select src.*, i.added from src left "
    "join v_items i on i.oid = src.id), fin as (select id, ts, added from f where ts <= now()) select * from fin",
    "select x.id, i.* from (select id, d from v_orders where d > current_date()) x join v_items i on x.id = i.oid "
    "and i.added < add_months(current_date(), 2)",
    "select id, explode(array(1, 2)) as k from v_orders where datediff(current_date(), d) between 0 and n",
)
GROUPED = "select d, count(*) as c from v_orders where d > current_date() - 30 group by d having count(*) > 0"


@pytest.fixture(scope="module")
def sources(session: Any) -> Any:
    prepare(session, ZONE)
    for name, body in SOURCES.items():
        session.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {body}")
    return session


@pytest.mark.parametrize("sql", QUERIES)
def test_unclocked_rows_within_bounds_are_the_rows_of_the_query(sources: Any, sql: str) -> None:
    split = split_clock(sql, SCHEMAS, ZONE)
    assert split.pullable and split.unclocked_sql, split.reason
    columns = sources.sql(sql).columns
    sources.sql(f"CREATE OR REPLACE TEMP VIEW windows AS {split.unclocked_sql}")
    assert [c for c in sources.table("windows").columns if not c.startswith("__mv")] == columns
    assert dict(sources.table("windows").dtypes)["__mv_valid_to"] == "timestamp"
    parts = []
    for text in INSTANTS[::2]:
        instant = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
        literal, pinned = timestamp_literal(instant, ZONE), pin(sql, Pins(instant, ZONE)).sql
        within = f"coalesce(__mv_valid_from <= {literal}, true) AND coalesce({literal} < __mv_valid_to, true)"
        mine = f"SELECT {', '.join(columns)} FROM windows WHERE {within}"
        parts += [f"(({mine}) EXCEPT ALL ({pinned}\n))", f"(({pinned}\n) EXCEPT ALL ({mine}))"]
    assert sources.sql(" UNION ALL ".join(parts)).collect() == []


@pytest.mark.parametrize("sql", [QUERIES[0], QUERIES[2], GROUPED])
def test_nothing_changes_before_the_next_change(sources: Any, sql: str) -> None:
    statement = next_change_sql(split_clock(sql, SCHEMAS, ZONE), "current_timestamp()")
    assert statement is not None

    def rows_at(instant: datetime) -> Counter[Any]:
        return Counter(sources.sql(pin(sql, Pins(instant, ZONE)).sql).collect())

    instant = datetime(2024, 1, 1, tzinfo=timezone.utc)
    changes = 0
    for _ in range(4):
        pinned = pin(statement, Pins(instant, ZONE)).sql
        found = sources.sql(f"SELECT unix_micros(next_change) FROM ({pinned})").first()[0]
        following = datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=found)
        assert following > instant
        before = rows_at(following - timedelta(microseconds=1))
        assert before == rows_at(instant)
        changes += before != rows_at(following)
        instant = following
    assert changes > 0
