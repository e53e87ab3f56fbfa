"""Spark's SQL in DuckDB's words, for the few constructs that the oracle's queries and the engine's statements use.

sqlglot translates; what it does not say the way Spark means it is put right on the tree. A text that cannot be translated
raises Untranslated, and the oracle counts it.
"""

from __future__ import annotations

import re
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

TYPES = {
    "TINYINT": "tinyint", "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint", "HUGEINT": "bigint",
    "UBIGINT": "bigint", "UINTEGER": "bigint", "VARCHAR": "string", "DATE": "date", "TIMESTAMP": "timestamp",
    "BOOLEAN": "boolean", "DOUBLE": "double", "FLOAT": "double", "JSON": "string", '"NULL"': "int", "INTERVAL": "interval",
}  # fmt: skip
"""DuckDB's types → Spark's. A sum of BIGINT is a HUGEINT in DuckDB."""
_ZONE = re.compile(r"( UTC|\+00:00|Z)$")
_CREATE = re.compile(r"\s*create table (\S+) using parquet as\b", re.IGNORECASE)

MACROS = (
    "create or replace temp macro spark_type(x) as case typeof(x) when 'INTEGER' then 'int' when 'HUGEINT' then 'bigint' "
    "when 'VARCHAR' then 'string' else lower(typeof(x)) end;"
    "create or replace temp macro uniform_of(low, high, r) as low + (high - low) * r;"
    "create or replace temp macro array_repeat(x, n) as list_transform(generate_series(1, n), lambda i: x);"
)
"""Functions of Spark that DuckDB lacks."""


class Untranslated(Exception):
    """The text says something that is not said in DuckDB's SQL."""


def spark_type(duck: str) -> str:
    """Spark's name of a DuckDB type. Raises Untranslated."""
    if duck in TYPES:
        return TYPES[duck]
    if duck.startswith("DECIMAL("):
        return duck.lower().replace(" ", "")
    if duck.endswith("[]"):
        return f"array<{spark_type(duck[:-2])}>"
    raise Untranslated(f"type {duck}")


@lru_cache(maxsize=20_000)
def duck(sql: str) -> str:
    """The statement for DuckDB. Raises Untranslated."""
    created = _CREATE.match(sql)
    if created:
        return f"create or replace temp table {created[1].replace('`', '')} as {duck(sql[created.end() :])}"
    try:
        tree = sqlglot.parse_one(sql, read="spark")
        return _in_duckdb(tree).sql("duckdb")
    except SqlglotError as error:
        raise Untranslated(f"{str(error).splitlines()[0]}: {sql}") from error


def _in_duckdb(tree: exp.Expr) -> exp.Expr:
    for node in list(tree.walk()):
        change = _CHANGES.get(type(node))
        if change is not None:
            found = change(node)
            if found is not node:
                node.replace(found)
                tree = found if node is tree else tree
    return tree


def _table(node: exp.Table) -> exp.Expr:
    """A source at a version, or its change feed: a table of its own."""
    version = node.args.get("version")
    if version is not None:
        node.set("version", None)
        if not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
        node.this.set("this", f"{node.this.name}__v{version.expression.sql()}")
    elif isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "table_changes":
        node.set("this", exp.to_identifier(f"{node.this.expressions[0].name.strip('`')}__feed"))
    return node


def _data_type(node: exp.DataType) -> exp.Expr:
    if node.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ, exp.DataType.Type.TIMESTAMPNTZ):
        node.set("this", exp.DataType.Type.TIMESTAMP)
    return node


def _literal(node: exp.Literal) -> exp.Expr:
    if node.is_string and isinstance(node.parent, exp.Cast) and _ZONE.search(node.name):
        node.set("this", _ZONE.sub("", node.name))
    return node


def _outer(join: exp.Join) -> exp.Lateral:
    join.this.set("outer", join.args.get("side") == "LEFT")
    return join.this


def _select(node: exp.Select) -> exp.Expr:
    """LATERAL VIEW as a lateral join, which keeps OUTER."""
    laterals = node.args.get("laterals") or []
    generators = [
        join
        for join in node.args.get("joins") or []
        if isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Explode)
    ]
    for join in generators:
        join.pop()
    for lateral in [*(_outer(join) for join in generators), *laterals]:
        call = lateral.this
        alias = lateral.args.get("alias")
        if not isinstance(call, exp.Explode) or isinstance(call, exp.Posexplode) or alias is None:
            raise Untranslated(f"{lateral.sql('spark')}")
        column = alias.columns[0].name if alias.columns else "col"
        items = exp.select(exp.alias_(exp.Unnest(expressions=[call.this]), column, quoted=True))
        table = exp.Lateral(this=items.subquery(), alias=exp.TableAlias(this=exp.to_identifier(alias.name or "__l")))
        side = {"side": "LEFT", "on": exp.true()} if lateral.args.get("outer") else {"kind": "CROSS"}
        node.append("joins", exp.Join(this=table, **side))
    if laterals:
        node.set("laterals", None)
    return node


