"""FROM items: tables, views, CTEs, subqueries, table functions, LATERAL VIEW, PIVOT and joins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from spark_mv.query.analysis.containers import generated_fields
from spark_mv.query.analysis.fingerprint import fingerprint, literals, noted, resolved, table_print
from spark_mv.query.analysis.generators import generated_names, has_fixed_rows, typed
from spark_mv.query.analysis.levels import value
from spark_mv.query.analysis.limit_clauses import sample_taint
from spark_mv.query.analysis.pivots import pivoted
from spark_mv.query.analysis.predicates import conjuncts
from spark_mv.query.analysis.relation_names import renamed
from spark_mv.query.analysis.resolve import identifier_parts
from spark_mv.query.analysis.rules import forbid_per_row, rows_key
from spark_mv.query.analysis.scopes import Scope, StarColumn, join_stars
from spark_mv.query.analysis.taint import CLEAN, Field, OpenPart, Relation, Taint, digest, union
from spark_mv.query.analysis.verdict import ClauseVerdict
from spark_mv.query.analysis.walk import Env, Walk, WalkedText
from spark_mv.query.functions.catalogue import Mark, is_marked, level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.joins import FILLING_LEFT, HIDING, join_kind, join_words
from spark_mv.query.syntax.parse import parse, sql_text
from spark_mv.query.syntax.parser import Call
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.star_order import Shown, common_names
from spark_mv.query.syntax.table_name import joined, table_key

_TABLE_FUNCTION_COLUMNS = {
    "range": ("id",),
    "sql_keywords": ("keyword", "reserved"),
}


def add_source(walk: Walk, node: exp.Expr, scope: Scope, env: Env) -> Taint:
    """Put one FROM item, and what hangs on it, into `scope`. Returns what decides the rows of it."""
    if (
        isinstance(node, exp.Subquery | exp.Paren)
        and isinstance(node.this, exp.Table | exp.Subquery)
        and (node.this.args.get("joins") or isinstance(node.this, exp.Table))
        and not node.alias
    ):
        # a join in parentheses: its items stand in this scope
        rows = add_source(walk, node.this, scope, env)
        return union([rows, *_hanging(walk, node, scope, env)])
    alias, relation = source_relation(walk, node, scope, env)
    walk.absorb(relation)
    name = alias or f"#{len(scope.sources)}"
    occurrence = sum(1 for seen in _around(scope) if _same_rows(seen, relation))
    scope.origins.append(relation)
    seen = (
        relation.seen_as(_shown(alias, relation), occurrence)
        if alias and relation.kind != "table"
        else (relation.seen_as(alias or "subquery", occurrence))
    )
    if relation.kind == "function":
        forbid_per_row(walk, "generator", relation.rows, alias or "a table function", rows_key(scope, walk))
    walk.tainted_names.update(item.name.lower() for item in seen.fields if item.taint)
    key = name.lower()
    while key in scope.sources:
        key += "'"
    scope.sources[key] = seen
    join_stars(scope, scope.star, Shown(tuple(StarColumn(key, item, item) for item in seen.items)), "CROSS", ())
    return union([seen.rows, *_hanging(walk, node, scope, env)])


def _around(scope: Scope | None) -> Iterator[Relation]:
    """The FROM items of a scope and of those around it, as they came."""
    while scope is not None:
        yield from scope.origins
        scope = scope.parent


def _same_rows(one: Relation, other: Relation) -> bool:
    """Whether columns of both may have one fingerprint and be of different rows: they read one table, or are equal."""
    if one.fingerprint == other.fingerprint:
        return True
    tables = {name.lower() for name, _ in one.reads}
    if any(name.lower() in tables for name, _ in other.reads):
        return True
    columns = {item.fingerprint for item in one.items}
    return any(item.fingerprint in columns for item in other.items)


def _shown(alias: str, relation: Relation) -> str:
    """What a path calls the relation: a CTE or view by its own name, a subquery by its alias."""
    return relation.names[-1] if relation.kind in ("cte", "view") and relation.names else alias


def _hanging(walk: Walk, node: exp.Expr, scope: Scope, env: Env) -> list[Taint]:
    """Laterals and joins that sqlglot hangs on a FROM item."""
    rows = [add_lateral(walk, item, scope, env) for item in node.args.get("laterals") or []]
    return rows + [add_join(walk, item, scope, env) for item in node.args.get("joins") or []]


def source_relation(walk: Walk, node: exp.Expr, scope: Scope, env: Env) -> tuple[str, Relation]:
    """Alias (or table name) and relation of one FROM item."""
    env = replace(env, top=False, exists=False)
    alias_node = node.args.get("alias")
    alias = node.alias or ""
    names = [c.name for c in alias_node.args.get("columns") or []] if isinstance(alias_node, exp.TableAlias) else []
    if isinstance(node, exp.Lateral):
        return _lateral(walk, node, scope, env)
    if isinstance(node, exp.Table | exp.TableAlias):
        alias, relation = _table(walk, node, scope, env)
    elif isinstance(node, exp.Subquery):
        if isinstance(node.this, exp.Table) or (
            isinstance(node.this, exp.Subquery) and any(node.this.args.get(key) for key in ("joins", "laterals"))
        ):
            inner = Scope(parent=env.outer, ctes=env.ctes, label=alias)
            rows = add_source(walk, node.this, inner, env)
            items = tuple(column.shown for column in inner.star.columns)
            relation = Relation(
                items, fingerprint(walk, node), rows, reads=tuple(r for o in inner.origins for r in o.reads)
            )
        else:
            label = f"{env.label}.{alias}" if env.label and alias else alias or env.label
            inner_env = replace(env, label=label)
            relation = walk.query(walk, node, inner_env)
    elif isinstance(node, exp.Values):
        relation = walk.query(walk, node, env)
    else:
        walk.error(
            "UNSUPPORTED_SYNTAX",
            f"{sql_text(node)} is not understood as a table. Select from a table, view or subquery instead",
            walk.place(node),
        )
        walk.flag("opaque")
        relation = Relation((OpenPart(digest("unknown", sql_text(node))),), digest("unknown", sql_text(node)))
    pivots = node.args.get("pivots") or []
    for pivot in pivots:
        relation = replace(pivoted(walk, relation, pivot, scope), reads=relation.reads, flags=relation.flags)
        alias = pivot.alias or alias
    sample = node.args.get("sample")
    if sample is not None and isinstance(node, exp.Table | exp.Values):
        taint = sample_taint(walk, sample, scope)
        relation = replace(relation, rows=union([relation.rows, taint]))
    relation = replace(relation, fingerprint=resolved(walk, node, _source_print(walk, node, relation)))
    return alias, renamed(walk, relation, names if not pivots else [], node)


def _source_print(walk: Walk, node: exp.Expr, relation: Relation) -> str:
    """That of a FROM item with all that hangs on it; a table's name counts as what it names."""
    if isinstance(node, exp.Table | exp.TableAlias) and _table_name(node) is not None:
        walk.named_tables.add(id(node))
        noted(walk, node, relation.fingerprint)
    return fingerprint(walk, node)


