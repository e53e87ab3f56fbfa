"""Small source tables with NULLs, repeats and skewed keys, and what happens to them: drawn from a seed, printed as SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from random import Random
from typing import Any

Row = tuple[Any, ...]
Tables = dict[str, list[Row]]

SCHEMAS: Mapping[str, Mapping[str, str]] = {
    "t": {"id": "int", "k": "int", "x": "int", "s": "string", "ts": "timestamp", "d": "date"},
    "u": {"k": "int", "y": "int", "w": "string"},
    "r": {"y": "int", "flag": "int", "region": "string"},
    "e": {"k": "int", "z": "int", "s": "string", "ts": "timestamp"},
}
"""`t.id`, `u.k` and `r.y` are unique and never NULL. `e` has repeated rows and no key. All else may be NULL."""
UNIQUE = {"t": "id", "u": "k", "r": "y"}
START = datetime(2026, 1, 14, 0, 30, tzinfo=timezone.utc)  # a Wednesday
HOURS = (0, 1, 3, 12, 24, 48, 48)
"""Hours after START at which models run."""


@dataclass(frozen=True)
class Op:
    """One row that comes (`new`), goes (`old`) or changes (both)."""

    table: str
    old: Row | None = None
    new: Row | None = None

    def __str__(self) -> str:
        names = list(SCHEMAS[self.table])
        if self.old is None:
            return f"insert into {self.table} values {_values(self.new or ())}"
        where = same_row(self.table, self.old)
        if self.new is None:
            return f"delete from {self.table} where {where} -- one copy"
        sets = [f"{n} = {literal(v)}" for n, v, o in zip(names, self.new, self.old, strict=True) if v != o]
        return f"update {self.table} set {', '.join(sets) or 'nothing'} where {where} -- one copy"


@dataclass(frozen=True)
class Step:
    """What happens between two runs, and the hour of the second one. `compared`: tables without a change feed."""

    ops: tuple[Op, ...]
    hour: int
    compared: frozenset[str] = frozenset()


@dataclass(frozen=True)
class History:
    rows: Mapping[str, tuple[Row, ...]]
    hour: int
    steps: tuple[Step, ...]
    large: bool = False  # the tables are said to be large

    def __str__(self) -> str:
        lines = [
            f"insert into {name} values {', '.join(_values(row) for row in rows)};"
            for name, rows in self.rows.items()
            if rows
        ]
        lines.append(f"-- run at {instant(self.hour)}")
        for step in self.steps:
            lines += [f"{op};" for op in step.ops]
            feedless = f", without a change feed: {', '.join(sorted(step.compared))}" if step.compared else ""
            lines.append(f"-- run at {instant(step.hour)}{feedless}")
        return "\n".join(lines)


def instant(hour: int) -> datetime:
    return START + timedelta(hours=hour)


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMP'{value}'"
    if isinstance(value, date):
        return f"DATE'{value}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def same_row(table: str, row: Row) -> str:
    """The condition that holds for copies of the row only."""
    return " and ".join(f"{n} <=> {literal(v)}" for n, v in zip(SCHEMAS[table], row, strict=True))


def _values(row: Iterable[Any]) -> str:
    return f"({', '.join(map(literal, row))})"


def _number(random: Random) -> int | None:
    return random.choice((None, 0, 1, 1, 1, 2, 2, 3))


def _text(random: Random) -> str | None:
    return random.choice((None, "a", "a", "b", "b,c", ""))


def _time(random: Random) -> datetime | None:
    if random.random() < 0.1:
        return None
    # often an edge of a window: a whole number of hours or days from a run
    hours = random.choice((-48, -25, -24, -24, -12, -10, -3, -2, -1, 0, 0, 1, 3, 12, 24, 26, 30, 40, 47))
    return (START + timedelta(hours=hours, minutes=random.choice((0, 0, 0, 30, -30)))).replace(tzinfo=None)


def _day(random: Random) -> date | None:
    return None if random.random() < 0.1 else (START + timedelta(days=random.randint(-4, 3))).date()


_CELLS = {"int": _number, "string": _text, "timestamp": _time, "date": _day}


def draw_row(random: Random, table: str, key: int) -> Row:
    unique = UNIQUE.get(table)
    return tuple(key if n == unique else _CELLS[t](random) for n, t in SCHEMAS[table].items())


@dataclass(frozen=True)
class Menu:
    """What can happen in the histories of one model: a few kinds of change and a few instants, so that its plans serve many
    histories. `kinds`: the tables that change, the tables that only gain rows, those without a feed, and whether the clock
    moves on."""

    kinds: tuple[tuple[frozenset[str], frozenset[str], frozenset[str], bool], ...]
    hours: tuple[int, ...]
    large: bool = False


def draw_menu(random: Random, tables: Iterable[str], clock: bool, kinds: int = 3) -> Menu:
    used = [name for name in SCHEMAS if name in set(tables)]
    found = []
    for number in range(kinds):
        moves = clock and (number == 0 or random.random() < 0.5)
        count = number and random.choice((1, 1, 1, 2, 3))  # the clock alone first
        if not clock:
            count = random.choice((1, 1, 1, 2, 3))
        changed = frozenset(random.sample(used, min(count, len(used))))
        gains = frozenset(name for name in sorted(changed) if random.random() < 0.25)
        compared = frozenset(name for name in sorted(changed) if random.random() < 0.08)
        found.append((changed, gains, compared, moves))
    hours = sorted(random.sample(HOURS, random.choice((2, 2, 3)))) if clock else [0]
    if clock and random.random() < 0.1:
        hours = hours[::-1]  # the clock goes back
    return Menu(tuple(found), tuple(hours), random.random() < 0.15)


def draw_history(random: Random, tables: Iterable[str], menu: Menu, steps: int) -> History:
    used = [name for name in SCHEMAS if name in set(tables)]
    rows: Tables = {}
    for name in used:
        rows[name] = [draw_row(random, name, key) for key in range(random.choice((0, 2, 3, 4, 5, 6)))]
        if name not in UNIQUE and rows[name]:
            rows[name] += random.choices(rows[name], k=random.randint(0, 2))
    first = {name: tuple(found) for name, found in rows.items()}
    at, done = 0, []
    for _ in range(steps):
        changed, gains, compared, moves = random.choice(menu.kinds)
        ops: list[Op] = []
        for name in sorted(changed):
            ops += _change(random, name, rows, name in gains)
            if random.random() < 0.5:
                ops += _change(random, name, rows, name in gains)
        at = min(at + moves, len(menu.hours) - 1)
        done.append(Step(tuple(ops), menu.hours[at], compared))
    return History(first, menu.hours[0], tuple(done), menu.large)


def _change(random: Random, table: str, rows: Tables, gains: bool) -> list[Op]:
    here = rows[table]
    kind = random.choice(("insert", "insert", "insert", "update", "update", "delete", "delete", "key", "same", "swap"))
    if kind == "insert" or gains or not here:
        taken = {row[0] for row in here}
        free = [k for k in range(10) if k not in taken] if table in UNIQUE else [0]
        made = [draw_row(random, table, key) for key in random.sample(free, min(len(free), random.choice((1, 1, 2))))]
        if table not in UNIQUE and random.random() < 0.5:  # copies
            made = [random.choice([*here, *made])] * random.choice((1, 2))
        here += made
        return [Op(table, None, row) for row in made]
    found = []
    for row in random.sample(here, min(len(here), random.choice((1, 1, 1, 2)))):
        if row not in here:
            continue
        at = here.index(row)
        if kind == "delete":
            for copy in [r for r in here if r == row] if random.random() < 0.5 else [row]:
                here.remove(copy)
                found.append(Op(table, copy))
            continue
        if kind == "same":  # an overwrite: the feed tells a row that stays
            found.append(Op(table, row, row))
            continue
        new = draw_row(random, table, row[0])
        if kind == "key" and table in UNIQUE:
            free = [k for k in range(20) if k not in {r[0] for r in here}]
            new = (random.choice(free), *row[1:])
        elif kind == "update":  # one column
            column = random.randrange(1 if table in UNIQUE else 0, len(row))
            new = (*row[:column], new[column], *row[column + 1 :])
        elif kind == "swap" and len(here) > 1:  # two rows change places: the keys stay, what they carry does not
            other = random.choice(here)
            new = (row[0], *other[1:])
        if kind == "key" and table in UNIQUE and random.random() < 0.3:  # by two commits
            here[at] = new
            found += [Op(table, row), Op(table, None, new)]
            continue
        here[at] = new
        found.append(Op(table, row, new))
    return found


def applied(rows: Mapping[str, Iterable[Row]], ops: Iterable[Op]) -> Tables | None:
    """The tables after the changes; None where a row that should go is not there, or a unique column is not unique."""
    after = {name: list(found) for name, found in rows.items()}
    for op in ops:
        here = after.setdefault(op.table, [])
        if op.old is not None:
            if op.old not in here:
                return None
            here.remove(op.old)
        if op.new is not None:
            here.append(op.new)
    for name in UNIQUE.keys() & after.keys():
        if any(n > 1 for n in Counter(row[0] for row in after[name]).values()):
            return None
    return after


def feed(table: str, ops: Iterable[Op]) -> list[tuple[Any, ...]]:
    """The rows of the change data feed: values, then the kind of change."""
    found = []
    for op in ops:
        if op.table != table:
            continue
        kinds = ("update_preimage", "update_postimage") if op.old and op.new else ("delete", "insert")
        found += [(*row, kind) for row, kind in zip((op.old, op.new), kinds, strict=True) if row is not None]
    return found