def _star(node: exp.Star) -> exp.Expr:
    """A star among arguments: all columns in scope, which DuckDB writes *COLUMNS(*)."""
    top = node.parent if isinstance(node.parent, exp.Column) else node
    inside = top.parent
    if isinstance(inside, exp.PropertyEQ) and isinstance(inside.parent, exp.Struct):
        top, inside = inside, inside.parent  # struct(*) is read as struct(* AS _0)
    if isinstance(inside, exp.Struct):
        call = exp.Anonymous(this="struct_pack")
        inside.replace(call)
        call.set("expressions", [_columns(e) for e in inside.expressions])
    elif isinstance(inside, exp.Func) and not (isinstance(inside, exp.Count) and top is node):
        call = _columns(top.copy())
        top.replace(call)
    return node


def _columns(node: exp.Expr) -> exp.Expr:
    star = node.expression if isinstance(node, exp.PropertyEQ) else node
    return exp.Anonymous(this="*COLUMNS", expressions=[star]) if star.is_star else star


def _wrapped(node: exp.Expr, type_: str) -> exp.Expr:
    """DuckDB makes a timestamp of a date and an interval, and a date of a truncated date."""
    wrapper = exp.Cast(this=exp.null(), to=exp.DataType.build(type_))
    node.replace(wrapper)
    wrapper.set("this", node)
    return node


def _typeof(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="spark_type", expressions=[node.this])


def _to_json(node: exp.JSONFormat) -> exp.Expr:
    return exp.cast(exp.Anonymous(this="to_json", expressions=[node.this]), "text", copy=False)


def _anonymous(node: exp.Anonymous) -> exp.Expr:
    if node.name.lower() == "xxhash64":
        node.set("this", "hash")
    if node.name.lower() == "uniform":
        low, high = node.expressions
        return exp.Anonymous(this="uniform_of", expressions=[low, high, exp.Rand()])
    if node.name.lower() == "forall" and len(node.expressions) == 2:
        items, test = node.expressions
        return exp.EQ(this=_passing(items, test), expression=exp.ArraySize(this=items.copy()))
    return node


def _exists(node: exp.Exists) -> exp.Expr:
    """`exists(array, test)`, which is no subquery."""
    test = node.args.get("expression")
    return exp.GT(this=_passing(node.this, test), expression=exp.Literal.number(0)) if test is not None else node


def _passing(items: exp.Expr, test: exp.Expr) -> exp.Expr:
    return exp.ArraySize(this=exp.ArrayFilter(this=items.copy(), expression=test.copy()))


def _unix_micros(node: exp.UnixMicros) -> exp.Expr:
    node.set("this", exp.cast(node.this, "timestamp", copy=False))
    return node


def _count_if(node: exp.CountIf) -> exp.Expr:
    """DuckDB's count_if is NULL of no rows."""
    count = exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))]))
    return exp.Distinct(expressions=[node]) if isinstance(node.this, exp.Distinct) else count


def _timestampdiff(node: exp.Expr) -> exp.Expr:
    """Whole units between two instants, where DuckDB's date_diff counts the borders that were crossed."""
    return exp.Anonymous(
        this="date_sub", expressions=[exp.Literal.string(node.unit.name.lower()), node.expression, node.this]
    )


_CHANGES = {
    exp.TimestampDiff: _timestampdiff,
    exp.CountIf: _count_if,
    exp.UnixMicros: _unix_micros,
    exp.Anonymous: _anonymous,
    exp.Exists: _exists,
    exp.Table: _table,
    exp.DataType: _data_type,
    exp.Literal: _literal,
    exp.Select: _select,
    exp.Typeof: _typeof,
    exp.JSONFormat: _to_json,
    exp.Star: _star,
    exp.TsOrDsAdd: lambda node: _wrapped(node, "date"),
    exp.AddMonths: lambda node: _wrapped(node, "date"),
    exp.TimestampTrunc: lambda node: _wrapped(node, "timestamp"),
}
