"""A query as a relation: what its columns depend on, which calls decide its rows, and what shape it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from spark_mv.query.analysis.field_types import same_type
from spark_mv.query.analysis.fingerprint import fingerprint, noted, resolved
from spark_mv.query.analysis.levels import value
from spark_mv.query.analysis.modifiers import modified
from spark_mv.query.analysis.relation_names import renamed
from spark_mv.query.analysis.rules import forbid_per_row
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.select import select
from spark_mv.query.analysis.sources import source_relation
from spark_mv.query.analysis.taint import Field, OpenPart, Relation, digest, union
from spark_mv.query.analysis.verdict import ClauseVerdict
from spark_mv.query.analysis.walk import Env, ReadCte, Walk
from spark_mv.query.syntax.parse import sql_text


def query(walk: Walk, node: exp.Expr, env: Env) -> Relation:
    """The relation that a SELECT, set operation, VALUES or parenthesised query gives."""
    top = env.top
    env = with_ctes(walk, node, env)
    with walk.frame() as frame:
        if isinstance(node, exp.Subquery):
            relation = query(walk, node.this, replace(env, top=env.top and not _limited(node)))
            walk.absorb(relation)
            relation = modified(walk, node, relation, env)
        elif isinstance(node, exp.Select):
            relation = select(walk, node, env)
        elif isinstance(node, exp.SetOperation):
            relation = modified(walk, node, _set_operation(walk, node, env), env)
        elif isinstance(node, exp.Values):
            relation = _values(walk, node, env)
        elif isinstance(node, exp.Table):
            relation = source_relation(walk, node, Scope(parent=env.outer, ctes=env.ctes, label=env.label), env)[1]
            walk.absorb(relation)
        else:
            walk.error(
                "UNSUPPORTED_SYNTAX", f"{node.key.upper()} is not understood as a query. Rewrite it as a SELECT",
                walk.place(node),
            )  # fmt: skip
            relation = Relation((OpenPart(digest("unknown")),), digest("unknown", sql_text(node)))
            walk.flag("opaque")
    if top and not _limited(node):
        walk.unordered.add(id(node))
    print_ = resolved(walk, node, fingerprint(walk, node))
    return replace(relation, fingerprint=print_, reads=_counted(frame.reads), flags=frozenset(frame.flags))


def _limited(node: exp.Expr) -> bool:
    """Whether the order of its rows decides which of them there are."""
    return bool(node.args.get("limit") or node.args.get("offset"))


_MOST_OCCURRENCES = 64


def _counted(reads: Iterable[tuple[str, tuple[str, ...]]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each table as often as it is read, up to a number: CTEs that are read twice double it with each level."""
    seen: Counter[tuple[str, tuple[str, ...]]] = Counter()
    kept = []
    for read in reads:
        seen[read] += 1
        if seen[read] <= _MOST_OCCURRENCES:
            kept.append(read)
    return tuple(kept)


def with_ctes(walk: Walk, node: exp.Expr, env: Env) -> Env:
    """`env` plus the CTEs that `node` defines; each sees those before it (and itself, if recursive)."""
    clause = node.args.get("with_")
    if clause is None:
        return env
    ctes = dict(env.ctes)
    for item in clause.expressions:
        name = item.alias
        walk.cte_names.add(name)
        before = dict(ctes)
        cte = ReadCte(item, Env(before, env.outer, name))
        walk.ctes.append(cte)
        if clause.args.get("recursive"):
            before[name.lower()] = cte
        ctes[name.lower()] = cte
    return replace(env, ctes=ctes)


def cte_relation(walk: Walk, cte: ReadCte) -> Relation:
    """The relation of a CTE; a recursive one is seeded with its anchor and walked twice."""
    if cte.relation is not None:
        return cte.relation
    if cte.busy:
        # a recursive reference before the anchor is known
        return Relation(
            (OpenPart(digest("recursive", cte.node.alias)),), digest("recursive"), flags=frozenset({"opaque"})
        )
    cte.busy = True
    body = cte.node.this
    names = [c.name for c in cte.node.args["alias"].args.get("columns") or []]
    recursive = cte.env.ctes.get(cte.node.alias.lower()) is cte and _reads_itself(body, cte.node.alias)
    if recursive and isinstance(body, exp.SetOperation):
        cte.relation = renamed(walk, query(walk, body.left, cte.env), names, cte.node)
        for _ in range(2):
            full = renamed(walk, query(walk, body, cte.env), names, cte.node)
            cte.relation = replace(full, flags=full.flags | {"opaque"})
    else:
        cte.relation = renamed(walk, query(walk, body, cte.env), names, cte.node)
    cte.relation = replace(cte.relation, kind="cte")
    cte.busy = False
    return cte.relation


