"""Queries from a grammar: nested FROM items, CTEs, joins of every kind, groups, windows, set operations, subqueries, stars.

The grammar knows a column or two that identify a row of what it makes, so that most queries have a unique key that holds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from grammar_expressions import (
    DATE,
    INT,
    TEXT,
    TIME,
    TYPES,
    Gives,
    aggregate,
    clock_value,
    literal,
    value,
)
from grammar_sources import Made, Scoped, Sources


@dataclass(frozen=True)
class Drawn:
    sql: str
    key: tuple[str, ...]


_FIRST_ROWS = re.compile(r" order by (?:(?! order by ).)* limit \d+$")


def all_rows(sql: str) -> str:
    """The query without the LIMIT that `_top` wrote: all rows, of which the result are the first ones. The order names the key."""
    return _FIRST_ROWS.sub("", sql)


class Grammar(Sources):
    """One query."""

    def draw(self) -> Drawn:
        made = self.query(self.depth, top=True)
        if self.dice.chance(0.1):
            made = self._regrouped(made)
        if self.dice.chance(0.1):
            made = self._top(made)
        head = ", ".join(f"{name} as ({cte.sql})" for name, cte in self.ctes)
        return Drawn(f"with {head} {made.sql}" if head else made.sql, tuple(_bare(k) for k in made.key))

    def _regrouped(self, made: Made) -> Made:
        """Groups of what a query gives, by any of its columns."""
        dice, alias = self.dice, self.dice.alias()
        columns = list(self._columns(alias, made))
        by = dice.random.choice(columns)
        key, items, gives = dice.name(), [], []
        for _ in range(dice.random.choice((1, 2, 2))):
            text, type_ = aggregate(dice, columns)
            gives.append(Gives(dice.name(), type_))
            items.append(f"{text} as {gives[-1].name}")
        shown = f"coalesce({by.text}, {_FILL[by.type]})"
        sql = f"select {shown} as {key}, {', '.join(items)} from ({made.sql}) {alias} group by {shown}"
        return Made(sql, (Gives(key, by.type, False), *gives), (key,))

    def _top(self, made: Made) -> Made:
        """The first rows in an order that the key makes total."""
        dice = self.dice
        others = [g.name for g in made.gives if g.name not in made.key]
        order = [*dice.random.sample(others, min(len(others), dice.random.choice((0, 1, 1, 2)))), *made.key]
        if dice.chance(0.2):
            dice.random.shuffle(order)
        names = [g.name for g in made.gives]
        at = dice.chance(0.15) and made.sql.startswith("select") and "*" not in made.sql
        by = [
            f"{names.index(name) + 1 if at else name}{dice.one('', '', ' desc', ' nulls last', ' desc nulls first')}"
            for name in order
        ]
        return Made(
            f"{made.sql} order by {', '.join(by)} limit {dice.one('1', '2', '3', '4', '5', '8', '15')}",
            made.gives,
            made.key,
        )

    # --- SELECTs

    def query(self, depth: int, top: bool = False) -> Made:
        dice = self.dice
        kind = dice.random.choices(
            ("plain", "group", "distinct", "window", "set", "pivot", "star"), (40, 20, 5, 14, 8, 1.5, 9)
        )[0]
        made: Made = getattr(self, f"_{kind}")(depth, top)
        if not made.key and top:
            made = self._keyed(made)
        return made

    def _key_items(self, scope: Scoped, top: bool) -> tuple[list[str], list[Gives]]:
        """Select items of the key's columns; NULLs become a value on top."""
        dice, items, gives = self.dice, [], []
        columns = {c.text: c for c in scope.columns}
        for key in scope.key:
            column = columns.get(key)
            if column is None:
                return [], []
            name = (
                dice.name()
                if dice.chance(0.5) or key.split(".", 1)[1] in {g.name for g in gives}
                else key.split(".", 1)[1]
            )
            fill = column.nullable and top
            text = f"coalesce({key}, {_FILL[column.type]})" if fill else key
            items.append(text if not fill and text.split(".", 1)[1] == name else f"{text} as {name}")
            gives.append(Gives(name, column.type, column.nullable and not fill))
        return items, gives

    def _values(self, scope: Scoped, taken: set[str]) -> tuple[list[str], list[Gives]]:
        dice, items, gives = self.dice, [], []
        for _ in range(dice.random.choice((1, 1, 2, 2, 3))):
            type_ = dice.one(*TYPES)
            if dice.chance(dice.clock * 0.12) and (text := clock_value(dice, list(scope.columns))):
                type_ = INT
            elif dice.chance(0.03):
                type_, text = INT, self.scalar(scope)
            else:
                text = value(dice, list(scope.columns), type_)
            plain = text.split(".", 1)[1] if text in {c.text for c in scope.columns} else ""
            if plain and plain not in taken and plain not in {g.name for g in gives} and dice.chance(0.6):
                items.append(text)
                gives.append(Gives(plain, type_))
            else:
                name = dice.name()
                items.append(f"{text} as {name}")
                gives.append(Gives(name, type_))
        return items, gives

    def scalar(self, scope: Scoped) -> str:
        dice = self.dice
        table, alias = self.table(), dice.alias()
        ints = [c.text for c in scope.columns if c.type == INT] or ["1"]
        mine = dice.random.choice([c.text for c in self._columns(alias, table) if c.type == INT])
        return f"(select {dice.one('max', 'count', 'sum')}({mine}) from {table.sql} {alias} where {mine} {dice.one('=', '=', '<=>')} {dice.random.choice(ints)})"

    def _plain(self, depth: int, top: bool) -> Made:
        scope = self.from_(depth)
        keys, key_gives = self._key_items(scope, top)
        items, gives = self._values(scope, {g.name for g in key_gives})
        if scope.key and not keys and top:
            return self._group(depth, top)
        where = self.where(scope)
        sql = f"select {', '.join([*keys, *items])} from {scope.text}{_clause('where', where)}"
        return Made(sql, (*key_gives, *gives), tuple(g.name for g in key_gives))

    def _star(self, depth: int, top: bool) -> Made:
        """Stars, alone or among arguments."""
        dice = self.dice
        scope = self.from_(depth if dice.chance(0.5) else 0)
        columns = {c.text: c for c in scope.columns}
        alias, gives = dice.random.choice(scope.by_alias)
        nullable = any(columns[k].nullable for k in scope.key if k in columns)
        if (
            not scope.plain
            or any(f"{a}.{g.name}" not in columns for a, gs in scope.by_alias for g in gs)
            or (top and nullable)
        ):
            return self._plain(depth, top)
        where = _clause("where", self.where(scope))
        key = tuple(k.split(".", 1)[1] for k in scope.key)
        everything = tuple(g for _, gs in scope.by_alias for g in gs)
        kind = dice.random.randrange(5)
        if kind == 0 or " explode(" in scope.text:
            return (
                Made(f"select * from {scope.text}{where}", everything, key)
                if " explode(" not in scope.text
                else self._plain(depth, top)
            )
        name = dice.name()
        if kind == 1:
            others = [g for g in everything if g.name not in key]
            if others:
                out = dice.random.choice(others)
                return Made(
                    f"select * except ({out.name}) from {scope.text}{where}",
                    tuple(g for g in everything if g != out),
                    key,
                )
        star = dice.one("*", f"{alias}.*")
        text = dice.one(
            "hash({s})",
            "md5(to_json(struct({s})))",
            "sha2(to_json(struct({s})), 256)",
            "xxhash64({s})",
            "to_json(struct({s}))",
        )
        text = text.format(s=star)
        type_ = INT if "hash" in text else TEXT
        if kind == 2 and top and type_ == TEXT and len(scope.by_alias) == 1 and not scope.key:
            return Made(
                f"select distinct {text} as {name}, {alias}.* from {scope.text}{where}",
                (Gives(name, type_, False), *gives),
                (name,),
            )
        return Made(
            f"select *, {text} as {name} from {scope.text}{where}", (*everything, Gives(name, type_, False)), key
        )

    def _group(self, depth: int, top: bool) -> Made:
        dice = self.dice
        scope = self.from_(depth)
        if not scope.columns:  # a NATURAL join may leave none that has a name
            scope = self.from_(0)
        columns = list(scope.columns)
        items, gives, by = [], [], []
        for _ in range(dice.random.choice((1, 1, 1, 2))):
            type_ = dice.one(INT, INT, TEXT, DATE) if dice.chance(0.9) else TIME
            text = value(dice, columns, type_, 1 if dice.chance(0.4) else 0)
            if text in by:
                continue
            if not any(c.text in text for c in columns):
                text = dice.random.choice(columns).text
                type_ = next(c.type for c in columns if c.text == text)
                if text in by:
                    continue
            name = dice.name()
            fill = top and dice.chance(0.6)
            shown = f"coalesce({text}, {_FILL[type_]})" if fill else text
            items.append(f"{shown} as {name}")
            gives.append(Gives(name, type_, not fill))
            by.append(text if not fill or dice.chance(0.5) else shown)
        where = self.where(scope)
        if top:
            where += [f"{text} is not null" for text, g in zip(by, gives, strict=True) if g.nullable]
        keys = tuple(g.name for g in gives)
        for _ in range(dice.random.choice((1, 1, 2, 3))):
            text, type_ = aggregate(dice, columns)
            name = dice.name()
            items.append(f"{text} as {name}")
            gives.append(Gives(name, type_))
        group = dice.random.randrange(6)
        if group == 0 and all(item.startswith(f"{b} as") for item, b in zip(items, by, strict=False)):
            clause = " group by all"
        elif group == 1 and all(item.startswith(f"{b} as") for item, b in zip(items, by, strict=False)):
            clause = f" group by {', '.join(str(k + 1) for k in range(len(by)))}"
        else:
            clause = f" group by {', '.join(by)}"
        having = ""
        if dice.chance(0.2):
            text, type_ = aggregate(dice, columns)
            having = f" having {text} {dice.one('>', '<=', '<>')} {literal(dice, type_)}"
            if dice.chance(0.2):
                having += f" or {text} is null"
        elif dice.chance(dice.clock * 0.3) and (clock := self._having_clock(scope)):
            having = f" having {clock}"
        if dice.chance(0.3):
            order = list(range(len(items)))
            dice.random.shuffle(order)
            if "group by 1" not in clause:
                items, gives = [items[k] for k in order], [gives[k] for k in order]
        sql = f"select {', '.join(items)} from {scope.text}{_clause('where', where)}{clause}{having}"
        return Made(sql, tuple(gives), keys)

    def _having_clock(self, scope: Scoped) -> str | None:
        times = [c.text for c in scope.columns if c.type in (TIME, DATE)]
        if not times:
            return None
        column = self.dice.random.choice(times)
        return self.dice.one("max({c}) <= now()", "min({c}) > now() - interval 1 day").format(c=column)

    def _distinct(self, depth: int, top: bool) -> Made:
        scope = self.from_(depth)
        items, gives = self._values(scope, set())
        if top:
            items, gives = self._filled(items, gives)
        sql = f"select distinct {', '.join(items)} from {scope.text}{_clause('where', self.where(scope))}"
        return Made(sql, tuple(gives), tuple(g.name for g in gives))

    def _filled(self, items: list[str], gives: list[Gives]) -> tuple[list[str], list[Gives]]:
        """Without NULLs: they may not stand in a key."""
        texts = [
            (i.rsplit(" as ", 1) if " as " in i and i.endswith(g.name) else [i, g.name])[0]
            for i, g in zip(items, gives, strict=True)
        ]
        shown = [f"coalesce({t}, {_FILL[g.type]}) as {g.name}" for t, g in zip(texts, gives, strict=True)]
        return shown, [Gives(g.name, g.type, False) for g in gives]

    def _window(self, depth: int, top: bool) -> Made:
        dice = self.dice
        scope = self.from_(depth)
        keys, key_gives = self._key_items(scope, top)
        if not keys:
            return self._group(depth, top)
        items, gives = self._values(scope, {g.name for g in key_gives})
        columns = list(scope.columns)
        total = ", ".join(scope.key)
        parts = [dice.random.choice(columns).text for _ in range(dice.random.choice((1, 1, 2)))]
        partition = f"partition by {', '.join(dict.fromkeys(parts))}" if dice.chance(0.95) else ""
        order = f"order by {value(dice, columns, INT, 1)}{dice.one('', ' desc', ' nulls last')}, {total}"
        rows = dice.one("", "", " rows between 1 preceding and current row")
        name = dice.name()
        ints = [c.text for c in columns if c.type == INT] or ["1"]
        over = dice.one(
            f"row_number() over ({partition} {order})", f"row_number() over ({partition} {order})",
            f"rank() over ({partition} order by {dice.random.choice(columns).text})",
            f"sum({dice.random.choice(ints)}) over ({partition})", f"count(*) over ({partition})",
            f"max({dice.random.choice(ints)}) over ({partition} {order}{rows})", f"lag({dice.random.choice(ints)}) over ({partition} {order})",
            f"sum({dice.random.choice(ints)}) over w",
        )  # fmt: skip
        named = f" window w as ({partition} {order})" if over.endswith("over w") else ""
        where = _clause("where", self.where(scope))
        if dice.chance(0.25) and not named:
            qualify = f" qualify {over} {dice.one('= 1', '<= 2', '> 1')}"
            return Made(
                f"select {', '.join([*keys, *items])} from {scope.text}{where}{qualify}",
                (*key_gives, *gives),
                tuple(g.name for g in key_gives),
            )
        items.append(f"{over} as {name}")
        if dice.chance(0.2):
            second = dice.name()
            partition2 = partition if dice.chance(0.6) else f"partition by {dice.random.choice(columns).text}"
            items.append(f"count(*) over ({partition2}) as {second}")
            gives.append(Gives(second, INT))
            items[-1], items[-2] = items[-2], items[-1]
        sql = f"select {', '.join([*keys, *items])} from {scope.text}{where}{named}"
        made = Made(sql, (*key_gives, *gives, Gives(name, INT)), tuple(g.name for g in key_gives))
        if dice.chance(0.4):  # a filter over the window
            shown = [g.name for g in made.gives if g.name != name or dice.chance(0.5)]
            sql = f"select {', '.join(shown)} from ({sql}){dice.one('', ' w')} where {name} {dice.one('= 1', '<= 2', '> 1')}"
            made = Made(sql, tuple(g for g in made.gives if g.name in shown), made.key)
        return made

    def _set(self, depth: int, top: bool) -> Made:
        dice = self.dice
        word = dice.one(
            "union all",
            "union all",
            "union",
            "except",
            "intersect",
            "union all by name" if dice.chance(0.6) else "union",
        )
        types = [dice.one(INT, INT, INT, TEXT, TEXT, DATE, TIME) for _ in range(dice.random.choice((1, 2, 2)))]
        names = [dice.name() for _ in types]
        tag, tagged = dice.name(), word.startswith("union all")
        arms, keyed = [], True
        unique = dice.name()
        for number in range(2 if dice.chance(0.8) else 3):
            scope = self.from_(depth - 1)
            # a column of dates among timestamps is one of timestamps
            of_arm = [DATE if t == TIME and dice.chance(0.5) else t for t in types]
            items = [value(dice, list(scope.columns), t, 1) for t in of_arm]
            where = self.where(scope)
            if tagged:
                ints = (
                    scope.key
                    and len(scope.key) == 1
                    and next((c for c in scope.columns if c.text == scope.key[0]), None)
                )
                keyed = keyed and bool(ints) and ints.type == INT and not ints.nullable
                own = ints.text if ints and ints.type == INT else "0"
                items = [str(number), own, *items]
            elif top:
                items = [f"coalesce({i}, {_FILL[t]})" for i, t in zip(items, of_arm, strict=True)]
            all_names = [tag, unique, *names] if tagged else names
            listed = [f"{i} as {n}" for i, n in zip(items, all_names, strict=True)]
            if word.endswith("by name") and number:
                dice.random.shuffle(listed)
            arms.append(f"select {', '.join(listed)} from {scope.text}{_clause('where', where)}")
        gives = [Gives(n, t) for n, t in zip(names, types, strict=True)]
        if tagged:
            gives = [Gives(tag, INT, False), Gives(unique, INT, False), *gives]
            return Made(f" {word} ".join(arms), tuple(gives), (tag, unique) if keyed else ())
        return Made(f" {word} ".join(arms), tuple(Gives(g.name, g.type, not top) for g in gives), tuple(names))

    def _pivot(self, depth: int, top: bool) -> Made:
        dice = self.dice
        scope = self.from_(0)
        columns = list(scope.columns)
        name = dice.name()
        group = value(dice, columns, INT, 0)
        inner = f"select coalesce({group}, -1) as {name}, {value(dice, columns, TEXT, 0)} as pv, {value(dice, columns, INT, 0)} as px from {scope.text}{_clause('where', self.where(scope))}"
        first, second = f"p{dice.names}", f"o{dice.names}"
        sql = f"select * from ({inner}) pivot (sum(px) for pv in ('a' as {first}, 'b' as {second}))"
        return Made(sql, (Gives(name, INT, False), Gives(first, INT), Gives(second, INT)), (name,))

    def _keyed(self, made: Made) -> Made:
        """A query without a known key, made distinct."""
        alias = self.dice.alias()
        items = [f"coalesce({alias}.{g.name}, {_FILL[g.type]}) as {g.name}" for g in made.gives]
        return Made(
            f"select distinct {', '.join(items)} from ({made.sql}) {alias}",
            made.gives,
            tuple(g.name for g in made.gives),
        )


_FILL = {INT: "-1", TEXT: "'none'", TIME: "timestamp'1999-01-01 00:00:00'", DATE: "date'1999-01-01'"}


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _clause(word: str, conditions: list[str]) -> str:
    return f" {word} {' and '.join(conditions)}" if conditions else ""


def draw_query(seed: int, draws: float = 0.0, ai: float = 0.0) -> Drawn:
    """The query of a seed. `draws`, `ai`: how often a value is a draw, or an AI's answer."""
    random = Random(seed)
    clock = random.choice((0.0, 0.0, 0.35, 0.6))
    return Grammar(random, clock, random.choice((0, 1, 1, 2, 2, 3)), draws, ai).draw()
