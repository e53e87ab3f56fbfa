"""One SELECT block as a relation, clause by clause in the order Spark evaluates them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from spark_mv.query.analysis.levels import value
from spark_mv.query.analysis.limit_clauses import limit_taint
from spark_mv.query.analysis.modifiers import is_one
from spark_mv.query.analysis.predicates import conjuncts
from spark_mv.query.analysis.projections import makes_rows, project, written_text
from spark_mv.query.analysis.rules import forbid_per_row, rows_key
from spark_mv.query.analysis.scopes import Rows, Scope
from spark_mv.query.analysis.sources import add_join, add_lateral, add_source
from spark_mv.query.analysis.taint import Field, OpenPart, Relation, Taint, TaintedValue, union
from spark_mv.query.analysis.verdict import ClauseVerdict
from spark_mv.query.analysis.walk import Env, Walk
from spark_mv.query.syntax.aggregates import aggregates, several_sets
from spark_mv.query.syntax.parse import sql_text

_UNSUPPORTED = ("kind", "into", "match", "connect", "prewhere", "for_", "settings", "format", "locks", "options")


def select(walk: Walk, node: exp.Select, env: Env) -> Relation:
    """The relation of one SELECT."""
    for key in _UNSUPPORTED:
        if node.args.get(key):
            walk.error(
                "UNSUPPORTED_SYNTAX",
                f"{key.strip('_').upper()} in a SELECT is not understood. Rewrite the query without it",
                walk.place(node),
            )
            walk.flag("opaque")
    scope = Scope(parent=env.outer, ctes=env.ctes, label=env.label)
    rows: list[Taint] = []
    source = node.args.get("from_")
    env, own_env = replace(env, preserved=env.preserved and _only_projects(node)), env
    if source is not None:
        rows.append(add_source(walk, source.this, scope, env))
    env = own_env
    rows += [add_join(walk, item, scope, env) for item in node.args.get("joins") or []]
    rows += [add_lateral(walk, item, scope, env) for item in node.args.get("laterals") or []]  # they see what is joined
    repeats = any(makes_rows(item) for item in node.expressions)
    scope.row_unique, scope.single = ((), False) if repeats else (scope.unique(), scope.is_single())
    scope.windows = {item.name.lower(): item for item in node.args.get("windows") or []}

    where = node.args.get("where")
    if where is not None:
        facts = conjuncts(walk, where.this, scope, "WHERE")
        rows.append(facts.taint)

    group = node.args.get("group")
    aggregated = (
        group is not None or node.args.get("having") is not None or any(aggregates(item) for item in node.expressions)
    )
    if (
        env.preserved
        and not aggregated
        and walk.key_fingerprints
        and not (
            node.args.get("qualify") or node.args.get("distinct") or node.args.get("limit") or node.args.get("offset")
        )
    ):
        scope.row_unique = (*scope.row_unique, walk.key_fingerprints)
    if aggregated:
        if walk.frames[-1].flags & {"aggregate", "window", "distinct"}:
            walk.flag("nested")
        walk.flag("aggregate")
        below, scope.row_unique, scope.single = (scope.row_unique, scope.single), (), False
    items, outputs = [], scope.aliases
    keys: list[TaintedValue] = []
    if group is not None:
        lateral = _alias_values(walk, node, scope)
        keys = _group_keys(walk, node, group, scope, lateral)
        rows += [k.taint for k in keys]
    if aggregated:
        grouped = frozenset(k.fingerprint for k in keys)
        scope.below = Rows(*below, grouped)
        scope.row_unique = (grouped,) if not (several_sets(group) or repeats) else ()
    for projection in node.expressions:
        made = project(walk, projection, scope, outputs)
        items += made
        if makes_rows(projection):
            rows += [item.taint for item in made]
            for item in made:
                forbid_per_row(walk, "generator", item.taint, written_text(walk, projection), rows_key(scope, walk))

    scope.aliases_first = True
    scope.ordinals = [TaintedValue(item.taint, item.fingerprint) for item in items]
    having, qualify = node.args.get("having"), node.args.get("qualify")
    for clause, condition in (("HAVING", having), ("QUALIFY", qualify)):
        if condition is not None:
            facts = conjuncts(walk, condition.this, scope, clause)
            rows.append(facts.taint)
    unique = scope.row_unique
    if qualify is not None:
        walk.flag("window")

    if node.args.get("distinct"):
        walk.flag("distinct")
        for item in items:
            label = f"SELECT DISTINCT {item.name}" if isinstance(item, Field) else "SELECT DISTINCT *"
            forbid_per_row(walk, "DISTINCT", item.taint, label, rows_key(scope, walk))
        rows += [item.taint for item in items]
        if not any(isinstance(item, OpenPart) for item in items):
            unique = (*unique, frozenset(item.fingerprint for item in items))
        scope.row_unique = unique
    if not (env.exists and _keeps_any(node)):
        rows.append(limit_taint(walk, node, scope))
    for key in ("cluster", "distribute", "sort"):
        sorting = node.args.get(key)
        for item in sorting.expressions if isinstance(sorting, exp.Expr) else []:
            value(walk, item.this if isinstance(item, exp.Ordered) else item, scope)
    order = node.args.get("order")
    if order is not None and not node.args.get("limit") and not node.args.get("offset"):
        for item in order.expressions:
            if item.this.name.upper() != "ALL" and not item.this.is_int:
                value(walk, item.this, scope)
    if is_one(node):
        unique = (*unique, frozenset())
    return Relation(
        tuple(items),
        "",
        union(rows),
        unique,
        single=scope.single and not node.args.get("distinct"),
        grouping=_grouping(scope, keys if aggregated else None),
        partition=_partition(scope),
    )


def _grouping(scope: Scope, keys: list[TaintedValue] | None) -> tuple[str, ...] | None:
    """The keys of the one aggregation: this block's, or that of the one FROM item underneath."""
    below = [relation.grouping for _, relation in scope.visible() if relation.grouping is not None]
    if keys is not None:
        return tuple(key.fingerprint for key in keys) if not below else None
    return below[0] if len(scope.sources) == 1 and below else None


