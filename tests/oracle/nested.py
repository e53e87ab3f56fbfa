"""Queries over structs, arrays and maps, drawn at random: lambdas, generators, fields at any depth, windows, groups, pipes. A draw
may stand wherever a value may. Every query keeps the column `id`, by which two results of it are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.oracle.grammar_expressions import Dice


@dataclass(frozen=True)
class Struct:
    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True)
class Array:
    of: Type


@dataclass(frozen=True)
class Map:
    """From texts to values."""

    to: Type


Type = str | Struct | Array | Map
Column = tuple[str, Type]  #: its text and its type

INT, TEXT, DOUBLE = "int", "string", "double"
NAMES = ("a", "b", "x", "r", "k", "v", "A2")
KV = Struct((("k", INT), ("v", TEXT)))
TABLES: dict[str, dict[str, Type]] = {
    "nested_t": {
        "id": INT,
        "c": INT,
        "n": TEXT,
        "s": Struct((("a", INT), ("b", Struct((("x", INT), ("y", TEXT)))))),
        "arr": Array(KV),
        "m": Map(INT),
        "xs": Array(INT),
    },
    "nested_u": {"id": INT, "k": INT, "w": DOUBLE, "tags": Array(TEXT)},
}
ROWS = {
    "nested_t": "select cast(id as int) as id, cast(id * 7 % 5 as int) as c, concat('n', id) as n, named_struct('a', cast(id as int), 'b',"
    " named_struct('x', cast(id as int), 'y', 'z')) as s, array(named_struct('k', cast(id as int), 'v', 'w'), named_struct('k', 1, 'v', 'x'))"
    " as arr, map('p', cast(id as int), 'q', 2) as m, array(3, 1, cast(id as int)) as xs from range(6)",
    "nested_u": "select cast(id as int) as id, cast(id % 3 as int) as k, 1.5d + id as w, array('a', cast(id as string)) as tags from range(4)",
}
DRAWS = {
    INT: ("int(rand() * 100000)", "cast(randn() * 100000 as int)", "hash(uuid())"),
    TEXT: ("uuid()", "cast(rand() as string)", "randstr(8)"),
    DOUBLE: ("rand()", "randn()", "uniform(0d, 1d)"),
}
LITERALS = {INT: ("1", "2", "cast(null as int)"), TEXT: ("'a'", "'p'"), DOUBLE: ("0.5d",)}


def ddl(type_: Type) -> str:
    if isinstance(type_, Array):
        return f"array<{ddl(type_.of)}>"
    if isinstance(type_, Map):
        return f"map<string,{ddl(type_.to)}>"
    if isinstance(type_, Struct):
        return "struct<" + ",".join(f"{name}:{ddl(of)}" for name, of in type_.fields) + ">"
    return type_


SCHEMAS = {table: {name: ddl(type_) for name, type_ in columns.items()} for table, columns in TABLES.items()}


def paths(text: str, type_: Type, depth: int = 0) -> list[Column]:
    """What can be read of a column: itself, its fields, entries and elements, and theirs."""
    found: list[Column] = [(text, type_)]
    if depth < 3 and isinstance(type_, Struct):
        for name, of in type_.fields:
            found += paths(f"{text}.{name}", of, depth + 1)
    elif depth < 2 and isinstance(type_, Map):
        found.append((f"{text}['p']", type_.to))
    elif depth < 2 and isinstance(type_, Array):
        found += paths(f"{text}[0]", type_.of, depth + 1)
        if isinstance(type_.of, Struct):
            found += [(f"{text}.{name}", Array(of)) for name, of in type_.of.fields]
    return found


class Nested:
    """A source of queries. The same seed gives the same queries."""

    def __init__(self, seed: int, draws: float = 0.12) -> None:
        self.dice = Dice(Random(seed), draws=draws)

    def name(self) -> str:
        self.dice.names += 1
        return f"c{self.dice.names}"

    def type(self, depth: int = 0) -> Type:
        share = self.dice.random.random()
        if share < 0.35 or depth > 1:
            return self.dice.one(INT, TEXT, DOUBLE, DOUBLE)
        if share < 0.6:
            names = self.dice.random.sample(NAMES, self.dice.random.randint(1, 3))
            return Struct(tuple((name, self.type(depth + 1)) for name in names))
        return Array(self.type(depth + 1)) if share < 0.8 else Map(self.type(depth + 1))

    def value(self, columns: list[Column], type_: Type, depth: int = 0) -> str:
        """An expression of this type over these columns."""
        dice = self.dice
        if isinstance(type_, str) and dice.chance(dice.draws):
            return dice.one(*DRAWS[type_])
        read = [text for column in columns for text, of in paths(*column) if of == type_]
        if isinstance(type_, str):
            if depth < 3 and dice.chance(0.35):
                return self.scalar(columns, type_, depth + 1)
            return dice.one(*read) if read and dice.chance(0.85) else dice.one(*LITERALS[type_])
        if read and dice.chance(0.6 if depth < 2 else 0.9):
            return dice.one(*read)
        if isinstance(type_, Struct):
            values = [(name, self.value(columns, of, depth + 1)) for name, of in type_.fields]
            if dice.chance(0.5):
                return "named_struct(" + ", ".join(f"'{name}', {value}" for name, value in values) + ")"
            return "struct(" + ", ".join(f"{value} as {name}" for name, value in values) + ")"
        if isinstance(type_, Array):
            return self.array(columns, type_, depth + 1)
        return self.map(columns, type_, depth + 1)

    def scalar(self, columns: list[Column], type_: str, depth: int) -> str:
        def of(wanted: Type) -> str:
            return self.value(columns, wanted, depth)

        drawn = f" + {self.dice.one(*DRAWS[INT])}" if self.dice.chance(self.dice.draws) else ""
        makers: dict[str, tuple[Callable[[], str], ...]] = {
            INT: (
                lambda: f"({of(INT)} + {of(INT)})",
                lambda: f"length({of(TEXT)})",
                lambda: f"size({of(Array(self.dice.one(INT, TEXT)))})",
                lambda: f"aggregate({of(Array(INT))}, 0, (acc, y) -> acc + coalesce(y, 0){drawn})",
                lambda: f"try_element_at({of(Array(INT))}, 1)",
                lambda: f"try_element_at({of(Map(INT))}, 'p')",
                lambda: f"case when {self.condition(columns, depth)} then {of(INT)} else {of(INT)} end",
                lambda: f"if({self.condition(columns, depth)}, {of(INT)}, 3)",
                lambda: f"coalesce({of(INT)}, {of(INT)})",
                lambda: f"array_max({of(Array(INT))})",
            ),
            TEXT: (
                lambda: f"concat({of(TEXT)}, {of(TEXT)})",
                lambda: f"upper({of(TEXT)})",
                lambda: f"to_json({of(Struct((('a', INT), ('b', DOUBLE))))})",
                lambda: f"array_join({of(Array(TEXT))}, ',')",
                lambda: f"cast({of(INT)} as string)",
                lambda: f"nullif({of(TEXT)}, 'a')",
                lambda: f"get_json_object(to_json(named_struct('q', {of(INT)}, 'r', {of(DOUBLE)})), '$.q')",
                lambda: f"format_string('%s-%s', {of(INT)}, {of(TEXT)})",
                lambda: f"map_keys({of(Map(INT))})[0]",
            ),
            DOUBLE: (
                lambda: f"({of(DOUBLE)} * 2)",
                lambda: f"cast({of(INT)} as double)",
                lambda: f"named_struct('u', {of(DOUBLE)}, 'w', {of(DOUBLE)}).u",
                lambda: (
                    f"zip_with({of(Array(DOUBLE))}, {of(Array(INT))}, (y, z) -> coalesce(y, 0d) + coalesce(z, 0))[0]"
                ),
            ),
        }
        return self.dice.random.choice(makers[type_])()

    def array(self, columns: list[Column], type_: Array, depth: int) -> str:
        dice, share = self.dice, self.dice.random.random()
        if share < 0.4 or depth > 3:
            return (
                "array("
                + ", ".join(self.value(columns, type_.of, depth) for _ in range(dice.random.randint(1, 2)))
                + ")"
            )
        if share < 0.6:
            of = dice.one(INT, TEXT)
            body = self.value([*columns, ("y", of)], type_.of, depth + 1)
            return f"transform({self.value(columns, Array(of), depth)}, y -> {body})"
        if share < 0.7 and isinstance(type_.of, str):
            chance = " and rand() < 0.5" if dice.chance(dice.draws) else ""
            return f"filter({self.value(columns, type_, depth)}, y -> y is not null{chance})"
        if share < 0.8 and isinstance(type_.of, str):
            return f"array_distinct({self.value(columns, type_, depth)})"
        if share < 0.9:
            return f"concat({self.value(columns, type_, depth)}, {self.value(columns, type_, depth)})"
        return f"array_repeat({self.value(columns, type_.of, depth)}, 2)"

    def map(self, columns: list[Column], type_: Map, depth: int) -> str:
        if self.dice.chance(0.5) or depth > 3:
            return f"map('p', {self.value(columns, type_.to, depth)}, 'q', {self.value(columns, type_.to, depth)})"
        if self.dice.chance(0.5):
            return f"map_from_arrays(array('p'), array({self.value(columns, type_.to, depth)}))"
        return f"transform_values(map('p', 1), (y, z) -> {self.value([*columns, ('z', INT)], type_.to, depth + 1)})"

    def condition(self, columns: list[Column], depth: int = 0) -> str:
        share = self.dice.random.random()
        if share < 0.25:
            return f"{self.value(columns, INT, depth + 1)} > 2"
        if share < 0.5:
            return f"{self.value(columns, TEXT, depth + 1)} is not null"
        if share < 0.75:
            return f"exists({self.value(columns, Array(INT), depth + 1)}, y -> y > 1)"
        return f"{self.value(columns, DOUBLE, depth + 1)} < 0.5"

    def certain(self, columns: list[Column]) -> str:
        """A condition in which nothing is drawn."""
        draws, self.dice.draws = self.dice.draws, 0.0
        try:
            return self.condition(columns)
        finally:
            self.dice.draws = draws

    def query(self) -> str:
        sql, columns = self.source()
        for _ in range(self.dice.random.randint(1, 5)):
            sql, columns = self.over(sql, columns)
        return sql

    def source(self) -> tuple[str, list[Column]]:
        t, u = list(TABLES["nested_t"].items()), list(TABLES["nested_u"].items())
        share = self.dice.random.random()
        if share < 0.6:
            return "select * from nested_t", t
        if share < 0.75:
            return "select t.*, u.k, u.w, u.tags from nested_t t left join nested_u u on t.id = u.id", t + u[1:]
        if share < 0.85:
            return "select * from nested_t join nested_u using (id)", t + u[1:]
        return "select * from nested_u", u

    def over(self, sql: str, columns: list[Column]) -> tuple[str, list[Column]]:
        """A query over another one, and its columns."""
        alias = self.dice.one("z", "t", "s", "g")
        source = f"({sql}) {self.dice.one('', 'as ')}{alias}"
        makers: tuple[tuple[float, Callable[..., tuple[str, list[Column]]]], ...] = (
            (0.30, self.projected),
            (0.36, self.extended),
            (0.42, self.without),
            (0.52, self.fields),
            (0.64, self.generated),
            (0.72, self.grouped),
            (0.80, self.windowed),
            (0.86, self.piped),
            (0.90, lambda source, _, columns: (f"select * from {source} where {self.certain(columns)}", columns)),
            (0.95, self.united),
            (1.00, self.subquery),
        )
        share = self.dice.random.random()
        return next(make for upto, make in makers if share < upto)(source, alias, columns)

    def projected(self, source: str, alias: str, columns: list[Column]) -> tuple[str, list[Column]]:
        kept = [c for c in columns if c[0] != "id" and self.dice.chance(0.4)]
        made = [(self.name(), self.type()) for _ in range(self.dice.random.randint(1, 3))]
        items = ["id", *(f"{alias}.{c}" if self.dice.chance(0.3) else c for c, _ in kept)]
        items += [f"{self.value(columns, type_)} as {name}" for name, type_ in made]
        if self.dice.chance(0.25):  # over a name of the same SELECT
            name = self.name()
            items.append(f"{self.value(made[-1:], made[-1][1], 2)} as {name}")
            made.append((name, made[-1][1]))
        return f"select {', '.join(items)} from {source}", [("id", INT), *kept, *made]

    def extended(self, source: str, _: str, columns: list[Column]) -> tuple[str, list[Column]]:
        name, type_ = self.name(), self.type()
        return f"select *, {self.value(columns, type_)} as {name} from {source}", [*columns, (name, type_)]

    def without(self, source: str, alias: str, columns: list[Column]) -> tuple[str, list[Column]]:
        gone = [c for c in columns if c[0] != "id" and self.dice.chance(0.3)]
        if not gone:
            return self.extended(source, alias, columns)
        listed = ", ".join(name for name, _ in gone)
        return f"select * except ({listed}) from {source}", [c for c in columns if c not in gone]

    def fields(self, source: str, alias: str, columns: list[Column]) -> tuple[str, list[Column]]:
        structs = [(name, type_) for name, type_ in columns if isinstance(type_, Struct)]
        if not structs:
            return self.projected(source, alias, columns)
        name, type_ = self.dice.random.choice(structs)
        qualified = f"{alias}.{name}" if self.dice.chance(0.3) else name
        return f"select id, {qualified}.* from {source}", [("id", INT), *type_.fields]

    def generated(self, source: str, _: str, columns: list[Column]) -> tuple[str, list[Column]]:
        kept = [c for c in columns if c[0] == "id" or self.dice.chance(0.4)]
        listed = ", ".join(name for name, _ in kept)
        held = [(name, type_) for name, type_ in columns if isinstance(type_, (Array, Map))]
        made: Type = Array(self.type(1))
        text, type_ = (
            self.dice.random.choice(held) if held and self.dice.chance(0.6) else (self.value(columns, made), made)
        )
        name, other = self.name(), self.name()
        if isinstance(type_, Map):
            sql = self.dice.one(
                f"select {listed}, {other}, {name} from {source} lateral view explode({text}) y as {other}, {name}",
                f"select {listed}, explode({text}) as ({other}, {name}) from {source}",
            )
            return sql, [*kept, (other, TEXT), (name, type_.to)]
        assert isinstance(type_, Array)
        if isinstance(type_.of, Struct) and self.dice.chance(0.5):
            names = [self.name() for _ in type_.of.fields]
            each = ", ".join(names)
            sql = self.dice.one(
                f"select {listed}, inline({text}) as ({each}) from {source}",
                f"select {listed}, {each} from {source} lateral view outer inline({text}) y as {each}",
                f"select {listed}, y.* from {source}, lateral inline({text}) as y({each})",
            )
            return sql, [*kept, *((made_, of) for made_, (_, of) in zip(names, type_.of.fields, strict=True))]
        if self.dice.chance(0.3):
            sql = f"select {listed}, {other}, {name} from {source} lateral view posexplode({text}) y as {other}, {name}"
            return sql, [*kept, (other, INT), (name, type_.of)]
        sql = self.dice.one(
            f"select {listed}, explode({text}) as {name} from {source}",
            f"select {listed}, {name} from {source} lateral view outer explode({text}) y as {name}",
            f"select {listed}, y.{name} from {source}, lateral explode({text}) as y({name})",
        )
        return sql, [*kept, (name, type_.of)]

    def grouped(self, source: str, _: str, columns: list[Column]) -> tuple[str, list[Column]]:
        by = [c for c in columns if c[0] != "id" and c[1] in (INT, TEXT) and self.dice.chance(0.3)]

        def of(type_: Type) -> str:
            return self.value(columns, type_, 1)

        pair = Struct((("a", INT), ("b", INT)))
        makers: tuple[Callable[[], tuple[str, Type]], ...] = (
            lambda: (f"sum({of(INT)})", INT),
            lambda: (f"max({of(DOUBLE)})", DOUBLE),
            lambda: ("count(*)", INT),
            lambda: (f"sort_array(collect_list({of(INT)}))", Array(INT)),
            lambda: (f"max(struct({of(INT)} as a, {of(INT)} as b))", pair),
            lambda: (f"count(distinct {of(TEXT)})", INT),
            lambda: (f"max_by({of(INT)}, struct({of(INT)}, {of(TEXT)}))", INT),
            lambda: (f"min({of(TEXT)}) filter (where {self.certain(columns)})", TEXT),
        )
        made = [(*self.dice.random.choice(makers)(), self.name()) for _ in range(self.dice.random.randint(1, 3))]
        listed = ", ".join(["id", *(name for name, _ in by)])
        items = ", ".join(f"{text} as {name}" for text, _, name in made)
        sql = f"select {listed}, {items} from {source} group by {self.dice.one(listed, 'all')}"
        return sql, [("id", INT), *by, *((name, type_) for _, type_, name in made)]

    def windowed(self, source: str, _: str, columns: list[Column]) -> tuple[str, list[Column]]:
        order = self.value(columns, INT, 1) if self.dice.chance(0.5) else "id"
        window = self.dice.one(
            "count(*) over (partition by id)",
            f"row_number() over (partition by {self.value(columns, INT, 2)} order by {order}, id)",
            f"max({self.value(columns, INT, 1)}) over (partition by id order by {order})",
            f"sum({self.value(columns, INT, 1)}) over (partition by id)",
            f"dense_rank() over (order by {order}, id)",
        )
        name = self.name()
        return f"select *, {window} as {name} from {source}", [*columns, (name, INT)]

    def piped(self, source: str, _: str, columns: list[Column]) -> tuple[str, list[Column]]:
        name, type_ = self.name(), self.type()
        value = f"{self.value(columns, type_)} as {name}"
        if self.dice.chance(0.33):
            return f"from {source} |> select id, {value}", [("id", INT), (name, type_)]
        where = f"|> where {self.certain(columns)} " if self.dice.chance(0.5) else ""
        return f"from {source} {where}|> extend {value}", [*columns, (name, type_)]

    def united(self, source: str, _: str, columns: list[Column]) -> tuple[str, list[Column]]:
        items = ", ".join("id" if name == "id" else f"{self.value(columns, of, 1)} as {name}" for name, of in columns)
        return f"select * from {source} union all select {items} from {source}", columns

    def subquery(self, source: str, alias: str, columns: list[Column]) -> tuple[str, list[Column]]:
        name = self.name()
        if self.dice.chance(0.5):
            return f"with {name} as (select * from {source}) select * from {name}", columns
        of = self.value([("k", INT), ("w", DOUBLE)], INT, 1)
        lookup = f"(select max({of}) from nested_u v where v.id = {alias}.id)"
        return f"select {alias}.*, {lookup} as {name} from {source}", [*columns, (name, INT)]
