"""Expressions and conditions drawn at random over the columns of a scope. Every value is exact: integers, texts, dates, times."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

INT, TEXT, TIME, DATE = "int", "string", "timestamp", "date"
TYPES = (INT, INT, INT, TEXT, TEXT, TIME, DATE)


@dataclass(frozen=True)
class Col:
    """A column in scope: its text (with the alias or without), its type, and whether it may be NULL."""

    text: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class Gives:
    """An output column of a query."""

    name: str
    type: str
    nullable: bool = True


@dataclass
class Dice:
    """What the grammar decides by. `clock`, `draws`, `ai`: how often a clock, a draw or an AI call stands where it may; 0 for
    never."""

    random: Random
    clock: float = 0.0
    draws: float = 0.0
    ai: float = 0.0
    names: int = 0
    aliases: int = field(default=0)
    keywords: int = 0

    def one(self, *options: str) -> str:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self) -> str:
        self.names += 1
        if self.chance(0.04):
            n = self.names
            return self.one(f"`a {n}`", f"`from{n}`", f"`C{n}.x`", f"`c-{n}`", f"`q``{n}`", self.keyword())
        return f"c{self.names}"

    def keyword(self) -> str:
        """A keyword as a name, each once."""
        self.keywords += 1
        words = ("order", "select", "group", "union", "left", "where", "table", "all")
        return f"`{words[self.keywords - 1]}`" if self.keywords <= len(words) else f"`join{self.names}`"

    def alias(self) -> str:
        self.aliases += 1
        return f"a{self.aliases}"


def of_type(scope: list[Col], type_: str) -> list[Col]:
    return [c for c in scope if c.type == type_]


def literal(dice: Dice, type_: str) -> str:
    if type_ == INT:
        return dice.one("0", "1", "1", "2", "3")
    if type_ == TEXT:
        return dice.one("'a'", "'b'", "''", "'z'")
    if type_ == TIME:
        return dice.one("timestamp'2026-01-14 00:00:00'", "timestamp'2026-01-13 12:30:00'")
    return dice.one("date'2026-01-14'", "date'2026-01-12'")


def value(dice: Dice, scope: list[Col], type_: str, depth: int = 2) -> str:
    """An expression of the type; a plain column half of the time."""
    if type_ == INT and dice.draws and dice.chance(dice.draws):
        return dice.one(
            "cast(floor(rand() * 1000000) as int)", "cast(rand() * 3 as int)", "cast(uniform(0, 1000000000) as int)"
        )
    if type_ == TEXT and dice.ai and dice.chance(dice.ai):
        return dice.one("ai_gen({})", "ai_translate({}, 'de')", "ai_fix_grammar({})").format(
            value(dice, scope, TEXT, 0)
        )
    columns = of_type(scope, type_)
    if columns and (depth <= 0 or dice.chance(0.5)):
        return dice.random.choice(columns).text
    if depth <= 0:
        return literal(dice, type_)

    def sub(wanted: str = type_) -> str:
        return value(dice, scope, wanted, depth - 1)

    if dice.chance(0.15):
        return f"case when {condition(dice, scope, 0)} then {sub()} {f'else {sub()} ' if dice.chance(0.6) else ''}end"
    if dice.chance(0.15):
        return f"coalesce({sub()}, {literal(dice, type_)})"
    if type_ == INT:
        kind = dice.random.randrange(9)
        if kind == 0 and of_type(scope, TEXT):
            return dice.one("length({})", "size(split({}, ','))").format(sub(TEXT))
        if kind == 1 and of_type(scope, DATE):
            return dice.one("day({})", "dayofweek({})", "year({})").format(sub(DATE))
        if kind == 2:
            return f"if({condition(dice, scope, 0)}, {sub()}, {sub()})"
        if kind == 3:
            return f"size(filter(array({sub()}, {sub()}), v -> v > {literal(dice, INT)}))"
        if kind == 4:
            return f"aggregate(array({sub()}, {sub()}), 0, (acc, v) -> acc + coalesce(v, 0))"
        if kind == 5:
            return dice.one(
                "size(transform(array({a}, {b}), v -> v + 1))",
                "case when exists(array({a}, {b}), v -> v = 1) then 1 else 0 end",
                "case when forall(array({a}, {b}), v -> v > 0) then 1 else 0 end",
            ).format(a=sub(), b=sub())
        if kind == 6:
            return f"({sub()}) % 2"
        return f"{sub()} {dice.one('+', '-', '*')} {literal(dice, INT)}"
    if type_ == TEXT:
        if dice.chance(0.3):
            other = dice.one(INT, INT, TIME, DATE)
            return f"cast({sub(other) if of_type(scope, other) else sub(INT)} as string)"
        return dice.one("upper({})", "{} || 'q'", "substring({}, 1, 1)", "trim({})").format(sub())
    if type_ == TIME:
        return f"{sub()} + interval {dice.one('1 hour', '2 hours', '1 day')}"
    if of_type(scope, TIME) and dice.chance(0.5):
        return f"cast({sub(TIME)} as date)"
    return dice.one("date_add({}, 1)", "date_sub({}, 1)", "last_day({})").format(sub())


def condition(dice: Dice, scope: list[Col], depth: int = 2) -> str:
    """A condition without a clock or a subquery."""
    if not scope:
        return "1 = 1"
    if depth > 0 and dice.chance(0.15):
        return f"({condition(dice, scope, depth - 1)} or {condition(dice, scope, depth - 1)})"
    if depth > 0 and dice.chance(0.08):
        return f"not ({condition(dice, scope, depth - 1)})"
    column = dice.random.choice(scope)
    type_, text = column.type, value(dice, scope, column.type, 1) if dice.chance(0.2) else column.text
    kind = dice.random.randrange(9)
    if kind == 0:
        return f"{text} is null"
    if kind <= 2:
        return f"{text} is not null"
    if kind == 3:
        return f"{text} {dice.one('in', 'in', 'not in')} ({literal(dice, type_)}, {literal(dice, type_)})"
    if kind == 4 and type_ == TEXT:
        return f"{text} like {dice.one(repr('a%'), repr('%b%'))}"
    if kind == 5 and len(of_type(scope, type_)) > 1:
        return f"{text} {dice.one('=', '<', '>=', '<=>', '<>')} {dice.random.choice(of_type(scope, type_)).text}"
    if kind == 5 and type_ == INT:
        return f"exists(array({text}, {literal(dice, INT)} + 1), v -> v = {literal(dice, INT)})"
    if kind == 6:
        return f"{text} between {literal(dice, type_)} and {literal(dice, type_)}"
    return f"{text} {dice.one('=', '<>', '<', '>=', '<=', '>', '<=>')} {literal(dice, type_)}"


_CLOCKS = {
    TIME: (
        "{c} <= now()", "{c} > current_timestamp() - interval {h} hours", "{c} >= current_timestamp() - interval 1 day",
        "{c} < current_timestamp()", "now() < {c} + interval {h} hours", "{c} between now() - interval 1 day and now()",
        "cast({c} as date) = current_date()", "date_trunc('day', {c}) >= current_date() - interval 1 day",
        "{c} > now() - interval {h} hours and {c} <= now()", "not ({c} < now() - interval {h} hours)",
        "coalesce({c}, now()) >= now() - interval {h} hours", "{c} is null or {c} <= now()",
        "hour({c}) <= hour(current_timestamp())", "{c} + interval {h} hours between now() and now() + interval 1 day",
    ),
    DATE: (
        "{c} >= current_date()", "{c} < current_date()", "{c} >= date_sub(current_date(), {n})",
        "datediff(current_date(), {c}) <= {n}", "{c} = current_date()", "{c} between date_sub(current_date(), {n}) and current_date()",
        "date_add({c}, {n}) > current_date()", "coalesce({c}, current_date()) >= date_sub(current_date(), {n})",
        "{c} >= date_trunc('week', current_date())", "abs(datediff({c}, current_date())) <= {n}",
        "month({c}) = month(current_date()) and {c} <= current_date()", "dayofweek({c}) = dayofweek(current_date())",
    ),
}  # fmt: skip


def clock_condition(dice: Dice, scope: list[Col]) -> str | None:
    """A condition on the clock, or None where no column is a time."""
    columns = [c for c in scope if c.type in _CLOCKS]
    if not columns:
        return None
    column = dice.random.choice(columns)
    text = column.text if dice.chance(0.9) else value(dice, scope, column.type, 1)
    return dice.one(*_CLOCKS[column.type]).format(c=text, h=dice.one("1", "2", "10"), n=dice.one("0", "1", "2"))


def clock_value(dice: Dice, scope: list[Col]) -> str | None:
    """An integer that the clock decides."""
    columns = [c for c in scope if c.type in _CLOCKS]
    if not columns:
        return None
    column = dice.random.choice(columns).text
    return dice.one(
        "datediff(current_date(), cast({c} as date))", "case when {c} <= now() then 1 else 0 end",
        "if({c} > current_timestamp() - interval 2 hours, 1, 2)", "hour(now()) - hour(cast({c} as timestamp))",
        "datediff(coalesce(cast({c} as date), current_date()), date'2024-03-10')",
    ).format(c=column)  # fmt: skip


def aggregate(dice: Dice, scope: list[Col]) -> tuple[str, str]:
    """An aggregate that does not depend on the order of rows, and its type."""
    x = value(dice, scope, INT, 1)
    any_ = dice.random.choice(scope)
    filtered = f" filter (where {condition(dice, scope, 0)})" if dice.chance(0.15) else ""
    kind = dice.random.randrange(13)
    if dice.chance(dice.clock * 0.15) and (clock := clock_condition(dice, scope)):
        return f"count_if({clock})", INT
    if kind <= 1:
        return f"count(*){filtered}", INT
    if kind == 2:
        return f"count({any_.text}){filtered}", INT
    if kind <= 4:
        return f"sum({x}){filtered}", INT
    if kind <= 7:
        return f"{dice.one('min', 'max')}({any_.text}){filtered}", any_.type
    if kind == 8:
        return f"count(distinct {any_.text})", INT
    if kind == 9:
        return f"count_if({condition(dice, scope, 0)})", INT
    if kind == 10:
        return f"sum(case when {condition(dice, scope, 0)} then 1 else 0 end)", INT
    if kind == 11:
        return f"sum({x}) + count(*)", INT
    return f"coalesce(sum({x}), 0)", INT