def _reads_itself(body: exp.Expr, name: str) -> bool:
    return any(t.name.lower() == name.lower() and not t.args.get("db") for t in body.find_all(exp.Table))


def _set_operation(walk: Walk, node: exp.SetOperation, env: Env) -> Relation:
    env = replace(env, top=False, preserved=False)
    left, right = query(walk, node.left, env), query(walk, node.right, env)
    walk.absorb(left)
    walk.absorb(right)
    keep_all = node.args.get("distinct") is False
    walk.flag("set_operation")
    if isinstance(node, exp.Union) and keep_all:
        walk.flag("union_all")
    else:
        walk.flag("set_distinct")
    name = f"{node.key.upper()}{' ALL' if keep_all else ''}"
    items = _set_items(walk, node, left, right, name)
    for relation in (left, right):
        for item in relation.items:
            forbid_per_row(walk, "set operation", item.taint, name)
    taint = union([*(i.taint for i in items), left.rows, right.rows])
    line, column = walk.place(node)
    origin = taint.worst() if taint else None
    walk.clauses.setdefault(
        (name, line, column),
        ClauseVerdict(name, name, env.label, line, column, taint.level, origin.cause(name) if origin else None),
    )
    unique = (
        () if keep_all or any(isinstance(i, OpenPart) for i in items) else (frozenset(i.fingerprint for i in items),)
    )
    rows = union([left.rows, right.rows, *([] if keep_all else [i.taint for i in items])])
    if node.args.get("by_name"):
        noted(walk, node, *(_names(left)), "and", *(_names(right)))
    return Relation(tuple(items), "", rows, unique)


def _names(relation: Relation) -> list[str]:
    return [item.name.lower() if isinstance(item, Field) else "*" for item in relation.items]


def _set_items(
    walk: Walk, node: exp.SetOperation, left: Relation, right: Relation, name: str
) -> list[Field | OpenPart]:
    """The columns of a set operation: by position, or by name where the query says so."""

    def both(one: Field, other: Field) -> Field:
        return Field(
            one.name,
            union([one.taint, other.taint]),
            digest(name, one.fingerprint, other.fingerprint),
            derive=same_type(one, other),
        )

    partners = {f.name.lower(): f for f in right.fields}
    if left.is_open or right.is_open:
        # columns that are known by name on both sides keep their own taint; the rest may be anything
        everything = union(item.taint for relation in (left, right) for item in relation.items)
        whole = digest(name, left.columns_print, right.columns_print)
        items: list[Field | OpenPart] = [OpenPart(whole, everything)]
        for f in left.fields:
            other = partners.get(f.name.lower())
            items.append(both(f, other) if other else Field(f.name, everything, digest(name, f.fingerprint, whole)))
        return items
    if node.args.get("by_name"):
        named = [
            both(f, other)
            if (other := partners.pop(f.name.lower(), None))
            else Field(f.name, f.taint, digest(name, f.fingerprint))
            for f in left.fields
        ]
        return [*named, *(Field(f.name, f.taint, digest(name, f.fingerprint)) for f in partners.values())]
    if len(left.fields) != len(right.fields):
        walk.error(
            "COLUMN_COUNT",
            f"{name} joins a query of {len(left.fields)} columns and one of {len(right.fields)}. Give both the same columns",
            walk.place(node.right),
        )
    return [both(f, other) for f, other in zip(left.fields, right.fields, strict=False)]


def _values(walk: Walk, node: exp.Expr, env: Env) -> Relation:
    """VALUES (…), (…): inline rows; a column depends on what any of its cells depends on."""
    scope = Scope(parent=env.outer, ctes=env.ctes, label=env.label)
    rows = [
        [value(walk, cell, scope) for cell in (row.expressions if isinstance(row, exp.Tuple) else [row])]
        for row in node.expressions
    ]
    width = max((len(row) for row in rows), default=0)
    items = tuple(
        Field(
            f"col{i + 1}",
            union(row[i].taint for row in rows if i < len(row)),
            digest("values", i, *(row[i].fingerprint for row in rows if i < len(row))),
        )
        for i in range(width)
    )
    return Relation(items, "", kind="values")