def _table_name(node: exp.Expr) -> list[str] | None:
    """The parts of a table's name, None for a table function. IDENTIFIER('a.b') is a name too."""
    inner = node.this
    if isinstance(node, exp.TableAlias):
        return [inner.name]
    if isinstance(inner, exp.Identifier):
        return [part.name for part in node.parts]  # type: ignore[attr-defined]
    call = inner.meta.get("call")
    return identifier_parts(inner) if isinstance(call, Call) and call.name == "identifier" else None


def _table(walk: Walk, node: exp.Expr, scope: Scope, env: Env) -> tuple[str, Relation]:
    parts = _table_name(node) or _streamed(walk, node)
    if parts is None:
        return node.alias, _table_function(walk, node.this, scope)
    walk.seen.update((id(node), id(node.this)))
    name = joined(parts)
    alias = node.alias or parts[-1]
    if len(parts) == 1 and parts[0].lower() in env.ctes:
        relation = walk.cte(walk, env.ctes[parts[0].lower()])
        return alias, replace(relation, kind="cte", names=(env.ctes[parts[0].lower()].node.alias,))
    view = _matching(walk.views, name)
    if view is not None:
        return alias, _view(walk, node, view, parts)
    versions = [node.args[key] for key in ("version", "when", "changes", "partition") if node.args.get(key)]
    taint = union(value(walk, item, scope).taint for item in versions)
    key = _matching(walk.schemas or {}, name)
    base = digest(table_print(parts), *(fingerprint(walk, item) for item in versions))
    reads = [(name, walk.text.via)]
    if followed := _named_version(node):
        reads.append((f"{name}@{followed}()", walk.text.via))  # keeps no versions itself, as a function does
    if key is None:
        return alias, Relation(
            (OpenPart(base),), base, taint, reads=tuple(reads), kind="table", names=tuple(parts), single=True
        )
    schema = (walk.schemas or {})[key]
    items = tuple(Field(c, CLEAN, digest("column", c.lower(), base), str(t)) for c, t in schema.items())
    return alias, Relation(items, base, taint, reads=tuple(reads), kind="table", names=tuple(parts), single=True)


