"""A failing (query, history) made small: clauses, items, joins and levels of the query are left out, then steps and rows,
for as long as the run fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import sqlglot
from histories import History, Op, Step, applied
from sqlglot import exp
from sqlglot.errors import SqlglotError

Fails = Callable[[str, History], bool]


def shrink(sql: str, history: History, fails: Fails, seconds: float = 60.0) -> tuple[str, History]:
    """The smallest example found in the time. `fails` must be true of the example given."""
    end = time.monotonic() + seconds
    history = _history(history, lambda h: fails(sql, h), end)
    sql = _query(sql, lambda s: fails(s, history), end)
    history = _history(history, lambda h: fails(sql, h), end)
    return sql, history


# --- the history


def _history(history: History, fails: Callable[[History], bool], end: float) -> History:
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for smaller in _smaller_histories(history):
            if time.monotonic() > end:
                break
            if fails(smaller):
                history, changed = smaller, True
                break
    return history


def _smaller_histories(history: History) -> Iterator[History]:
    steps = history.steps
    if history.large:
        yield replace(history, large=False)
    for number in range(1, len(steps)):
        yield replace(history, steps=steps[:number])
    if len(steps) > 1:  # begin later
        after = applied(history.rows, steps[0].ops)
        if after is not None:
            yield History({n: tuple(r) for n, r in after.items()}, steps[0].hour, steps[1:], history.large)
        for number in range(len(steps) - 1):
            joined = Step(steps[number].ops + steps[number + 1].ops, steps[number + 1].hour, steps[number + 1].compared)
            yield replace(history, steps=(*steps[:number], joined, *steps[number + 2 :]))
    for name, rows in history.rows.items():
        if len(rows) > 2:
            yield replace(history, rows={**history.rows, name: ()})
        for k in range(len(rows)):
            yield replace(history, rows={**history.rows, name: (*rows[:k], *rows[k + 1 :])})
    for number, step in enumerate(steps):
        for k, op in enumerate(step.ops):
            yield _with(history, number, replace(step, ops=(*step.ops[:k], *step.ops[k + 1 :])))
            if op.old is not None and op.new is not None:
                yield _with(
                    history, number, replace(step, ops=(*step.ops[:k], Op(op.table, op.old), *step.ops[k + 1 :]))
                )
        if step.compared:
            yield _with(history, number, replace(step, compared=frozenset()))
    for name, rows in history.rows.items():  # NULLs, in a row and in what is said of it later
        for row in rows:
            for place in range(1, len(row)):
                if row[place] is not None:
                    yield _emptied(history, name, row, place)


def _with(history: History, number: int, step: Step) -> History:
    return replace(history, steps=(*history.steps[:number], step, *history.steps[number + 1 :]))


def _emptied(history: History, table: str, row: tuple[object, ...], place: int) -> History:
    empty = (*row[:place], None, *row[place + 1 :])

    def of(found: tuple[object, ...] | None) -> tuple[object, ...] | None:
        return empty if found == row else found

    rows = {**history.rows, table: tuple(of(r) or r for r in history.rows[table])}
    steps = tuple(
        replace(s, ops=tuple(Op(o.table, of(o.old), of(o.new)) if o.table == table else o for o in s.ops))
        for s in history.steps
    )
    return replace(history, rows=rows, steps=steps)


# --- the query


def _query(sql: str, fails: Callable[[str], bool], end: float) -> str:
    changed, tried = True, {sql}
    while changed and time.monotonic() < end:
        changed = False
        for smaller in _smaller_queries(sql):
            if time.monotonic() > end:
                break
            if smaller in tried or len(smaller) >= len(sql) + 3:
                continue
            tried.add(smaller)
            if fails(smaller):
                sql, changed = smaller, True
                break
    return sql


def _smaller_queries(sql: str) -> Iterator[str]:
    try:
        tree = sqlglot.parse_one(sql, read="spark")
    except SqlglotError:
        return
    count = len(list(tree.walk()))
    for place in range(count):
        for way in range(8):
            copy = tree.copy()
            node = next(n for k, n in enumerate(copy.walk()) if k == place)
            made = _simpler(copy, node, way)
            if made is None:
                continue
            try:
                yield made.sql("spark")
            except SqlglotError:
                continue


def _simpler(tree: exp.Expr, node: exp.Expr, way: int) -> exp.Expr | None:
    """The tree with the node made simpler, in one of several ways; None where there is no such way."""
    if isinstance(node, exp.Select):
        clauses = ("where", "having", "qualify", "distinct", "order", "laterals", "windows")
        if way < len(clauses):
            if not node.args.get(clauses[way]):
                return None
            node.set(clauses[way], None)
            return tree
        return None
    if isinstance(node, exp.SetOperation) and way < 2:
        return _replaced(tree, node, node.left if way == 0 else node.right)
    if isinstance(node, exp.With) and way == 0:
        return _inlined(tree, node)
    if isinstance(node, exp.Join) and way == 0:
        joins = node.parent.args["joins"]
        node.parent.set("joins", [j for j in joins if j is not node])
        return tree
    if isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join) and way == 0:
        inner = node.this.args.get("from_") if isinstance(node.this, exp.Select) else None
        if inner is None or node.this.args.get("joins"):
            return None
        table = inner.this.copy()
        table.set("alias", node.args["alias"].copy() if node.args.get("alias") else None)
        return _replaced(tree, node, table)
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        if way == 0 and len(node.parent.expressions) > 1:
            node.pop()
            return tree
        return None
    if isinstance(node, exp.And | exp.Or | exp.Binary) and way < 2:
        return _replaced(tree, node, node.left if way == 0 else node.right)
    if isinstance(node, exp.Paren | exp.Not) and way == 0:
        return _replaced(tree, node, node.this)
    if isinstance(node, exp.Func | exp.Case) and way < 3 and not isinstance(node, exp.AggFunc):
        operands = [
            n for n in node.iter_expressions() if isinstance(n, exp.Column | exp.Literal | exp.Func | exp.Binary)
        ]
        return _replaced(tree, node, operands[way]) if way < len(operands) else None
    if isinstance(node, exp.Order | exp.Filter) and way == 0:
        if isinstance(node, exp.Filter):
            return _replaced(tree, node, node.this)
        if len(node.expressions) > 1:
            node.set("expressions", node.expressions[1:])
            return tree
    return None


def _replaced(tree: exp.Expr, node: exp.Expr, by: exp.Expr) -> exp.Expr:
    if node is tree:
        return by.copy()
    node.replace(by.copy())
    return tree


def _inlined(tree: exp.Expr, node: exp.With) -> exp.Expr:
    """The last CTE put where it is read."""
    cte = node.expressions[-1]
    for table in list(tree.find_all(exp.Table)):
        if table.name.lower() == cte.alias.lower() and not table.db:
            table.replace(cte.this.copy().subquery(table.alias or cte.alias))
    node.set("expressions", node.expressions[:-1])
    if not node.expressions:
        node.pop()
    return tree
