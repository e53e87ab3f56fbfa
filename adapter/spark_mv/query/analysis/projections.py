"""The output columns that one item of a select list gives: an expression, a star, a generator, a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from spark_mv.query.analysis.containers import generated_fields
from spark_mv.query.analysis.field_types import column_type, deriving, expression_type, struct_fields
from spark_mv.query.analysis.fingerprint import fingerprint, resolved
from spark_mv.query.analysis.generators import generated_names, has_fixed_rows, typed
from spark_mv.query.analysis.levels import value
from spark_mv.query.analysis.output_names import output_name
from spark_mv.query.analysis.resolve import name_value
from spark_mv.query.analysis.scopes import Scope, StarColumn
from spark_mv.query.analysis.taint import Field, OpenPart, Relation, TaintedValue, digest, union
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.functions.catalogue import Kind, Mark, is_kind, is_marked
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.parse import sql_text
from spark_mv.query.syntax.parser import Call


def project(walk: Walk, node: exp.Expr, scope: Scope, outputs: dict[str, TaintedValue]) -> list[Field | OpenPart]:
    """The output columns of one item of the select list."""
    if isinstance(node, exp.Star):
        return _expand(walk, node, scope.star.columns, scope)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        qualifier = [part.name for part in node.parts[:-1]]
        relation = scope.source(qualifier)
        here: Scope | None = scope
        while relation is None and here is not None and here.parent is not None:
            here = here.parent
            relation = here.source(qualifier)
        if relation is not None and here is not None:
            _resolve_star(walk, node, relation, scope)
            # its own columns, not what a join shows in their place
            own = here.star.qualified(lambda column: here.sources.get(column.source) is relation)
            if not own:  # of a FROM that is still being read: `FROM t, LATERAL (SELECT t.*)`
                own = [StarColumn("", item, item) for item in relation.items]
            return _expand(walk, node.this, [column._replace(shown=column.own) for column in own], scope)
        return _fields_of(name_value(walk, node, qualifier, scope), node.this, _struct_type(qualifier, scope))
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):  # a path of more than four names
        return _fields_of(value(walk, node.this, scope), node.expression, expression_type(node.this, scope) or "")
    if isinstance(node, exp.QueryTransform):
        return _script(walk, node, scope)
    if isinstance(node, exp.Aliases):
        facts = value(walk, node.this, scope)
        _note_generator(walk, node.this)
        made = typed(generated_fields(facts, [name.name for name in node.expressions]), node.this, scope)
        outputs.update({field.name.lower(): field.value for field in made})
        return list(made)
    inner = node.this if isinstance(node, exp.Alias) else node
    facts = value(walk, inner, scope)
    _note_generator(walk, inner)
    call = inner.meta.get("call")
    if isinstance(node, exp.Alias):
        if _is_generator(inner):
            field = typed(generated_fields(facts, [node.alias])[:1], inner, scope)[0]
        else:
            field = replace(facts.named(node.alias), derive=deriving(inner, scope))
        outputs[node.alias.lower()] = field.value
        return [replace(field, node=inner, scope=scope)]
    if isinstance(call, Call) and _is_generator(inner):
        names = generated_names(inner, scope)
        if not (names or facts.parts):
            names = {"explode": ["col"], "posexplode": ["pos", "col"]}.get(call.name.removesuffix("_outer"))
        return list(typed(generated_fields(facts, names), inner, scope)) or [
            OpenPart(digest("generated", facts.fingerprint), facts.taint)
        ]
    column = (
        isinstance(call, Call)
        and call.keyword
        and is_marked(call.name, Mark.KEYWORD)
        and facts.fingerprint != digest("call", call.name)
    )
    return [
        replace(
            facts.named(
                call.name if column and isinstance(call, Call) else output_name(inner, written_text(walk, node))
            ),
            node=inner,
            derive=deriving(inner, scope),
            scope=scope,
        )
    ]


def _fields_of(struct: TaintedValue, star: exp.Expr, kind: str) -> list[Field | OpenPart]:
    """`struct.*`, by the fields that are written out, or by those of its type."""
    kinds = struct_fields(kind)
    fields = struct.fields or [name for name, _ in kinds]
    if not fields:
        return [OpenPart(digest("fields", struct.fingerprint), struct.taint)]
    dropped = {item.name.lower() for item in star.args.get("except_") or [] if len(_parts(item)) == 1}
    return [
        replace(struct.inner([name]).named(name), type=dict(kinds).get(name))
        for name in fields
        if name.lower() not in dropped
    ]


def _resolve_star(walk: Walk, node: exp.Expr, relation: Relation, scope: Scope) -> None:
    """`a.*` counts as the star of the first, second … FROM item."""
    places = [id(item) for item in scope.sources.values()]
    at = places.index(id(relation)) if id(relation) in places else relation.fingerprint
    resolved(walk, node, digest("star of", at, fingerprint(walk, node.this)))


def written_text(walk: Walk, node: exp.Expr) -> str:
    """The expression as written, '' where its place is not known."""
    start, end = node.meta.get("span") or (0, 0)
    return walk.text.parsed.sql[start:end]


def _struct_type(path: list[str], scope: Scope) -> str:
    """The type of a struct column, or of a struct in one, that `path.*` takes apart; '' if it is not known."""
    for split in (2, 1):
        if len(path) < split:
            continue
        parts = [exp.to_identifier(part) for part in path[:split]]
        column = exp.Column(this=parts[-1], table=parts[0] if split == 2 else None)
        kind = column_type(column, scope) or ""
        for part in path[split:]:
            kind = next((k for name, k in struct_fields(kind) if name.lower() == part.lower()), "")
        if kind.lower().startswith("struct<"):
            return kind
    return ""


def makes_rows(node: exp.Expr) -> bool:
    """Whether an item of the select list is a generator, which decides how many rows there are."""
    inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    return isinstance(inner, exp.QueryTransform) or (_is_generator(inner) and not has_fixed_rows(inner))


def _is_generator(node: exp.Expr) -> bool:
    call = node.meta.get("call")
    return isinstance(call, Call) and is_kind(call.name, Kind.GENERATOR)


def _script(walk: Walk, node: exp.Expr, scope: Scope) -> list[Field | OpenPart]:
    """`TRANSFORM (…) USING 'script' AS (…)`: any program, so its rows are drawn like an undeclared function's values."""
    inputs = [value(walk, item, scope) for item in node.expressions]
    walk.seen.add(id(node))
    walk.flag("opaque", "generator")
    call = node.meta.get("call")
    place = walk.at(call.start) if isinstance(call, Call) else walk.place(node)
    taint = union([walk.origin("TRANSFORM", Level.NONDETERMINISTIC, place), *(v.taint for v in inputs)])
    schema = node.args.get("schema")
    names = [item.name for item in schema.expressions] if isinstance(schema, exp.Expr) else ["key", "value"]
    text = digest("script", sql_text(node))
    return [Field(name, taint, digest(text, i)) for i, name in enumerate(names)]