def _partition(scope: Scope) -> tuple[str, ...] | None:
    """What all windows, here and in the one FROM item underneath, are partitioned by."""
    lists = [*scope.partitions, *(r.partition for _, r in scope.visible() if r.partition is not None)]
    if not lists:
        return None
    if len(scope.sources) != 1 and not scope.partitions:
        return ()
    shared = set(lists[0]).intersection(*lists[1:])
    return tuple(p for p in lists[0] if p in shared)


def _keeps_any(node: exp.Select) -> bool:
    """Whether LIMIT cannot turn some rows into none: inside EXISTS it changes nothing."""
    limit = node.args.get("limit")
    amount = limit.expression if limit is not None else None
    return isinstance(amount, exp.Literal) and amount.is_int and int(amount.name) > 0 and not node.args.get("offset")


def _only_projects(node: exp.Select) -> bool:
    """Whether the rows of the one FROM item are the rows of the SELECT."""
    source = node.args.get("from_")
    clauses = ("where", "group", "having", "qualify", "distinct", "limit", "offset", "joins", "laterals")
    if source is None or any(node.args.get(key) for key in clauses) or any(aggregates(p) for p in node.expressions):
        return False
    item = source.this
    return not any(item.args.get(key) for key in ("joins", "laterals", "pivots", "sample"))


def _alias_values(walk: Walk, node: exp.Select, scope: Scope) -> dict[str, exp.Expr]:
    return {p.alias.lower(): p.this for p in node.expressions if isinstance(p, exp.Alias)}


def _group_keys(
    walk: Walk,
    node: exp.Select,
    group: exp.Expr,
    scope: Scope,
    aliases: dict[str, exp.Expr],
) -> list[TaintedValue]:
    """The grouping keys, with ordinals, select aliases and GROUP BY ALL resolved."""
    keys: list[exp.Expr] = []
    if group.args.get("all"):
        keys = [p.this if isinstance(p, exp.Alias) else p for p in node.expressions if not aggregates(p)]
    stack = list(group.expressions)
    for word in ("rollup", "cube", "grouping_sets"):
        for item in group.args.get(word) or []:
            walk.flag("grouping_sets")
            stack += item.expressions if isinstance(item, exp.Expr) and item.expressions else [item]
    while stack:
        item = stack.pop(0)
        if isinstance(item, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
            if not isinstance(item, exp.Tuple):
                walk.flag("grouping_sets")
            stack = list(item.expressions) + stack
        elif isinstance(item, exp.Paren):
            stack.insert(0, item.this)
        elif isinstance(item, exp.Literal) and item.is_int:
            position = int(item.name)
            if 1 <= position <= len(node.expressions):
                chosen = node.expressions[position - 1]
                keys.append(chosen.this if isinstance(chosen, exp.Alias) else chosen)
            else:
                walk.error("GROUP_BY_POSITION", f"GROUP BY {position} is no column of the SELECT", walk.place(item))
        else:
            keys.append(item)
    values: list[TaintedValue] = []
    for key in keys:
        facts = _key_value(walk, key, scope, aliases)
        values.append(facts)
        forbid_per_row(walk, "GROUP BY", facts.taint, keys=rows_key(scope, walk))
    taint = union(v.taint for v in values)
    origin = taint.worst() if taint else None
    line, column = walk.place(group)
    walk.clauses.setdefault(
        ("GROUP BY", line, column),
        ClauseVerdict(
            "GROUP BY", ", ".join(sql_text(k) for k in keys), scope.label, line, column, taint.level,
            origin.cause("GROUP BY") if origin else None,
        ),
    )  # fmt: skip
    return values


def _key_value(walk: Walk, key: exp.Expr, scope: Scope, aliases: dict[str, exp.Expr]) -> TaintedValue:
    name = key.name.lower() if isinstance(key, exp.Column) and len(key.parts) == 1 else ""
    if name in aliases and not any(relation.has(name) for relation in scope.sources.values()):
        expression = aliases[name]
        if not (isinstance(expression, exp.Column) and expression.name.lower() == name):
            return value(walk, expression, _with_aliases(walk, scope, aliases, name))
    return value(walk, key, scope)


def _with_aliases(walk: Walk, scope: Scope, aliases: dict[str, exp.Expr], upto: str) -> Scope:
    """A scope that sees the select aliases written before `upto` (lateral column aliases)."""
    inner = Scope(parent=scope.parent, sources=scope.sources, ctes=scope.ctes, label=scope.label, using=scope.using)
    inner.star = scope.star
    inner.padded, inner.windows, inner.row_unique = scope.padded, scope.windows, scope.row_unique
    inner.single, inner.below = scope.single, scope.below
    for name, expression in aliases.items():
        if name == upto:
            break
        inner.aliases[name] = value(walk, expression, inner)
    return inner