def _named_version(node: exp.Expr) -> str:
    """The branch or tag in VERSION AS OF 'name', whose rows move while those of the table may stand; empty for the number of a version."""
    version = node.args.get("version")
    found = version.expression if isinstance(version, exp.Version) and version.name.upper() == "VERSION" else None
    name = "" if found is None else str(found.name) or "?"
    return "" if name.isdigit() else name


def _streamed(walk: Walk, node: exp.Expr) -> list[str] | None:
    """The name in STREAM(t), which is an error: a model is a batch query."""
    call = node.this.meta.get("call")
    arguments = node.this.expressions
    if not isinstance(call, Call) or call.name != "stream" or [type(a) for a in arguments] != [exp.Column]:
        return None
    name = [part.name for part in arguments[0].parts]
    walk.seen.add(id(node.this))
    walk.error(
        "UNSUPPORTED_SYNTAX",
        f"STREAM {'.'.join(name)} is a streaming read, and a model is a batch query. Remove the word STREAM: changes "
        "of the table are found without it",
        walk.at(call.start),
    )
    return name


def _matching(names: object, name: str) -> str | None:
    """The key that names the same table; case and back quotes do not matter."""
    wanted = table_key(name)
    return next((key for key in names if table_key(str(key)) == wanted), None)  # type: ignore[attr-defined]


def _view(walk: Walk, node: exp.Expr, view: str, parts: list[str]) -> Relation:
    """A view underneath, looked through: what is hidden in it counts as if it stood here."""
    place = walk.place(node)
    if any(step.startswith(f"{view} (") or step == view for step in walk.text.via):
        walk.error("RECURSIVE_VIEW", f"view {view} reads itself", place)
        return Relation((OpenPart(digest("view", view)),), digest("view", view), flags=frozenset({"opaque"}))
    parsed = parse(walk.views[view])
    if isinstance(parsed, QueryError):
        walk.error(
            "VIEW_PARSE_ERROR",
            f"the text of view {view} cannot be read: {parsed.message} (line {parsed.line}, column {parsed.column} "
            "of the view). Read its tables directly, or write the view so that it parses",
            place,
        )
        walk.flag("opaque")
        return Relation(
            (OpenPart(digest("view", view)),), digest("view", walk.views[view]), kind="view", names=tuple(parts)
        )
    walk.view_names.add(view.lower())
    with walk.reading(WalkedText(parsed, (*walk.text.via, view), place)):
        relation = walk.query(walk, parsed.tree, Env(label=view))
    print_ = digest("view", relation.fingerprint, literals(parsed))
    return replace(relation, fingerprint=print_, kind="view", names=tuple(parts))


def _table_function(walk: Walk, node: exp.Expr, scope: Scope) -> Relation:
    """`range(10)`, `explode(…)` in FROM. What no catalogue knows is opaque."""
    call = node.meta.get("call")
    name = call.name if isinstance(call, Call) else node.key
    if name == "table" or name == "identifier":
        walk.error(
            "UNSUPPORTED_SYNTAX", f"{name.upper()}(…) hides which table is read. Name the table", walk.place(node)
        )
        walk.flag("opaque")
        walk.seen.update(id(inner) for inner in node.walk())
        return Relation((OpenPart(digest(name, sql_text(node))),), digest(name, sql_text(node)), kind="function")
    facts = value(walk, node, scope)
    walk.flag("generator")
    if walk.level(name) is None:
        walk.flag("opaque")
    columns = _TABLE_FUNCTION_COLUMNS.get(name) or generated_names(node, scope)
    # a map gives key and value instead of col
    items = typed(generated_fields(facts, columns), node, scope) or (OpenPart(facts.fingerprint, facts.taint),)
    rows = CLEAN if has_fixed_rows(node) else facts.taint
    return Relation(items, digest("tvf", facts.fingerprint), rows, reads=_reads(walk, name), kind="function")


