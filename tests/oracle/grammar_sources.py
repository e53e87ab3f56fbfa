"""FROM and WHERE from a grammar: tables, nested queries, CTEs, joins of every kind, lateral views, subqueries."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from grammar_expressions import (
    DATE,
    INT,
    TEXT,
    TIME,
    Col,
    Dice,
    Gives,
    clock_condition,
    condition,
)
from histories import SCHEMAS, UNIQUE


@dataclass(frozen=True)
class Made:
    """A query or table. `key`: names of output columns that identify a row, () where that is not known."""

    sql: str
    gives: tuple[Gives, ...]
    key: tuple[str, ...] = ()
    table: bool = False


@dataclass(frozen=True)
class Scoped:
    """FROM with all its joins: the columns in scope, by alias too, and the key."""

    text: str
    columns: tuple[Col, ...]
    key: tuple[str, ...]
    by_alias: tuple[tuple[str, tuple[Gives, ...]], ...]
    plain: bool = True  # a star gives each name once


class Sources:
    """FROM and WHERE. `depth`: how deep FROM items nest."""

    def __init__(self, random: Random, clock: float = 0.0, depth: int = 2, draws: float = 0.0, ai: float = 0.0) -> None:
        self.dice = Dice(random, clock, draws, ai)
        self.depth = depth
        self.ctes: list[tuple[str, Made]] = []

    # --- FROM items

    def table(self, name: str | None = None) -> Made:
        name = name or self.dice.one("t", "t", "t", "u", "r", "e")
        unique = UNIQUE.get(name)
        gives = tuple(Gives(c, t, c != unique) for c, t in SCHEMAS[name].items())
        return Made(name, gives, (unique,) if unique else (), table=True)

    def item(self, depth: int) -> tuple[str, Made]:
        """Text of a FROM item without an alias."""
        dice = self.dice
        if depth <= 0 or dice.chance(0.45):
            made = self.table()
            return made.sql, made
        if self.ctes and dice.chance(0.3):
            name, made = dice.random.choice(self.ctes)
            return name, made
        made = self.query(depth - 1)
        if dice.chance(0.35):
            name = f"q{len(self.ctes) + 1}"
            self.ctes.append((name, made))
            return name, made
        return f"({made.sql})", made

    def from_(self, depth: int) -> Scoped:
        dice = self.dice
        text, made = self.item(depth)
        alias = dice.alias()
        columns = self._columns(alias, made)
        found = Scoped(
            f"{text} {dice.one('', 'as ')}{alias}",
            columns,
            tuple(f"{alias}.{k}" for k in made.key),
            ((alias, made.gives),),
        )
        joins = dice.random.choice((0, 0, 0, 1, 1, 1, 2, 2, 3)) if depth > 0 else dice.random.choice((0, 0, 1))
        for _ in range(joins):
            found = self.join(found, depth)
        if dice.chance(0.08):
            found = self.lateral_view(found)
        return found

    def _columns(self, alias: str, made: Made, nullable: bool = False) -> tuple[Col, ...]:
        return tuple(Col(f"{alias}.{g.name}", g.type, g.nullable or nullable) for g in made.gives)

    def join(self, left: Scoped, depth: int) -> Scoped:
        dice = self.dice
        text, made = self.item(depth - 1)
        alias = dice.alias()
        kind = dice.one("join", "join", "inner join", "left join", "left join", "left join", "right join", "full join",
                        "left semi join", "left anti join", "left anti join", "cross join")  # fmt: skip
        if dice.chance(0.06) and not kind.startswith("cross"):
            return self.lateral_join(left)
        right = self._columns(alias, made)
        semi = "semi" in kind or "anti" in kind
        names = [g.name for _, gives in left.by_alias for g in gives]
        shared = [g.name for g in made.gives if names.count(g.name) == 1]
        using = shared and not semi and kind != "cross join" and len(left.by_alias) == 1 and dice.chance(0.12)
        many_to_one = False
        if kind == "cross join":
            on = ""
        elif using:
            natural = len(shared) == 1 and dice.chance(0.6)
            column = dice.random.choice(shared)
            many_to_one = made.key == (column,)
            kind, on = (f"natural {kind}", "") if natural else (kind, f" using ({column})")
        else:
            on_text, many_to_one = self._on(left, right, made, alias)
            on = f" on {on_text}"
        outer_right = ("left" in kind and not semi) or "full" in kind
        outer_left = "right" in kind or "full" in kind
        kept = tuple(Col(c.text, c.type, c.nullable or outer_left) for c in left.columns)
        columns = kept if semi else kept + tuple(Col(c.text, c.type, c.nullable or outer_right) for c in right)
        if using:  # which side a column of USING comes from differs by kind: use it by its name alone or not at all
            merged = on[8:-1] if on else shared[0]
            columns = tuple(c for c in columns if not c.text.endswith(f".{merged}"))
        own = tuple(f"{alias}.{k}" for k in made.key)
        if semi or (many_to_one and not outer_left and left.key):
            key = left.key
        elif left.key and own:
            key = (*left.key, *own)
        else:
            key = ()
        if using and any(k.endswith(f".{merged}") for k in key):
            key = ()
        by_alias = left.by_alias if semi else (*left.by_alias, (alias, made.gives))
        plain = left.plain and (semi or not (set(names) & {g.name for g in made.gives}))
        return Scoped(f"{left.text} {kind} {text} {alias}{on}", columns, key, by_alias, plain)

    def _on(self, left: Scoped, right: tuple[Col, ...], made: Made, alias: str) -> tuple[str, bool]:
        """A join condition, and whether at most one row of the right side meets a row of the left one."""
        dice = self.dice
        types = [
            t
            for t in (INT, TEXT, DATE, TIME)
            if any(c.type == t for c in left.columns) and any(c.type == t for c in right)
        ]
        if not types:
            return condition(dice, [*left.columns, *right], 0), False
        key = next((c for c in right if made.key == (c.text.split(".", 1)[1],)), None)
        target = key if key is not None and key.type in types and dice.chance(0.7) else None
        if target is None:
            type_ = dice.one(*types[:2], types[0])
            target = dice.random.choice([c for c in right if c.type == type_])
        sources = [c for c in left.columns if c.type == target.type]
        source = dice.random.choice(sources).text
        if dice.chance(0.12):  # an expression over more than one column of the left side
            source = f"coalesce({source}, {dice.random.choice(sources).text})"
        pieces = [f"{source} {'<=>' if dice.chance(0.06) else '='} {target.text}"]
        if dice.chance(0.3):
            pieces.append(condition(dice, list(right) if dice.chance(0.7) else [*left.columns, *right], 0))
        if dice.chance(self.dice.clock * 0.25):
            pieces += [text for text in [clock_condition(dice, [*left.columns, *right])] if text]
        dice.random.shuffle(pieces)
        return " and ".join(pieces), target is key and "<=>" not in pieces[0]

    def lateral_view(self, found: Scoped) -> Scoped:
        dice = self.dice
        alias, name = dice.alias(), dice.name()
        ints = [c for c in found.columns if c.type == INT]
        if not ints:
            return found
        items = f"array({dice.random.choice(ints).text}, {dice.random.choice(ints).text}, 7)"
        view, table = f"explode({items}) {alias} as {name}", f"lateral explode({items}) as {alias}({name})"
        made = dice.one(
            f" lateral view {view}",
            f" lateral view outer {view}",
            f", {table}" if " join " not in found.text else f" cross join {table}",
            f" left join {table} on true",
        )
        text = found.text + made
        column = Col(f"{alias}.{name}", INT, True)
        return Scoped(text, (*found.columns, column), (), (*found.by_alias, (alias, (Gives(name, INT),))), found.plain)

    def lateral_join(self, left: Scoped) -> Scoped:
        dice = self.dice
        inner, alias, name = dice.alias(), dice.alias(), dice.name()
        table = self.table()
        ints = [c.text for c in left.columns if c.type == INT]
        own = self._columns(inner, table)
        if not ints:
            return left
        right = dice.random.choice([c.text for c in own if c.type == INT])
        query = f"select {dice.one('max', 'min', 'sum', 'count')}({right}) as {name} from {table.sql} {inner} where {right} = {dice.random.choice(ints)}"
        text = f"{left.text}, lateral ({query}) {alias}" if "lateral view" not in left.text else left.text
        if text == left.text:
            return left
        return Scoped(
            text,
            (*left.columns, Col(f"{alias}.{name}", INT)),
            left.key,
            (*left.by_alias, (alias, (Gives(name, INT),))),
            left.plain,
        )

    # --- WHERE

    def where(self, scope: Scoped, share: float = 0.6) -> list[str]:
        dice, found = self.dice, []
        columns = list(scope.columns)
        while dice.chance(share) and len(found) < 3:
            found.append(condition(dice, columns))
            share /= 2
        if dice.chance(dice.clock):
            found += [text for text in [clock_condition(dice, columns)] if text]
        if dice.chance(0.12):
            found.append(self.subquery_condition(scope))
        dice.random.shuffle(found)
        return [f"({text})" if " or " in text else text for text in found if text]

    def subquery_condition(self, scope: Scoped) -> str:
        dice = self.dice
        alias = dice.alias()
        if dice.chance(0.3):
            text, made = self.item(1)
        else:
            made = self.table()
            text = made.sql
        own = list(self._columns(alias, made))
        types = [t for t in (INT, TEXT) if any(c.type == t for c in own) and any(c.type == t for c in scope.columns)]
        if not types:
            return ""
        type_ = dice.one(*types)
        mine = dice.random.choice([c for c in own if c.type == type_]).text
        outer = dice.random.choice([c for c in scope.columns if c.type == type_]).text
        more = f" and {condition(dice, own, 0)}" if dice.chance(0.5) else ""
        if dice.chance(dice.clock * 0.4) and (clock := clock_condition(dice, own)):
            more += f" and ({clock})"
        kind = dice.random.randrange(10)
        if kind <= 2:
            return f"exists (select 1 from {text} {alias} where {mine} = {outer}{more})"
        if kind <= 5:
            return f"not exists (select 1 from {text} {alias} where {mine} = {outer}{more})"
        if kind <= 7:
            return f"{outer} in (select {mine} from {text} {alias} where true{more})"
        if kind == 8:
            return f"{outer} not in (select {mine} from {text} {alias} where {mine} is not null{more})"
        return f"{outer} {dice.one('=', '<=', '<')} (select max({mine}) from {text} {alias} where true{more})"

    def query(self, depth: int, top: bool = False) -> Made:
        raise NotImplementedError
