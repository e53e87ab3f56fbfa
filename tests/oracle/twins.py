"""The same query in other words. Equal tables, equal verdicts, the same strategies: what differs depends on how a query is
written, not on what it says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

import duckdb
import sqlglot
from duck_sql import Untranslated
from engine import Database, Model, Situation
from grammar import Drawn
from histories import SCHEMAS, draw_history, draw_menu, instant
from sqlglot import exp
from sqlglot.errors import SqlglotError

from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.spark.run.as_of import utc_text

Way = Callable[[str], "str | None"]
TRIES = 3
_QUOTED = re.compile(r"('[^']*'|`(?:[^`]|``)*`)")


# --- ways to say it otherwise: None where the query has nothing of the kind


def _outside_quotes(sql: str, change: Callable[[str], str]) -> str:
    return "".join(part if k % 2 else change(part) for k, part in enumerate(_QUOTED.split(sql)))


def capitals(sql: str) -> str | None:
    return _outside_quotes(sql, str.upper)


def other_aliases(sql: str) -> str | None:
    made = _outside_quotes(sql, lambda part: re.sub(r"\b(a|q)(\d+)\b", r"renamed_\1\2", part))
    return made if made != sql else None


def layout(sql: str) -> str | None:
    def spread(part: str) -> str:
        # sqlglot reads no comment inside of its keywords of two words
        return re.sub(r" +(?!by\b)", " /* c */\n ", part, flags=re.IGNORECASE).replace("(", "( ")

    return _outside_quotes(sql, spread)


def in_parentheses(sql: str) -> str | None:
    return f"({sql})" if not sql.lower().startswith("with ") else None


def _changed(change: Callable[[exp.Expr], exp.Expr | None]) -> Way:
    """A way on the tree. Literals and functions come out as sqlglot writes them, so `plainly` is its twin, not the text."""

    def way(sql: str) -> str | None:
        tree = sqlglot.parse_one(sql, read="databricks")
        made = change(tree)
        return made.sql("databricks") if made is not None else None

    return way


plainly = _changed(lambda tree: tree)


def _always_true(tree: exp.Expr) -> exp.Expr | None:
    for select in list(tree.find_all(exp.Select)):
        if not select.args.get("from_"):
            continue
        where = select.args.get("where")
        if where is None:
            select.set("where", exp.Where(this=exp.true()))
        else:
            one = exp.EQ(this=exp.Literal.number(1), expression=exp.Literal.number(1))
            where.set("this", exp.And(this=_wrapped(where.this), expression=one))
    return tree


def _wrapped(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Or) else node.copy()


def _swapped(tree: exp.Expr) -> exp.Expr | None:
    """AND the other way round, everywhere."""
    found = list(tree.find_all(exp.And))
    for node in found:
        left, right = node.left, node.right
        node.set("this", _in_and(right))
        node.set("expression", _in_and(left))
    return tree if found else None


def _in_and(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node) if isinstance(node, exp.And | exp.Or) else node


def _parenthesized(tree: exp.Expr) -> exp.Expr | None:
    for node in [*tree.find_all(exp.Where), *tree.find_all(exp.Having)]:
        node.set("this", exp.Paren(this=exp.Paren(this=node.this.copy())))
    for join in tree.find_all(exp.Join):
        if join.args.get("on") is not None:
            join.set("on", exp.Paren(this=join.args["on"].copy()))
    return tree


def _commuted(tree: exp.Expr) -> exp.Expr | None:
    """Inner joins of two the other way round, where no star sees it."""
    changed = False
    for select in list(tree.find_all(exp.Select)):
        joins = select.args.get("joins") or []
        if not joins or select.args.get("laterals") or any(item.is_star for item in select.expressions):
            continue
        if any(
            e.find(exp.Star)
            for item in select.expressions
            for e in item.find_all(exp.Func)
            if not isinstance(e, exp.Count)
        ):
            continue
        join, first = joins[0], select.args["from_"].this
        plain = (
            not join.args.get("side")
            and join.args.get("kind") in (None, "", "INNER")
            and join.args.get("on") is not None
        )
        if not plain or join.args.get("method") or any(isinstance(i, exp.Lateral) for i in (first, join.this)):
            continue
        if any(j.args.get("using") or j.args.get("method") or isinstance(j.this, exp.Lateral) for j in joins):
            continue
        other = join.this.copy()
        join.set("this", first.copy())
        select.args["from_"].set("this", other)
        changed = True
    return tree if changed else None


def _inlined(tree: exp.Expr) -> exp.Expr | None:
    """CTEs put where they are read."""
    clause = tree.args.get("with_")
    if clause is None or any(cte.args["alias"].columns for cte in clause.expressions):
        return None
    while clause.expressions:
        cte = clause.expressions[-1]
        for table in list(tree.find_all(exp.Table)):
            if table.name.lower() == cte.alias.lower() and not table.db:
                table.replace(cte.this.copy().subquery(table.alias or cte.alias))
        clause.set("expressions", clause.expressions[:-1])
    clause.pop()
    return tree


def _lifted(tree: exp.Expr) -> exp.Expr | None:
    """Derived tables as CTEs, the inner ones first."""
    found = [
        node
        for node in tree.find_all(exp.Subquery)
        if isinstance(node.parent, exp.From | exp.Join)
        and not any(value for name, value in node.args.items() if name not in ("this", "alias"))
        and not isinstance(node.parent.this, exp.Lateral)
    ]
    if not found:
        return None
    names = []
    for number, node in enumerate(sorted(found, key=lambda n: -n.depth)):
        name = f"lifted_{number}"
        names.append((name, node.this.copy()))
        alias = node.args.get("alias")
        table = exp.Table(this=exp.to_identifier(name), alias=alias.copy() if alias is not None else None)
        node.replace(table)
    clause = tree.args.get("with_")
    own = [exp.CTE(this=query, alias=exp.TableAlias(this=exp.to_identifier(name))) for name, query in names]
    if clause is None:
        tree.set("with_", exp.With(expressions=own))
    else:
        clause.set("expressions", _by_need([*clause.expressions, *own]))
    return tree


def with_views(sql: str) -> tuple[list[tuple[str, str]], str] | None:
    """The query over views that say what its CTEs and derived tables say: (name, SELECT) of each view in an order in which they
    can be made, and the query. None without any, and where a CTE names its columns itself."""
    tree = sqlglot.parse_one(sql, read="databricks")
    tree = _lifted(tree.copy()) or tree
    clause = tree.args.get("with_")
    if clause is None or any(cte.args["alias"].columns for cte in clause.expressions):
        return None
    clause.pop()
    return [(cte.alias, cte.this.sql("databricks")) for cte in clause.expressions], tree.sql("databricks")


def _by_need(ctes: list[exp.Expr], last_first: bool = False) -> list[exp.Expr]:
    """CTEs in an order in which each reads those before it; of those that may come next, the first or the last one."""
    waiting, done = list(ctes), []
    while waiting:
        named = {cte.alias.lower() for cte in waiting}
        free = [
            cte for cte in waiting if not any(t.name.lower() in named and not t.db for t in cte.find_all(exp.Table))
        ]
        taken = free[-1 if last_first else 0]
        done.append(taken)
        waiting = [cte for cte in waiting if cte is not taken]
    return done


def _reordered(tree: exp.Expr) -> exp.Expr | None:
    clause = tree.args.get("with_")
    if clause is None:
        return None
    made = _by_need(clause.expressions, last_first=True)
    if [c.alias for c in made] == [c.alias for c in clause.expressions]:
        return None
    clause.set("expressions", made)
    return tree


def _around(tree: exp.Expr) -> exp.Expr | None:
    """The whole query as a derived table."""
    clause = tree.args.get("with_")
    if clause is not None:
        clause.pop()
    outer = exp.select("*").from_(tree.subquery("whole"))
    if clause is not None:
        outer.set("with_", clause)
    return outer


LAYOUT: Mapping[str, Way] = {
    "capitals": capitals,
    "other aliases": other_aliases,
    "comments and white space": layout,
    "in parentheses": in_parentheses,
}
"""Of the text itself: not even the fingerprint may change, but for the names of the table's columns."""
REWRITES: Mapping[str, Way] = {
    "always true": _changed(_always_true),
    "conjuncts swapped": _changed(_swapped),
    "conditions in parentheses": _changed(_parenthesized),
    "joins commuted": _changed(_commuted),
    "CTEs inlined": _changed(_inlined),
    "derived tables as CTEs": _changed(_lifted),
    "CTEs in another order": _changed(_reordered),
}
"""Of the tree: the twin of what sqlglot makes of the query."""
SAME_PRINT = ({*LAYOUT} - {"capitals"}) | {"conditions in parentheses", "CTEs in another order"}