def _lateral(walk: Walk, node: exp.Lateral, scope: Scope, env: Env) -> tuple[str, Relation]:
    alias_node = node.args.get("alias")
    names = [c.name for c in alias_node.args.get("columns") or []] if alias_node is not None else []
    if isinstance(node.this, exp.Subquery | exp.Query):
        relation = walk.query(walk, node.this, replace(env, outer=scope, label=node.alias or env.label))
        return node.alias, renamed(walk, replace(relation, kind="subquery"), names, node)
    inner = node.this
    while isinstance(inner, exp.Dot):
        inner = inner.expression
    call = inner.meta.get("call")
    name = call.name if isinstance(call, Call) else inner.key
    facts = value(walk, node.this, scope)
    walk.flag("generator")
    if walk.level(name) is None:
        walk.flag("opaque")
    made = generated_fields(facts, names or generated_names(node.this, scope))
    items = typed(made, node.this, scope) or (OpenPart(digest("generated", facts.fingerprint), facts.taint),)
    # LATERAL VIEW takes generators, which are made of their arguments
    reads = () if node.args.get("view") else _reads(walk, name)
    rows = CLEAN if has_fixed_rows(node.this) else facts.taint
    return node.alias, Relation(items, digest("lateral", facts.fingerprint), rows, reads=reads, kind="function")


def _reads(walk: Walk, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What a table function reads beside its arguments. A function of the user's may read tables, whatever it is declared
    to be."""
    made = level_of(name) == Level.DETERMINISTIC and not is_marked(name, Mark.READS)
    return () if made else ((f"{name}()", walk.text.via),)


def add_lateral(walk: Walk, node: exp.Expr, scope: Scope, env: Env) -> Taint:
    """Put one LATERAL VIEW or lateral subquery into `scope`. Returns what decides the rows of it."""
    return add_source(walk, node, scope, env)


def add_join(walk: Walk, node: exp.Expr, scope: Scope, env: Env) -> Taint:
    """One JOIN: its right side, ON or USING, and what its partners depend on."""
    before, left = set(scope.sources), scope.star
    scope.star = Shown()
    rows = [add_source(walk, node.this, scope, replace(env))]
    right = scope.star
    added = [key for key in scope.sources if key not in before]
    kind = join_kind(node)
    walk.flag("join")
    if kind in ("LEFT", "RIGHT", "FULL"):
        walk.flag("outer_join")
    if kind in HIDING:
        walk.flag("semi_join")
    on = node.args.get("on")
    taints: list[Taint] = []
    if on is not None and not (isinstance(on, exp.Boolean) and on.this):
        facts = conjuncts(walk, on, scope, "JOIN ON")
        forbid_per_row(walk, "JOIN", facts.taint, "JOIN ON", rows_key(scope, walk))
        taints.append(facts.taint)
    compared = using = [item.name for item in node.args.get("using") or []]
    matched: list[str] = []
    if str(node.args.get("method") or "").upper() == "NATURAL":
        using = common_names(*([c.own.name for c in s.columns if isinstance(c.own, Field)] for s in (left, right)))
        # those that differ in case alone are not compared; what is drawn may not come so near to a join
        names = {f.name.lower() for key in before for f in scope.sources[key].fields}
        compared = [f.name for key in added for f in scope.sources[key].fields if f.name.lower() in names]
    for name in compared:
        keys = scope.using.setdefault(name.lower(), set(before))
        keys.update(added)
        sides = [found for key in scope.sources if key in keys and (found := scope.sources[key].find(name)) is not None]
        taint = union(f.taint for f in sides)
        forbid_per_row(walk, "JOIN", taint, f"JOIN USING ({name})", rows_key(scope, walk))
        taints.append(taint)
        matched.append(digest(name.lower(), *(f.fingerprint for f in sides)))
        if kind in FILLING_LEFT:
            scope.padded[name.lower()] = f"{scope.padded.get(name.lower(), '')} {len(sides)} {kind}"
    join_stars(scope, left, right, kind, using)
    if kind in HIDING:
        scope.hidden.update(added)
    if matched:
        noted(walk, node, *matched)
    taint = union(taints)
    origin = taint.worst() if taint else None
    line, column = walk.place(node)
    walk.clauses.setdefault(
        ("JOIN", line, column),
        ClauseVerdict(
            "JOIN", f"{join_words(node)} JOIN".lstrip(), scope.label, line, column, taint.level,
            origin.cause("JOIN") if origin else None,
        ),
    )  # fmt: skip
    return union([*rows, taint])