def _note_generator(walk: Walk, node: exp.Expr) -> None:
    if _is_generator(node):
        walk.flag("generator")


def _expand(walk: Walk, star: exp.Expr, columns: Sequence[StarColumn], scope: Scope) -> list[Field | OpenPart]:
    columns = list(columns)
    for item in star.args.get("except_") or []:
        columns = _without(columns, [part.name for part in _parts(item)], scope)
    items = [column.shown for column in columns]
    for replacement in star.args.get("replace") or []:
        facts = value(walk, replacement.this, scope)
        name = replacement.alias.lower()
        made = Field(replacement.alias, facts.taint, facts.fingerprint)
        at = next((i for i, item in enumerate(items) if isinstance(item, Field) and item.name.lower() == name), None)
        if at is None:
            items.append(made)
        else:
            items[at] = made
    return items


def _parts(name: exp.Expr) -> list[exp.Expr]:
    return list(name.parts) if isinstance(name, exp.Column | exp.Dot) else [name]


def _without(columns: list[StarColumn], name: Sequence[str], scope: Scope) -> list[StarColumn]:
    """The columns of a star without that of `EXCEPT (name)`: a column, one of a FROM item, or a field of a column."""
    *qualifier, last = (part.lower() for part in name)
    owner = scope.source(qualifier) if qualifier else None

    def is_it(column: StarColumn) -> bool:
        if not isinstance(column.own, Field) or column.own.name.lower() != last:
            return False
        return not qualifier or (owner is not None and scope.sources.get(column.source) is owner)

    left = [column for column in columns if not is_it(column)]
    if len(left) < len(columns) or not qualifier:
        return left
    # a struct without one of its fields
    return [
        column._replace(
            shown=replace(item, fingerprint=digest("except", item.fingerprint, *name), type=None, derive=None, parts=())
        )
        if isinstance(item := column.shown, Field) and item.name.lower() in qualifier
        else column
        for column in columns
    ]