# --- what must be the same


@dataclass
class Compared:
    """How many pairs were compared, by the way; and those of which one was not understood, which is fine if the other is not
    either."""

    pairs: Counter[str] = field(default_factory=Counter)
    untranslated: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"{self.pairs.total()} pairs: {dict(self.pairs)}, not said in DuckDB: {self.untranslated.total()}"


def twins(sql: str) -> Iterator[tuple[str, str, str]]:
    """The name of the way, the query, and its twin."""
    for name, way in LAYOUT.items():
        if (made := way(sql)) is not None:
            yield name, sql, made
    plain = plainly(sql)
    assert plain is not None
    for name, way in REWRITES.items():
        if (made := way(sql)) is not None and made != plain:
            yield name, plain, made


def differences(database: Database, drawn: Drawn, compared: Compared) -> Iterator[str]:
    """What differs between a query and its twins, one text for each twin."""
    known: dict[str, dict[str, object]] = {}
    for name, one, other in twins(drawn.sql):
        sides = []
        for sql in (one, other):
            if sql not in known:
                known[sql] = said_of(database, Drawn(sql, drawn.key), compared)
            sides.append(dict(known[sql]))
        compared.pairs[name] += 1
        if name not in SAME_PRINT:
            for side in sides:
                side.pop("fingerprint", None)
        different = {
            k: (sides[0].get(k), sides[1].get(k)) for k in {*sides[0], *sides[1]} if sides[0].get(k) != sides[1].get(k)
        }
        if different:
            yield f"{name}: {different}\n{one}\n{other}\n-- unique_key: {', '.join(drawn.key)}"


