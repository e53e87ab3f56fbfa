"""Changes of the source tables, drawn at random and written as the statements a user would run."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

FEED = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
#: means something to Iceberg alone: of the rows that change, other files say so
MERGE_ON_READ = FEED.replace(")", ", 'write.update.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read')")
#: `e` has no feed of changes: its versions are compared
CREATE = {
    "t": f"(id int, k int, x double, s string, ts timestamp, d date) {FEED}",
    "u": f"(k int, y int, w string) {MERGE_ON_READ}",
    "e": "(k int, z int, amt decimal(8, 2)) using delta",
}
HOURS = st.integers(-60, 40)


def _number(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["null", "0", "1", "1", "2", "2", "3"]))


def _double(draw: st.DrawFn) -> str:
    # quarters: sums do not depend on the order of addition
    return draw(st.sampled_from(["null", "0.25D", "1.5D", "2.75D", "4.0D", "9.25D", "-1.5D", "-0.0D"]))


def _text(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["null", "'a'", "'b'", "''", "'O''x'"]))


def _time(draw: st.DrawFn) -> str:
    hours = draw(HOURS)
    return "null" if hours == 13 else f"timestamp'2026-01-10 00:00:00' + interval '{hours}' hour"


def _row(draw: st.DrawFn, table: str, key: int) -> str:
    if table == "t":
        day = draw(st.sampled_from(["null", *(f"date'2026-01-{n:02}'" for n in range(7, 13))]))
        return f"({key}, {_number(draw)}, {_double(draw)}, {_text(draw)}, {_time(draw)}, {day})"
    if table == "u":
        return f"({key}, {_number(draw)}, {draw(st.sampled_from(['null', repr('p'), repr('q')]))})"
    return f"({_number(draw)}, {_number(draw)}, {draw(st.sampled_from(['null', '1.00', '2.50']))})"


def rows(draw: st.DrawFn, table: str, keys: list[int]) -> str:
    return ", ".join(_row(draw, table, key) for key in keys)


def first_rows(draw: st.DrawFn, table: str) -> str:
    count = draw(st.integers(3, 9))
    return f"insert into {{schema}}.{table} values {rows(draw, table, list(range(count)))}"


def change(draw: st.DrawFn, table: str, number: int) -> str:
    """One statement on one table. `number` is that of the change: new keys are made from it."""
    new = [100 * number + k for k in range(draw(st.integers(1, 3)))]
    key = {"t": "id", "u": "k", "e": "coalesce(z, 1)"}[table]
    some = f"{key} % {draw(st.integers(2, 4))} = {draw(st.integers(0, 2))}"
    kind = draw(
        st.sampled_from(
            ["insert", "insert", "insert", "update", "update", "delete", "key", "overwrite", "move", "back"]
        )
    )
    name = f"{{schema}}.{table}"
    if kind == "insert":
        return f"insert into {name} values {rows(draw, table, new)}"
    if kind == "back":  # keys that may have been there before, and were deleted
        if table == "e":
            return f"insert into {name} select * from {name} limit 2"
        low = draw(st.integers(0, 6))
        values = rows(draw, table, [low])
        return f"insert into {name} select * from (values {values}) where col1 not in (select {key} from {name})"
    if kind == "delete":
        return f"delete from {name} where {some}"
    if kind == "key" and table != "e":
        return f"update {name} set {key} = {key} + {100 * number + 50} where {some}"
    if kind == "move" and table == "t":
        return f"update {name} set ts = {_time(draw)} where {some}"
    if kind == "overwrite":
        changed = {
            "t": "id, k, if(id % 5 = 1, 7.5D, x), s, ts, d",
            "u": "k, if(k % 4 = 1, 2, y), w",
            "e": "k, z, if(z = 1, 3.25, amt)",
        }
        return f"insert overwrite {name} select {changed[table]} from {name}"
    column, value = draw(
        st.sampled_from(
            {
                "t": [("x", _double(draw)), ("k", _number(draw)), ("s", _text(draw))],
                "u": [("y", _number(draw)), ("w", "'q'")],
                "e": [("k", _number(draw)), ("z", _number(draw))],
            }[table]
        )
    )
    return f"update {name} set {column} = {value} where {some}"


@dataclass(frozen=True)
class Step:
    """Statements on the sources, then every model runs at the instant."""

    statements: tuple[str, ...]
    as_of: str


@st.composite
def histories(draw: st.DrawFn, length: int) -> tuple[Step, ...]:
    """The first step fills the tables."""
    hour = 0
    steps = [Step(tuple(first_rows(draw, table) for table in CREATE), _instant(hour))]
    for number in range(1, length + 1):
        count = draw(st.sampled_from([0, 1, 1, 2, 2, 3]))
        tables = [draw(st.sampled_from(["t", "t", "t", "u", "u", "e"])) for _ in range(count)]
        statements = tuple(change(draw, table, 10 * number + k) for k, table in enumerate(tables))
        hour += draw(st.sampled_from([0, 0, 1, 3, 12, 24, -2] if count else [1, 5, 24]))
        steps.append(Step(statements, _instant(hour)))
    return tuple(steps)


def _instant(hour: int) -> str:
    day, rest = divmod(hour, 24)
    return f"2026-01-{10 + day:02} {rest:02}:30:00"