def said_of(database: Database, drawn: Drawn, compared: Compared) -> dict[str, object]:
    """All that must be the same of a query, however it is written."""
    model = Model(drawn.sql, drawn.key, database)
    said = verdict_of(model.analysis)
    if model.analysis.errors:
        return said
    try:
        said["tables"] = _tables(model)
        for situation in situations(model):
            plans = model.plans(situation)
            said[f"strategies, {situation.changed}, {situation.hour}".lower()] = sorted(
                {plan.strategy for plan in plans}
            )
    except RefusedError as error:
        said["refused"] = re.sub(r"line \d+, column \d+|`[^`]*`", "", str(error))[:40].lower()
    except (Untranslated, duckdb.Error) as error:
        compared.untranslated[str(error).splitlines()[0][:100]] += 1
        said["untranslated"] = True
    return said


def verdict_of(analysis: Analysis) -> dict[str, object]:
    return {
        "errors": sorted({error.code for error in analysis.errors}),
        "columns": [(c.name.lower(), c.level.name, c.kept) for c in analysis.columns],
        "rows": analysis.rows_level.name,
        "levels": sorted(level.name for level in analysis.levels),
        "fingerprint": analysis.fingerprint,
    }


def readable_twins(sql: str) -> Iterator[tuple[str, str, str]]:
    """The twins of a statement that need not be one SELECT, and of which sqlglot need not know all."""
    if "--" in sql or "/*" in sql or not re.match(r"\s*(select|with|from|values|\()", sql, re.IGNORECASE) or ";" in sql:
        return
    try:
        yield from twins(sql)
    except (SqlglotError, IndexError, AssertionError):
        for name, way in LAYOUT.items():
            if (made := way(sql)) is not None:
                yield name, sql, made


def _tables(model: Model) -> list[Counter[str]]:
    found = []
    for number in range(TRIES):
        history = draw_history(Random(number), tuple(SCHEMAS), draw_menu(Random(number), tuple(SCHEMAS), False), 0)
        model.database.load([{name: list(rows) for name, rows in history.rows.items()}])
        found.append(Counter(repr(row) for row in model.database.bag(model.query(0)).elements()))
    return found


def situations(model: Model) -> list[Situation]:
    """One table changed, all of them did, one gained rows, the clock moved."""
    tables = sorted(model.tables, key=str.lower)
    moves = [((name, False, False),) for name in tables[:2]] + [tuple((name, False, False) for name in tables)]
    found = (
        [Situation(tuple(move), 0, 0, None) for move in dict.fromkeys([*moves, ((tables[0], True, False),)])]
        if tables
        else []
    )
    if model.clocked:
        found.append(Situation((), 0, 12, utc_text(instant(0))))
        if tables:
            found.append(Situation(((tables[0], False, False),), 0, 12, utc_text(instant(0))))
    return found
