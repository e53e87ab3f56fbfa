"""The level of one expression: which calls its value depends on, and its fingerprint.

An expression has the level of its worst part. Names are resolved as Spark does it: lambda parameters, columns of FROM
items, lateral column aliases, keyword functions (CURRENT_DATE, USER), then the scopes around.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.analysis import orders
from spark_mv.query.analysis.clock_strings import (
    BESIDE_TIMES,
    words_as_time,
    words_beside_times,
    words_in_call,
    written_arguments,
)
from spark_mv.query.analysis.containers import held
from spark_mv.query.analysis.field_types import column_type
from spark_mv.query.analysis.fingerprint import fingerprint, resolved
from spark_mv.query.analysis.resolve import identifier_parts, name_value
from spark_mv.query.analysis.rules import forbid_per_row, rows_key
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import CLEAN, Field, Taint, TaintedValue, digest, union
from spark_mv.query.analysis.walk import Env, Walk
from spark_mv.query.functions.catalogue import Kind, Mark, is_kind, is_marked
from spark_mv.query.functions.level import Level
from spark_mv.query.solver.types import equal_is_same
from spark_mv.query.syntax.clock_words import level_of_call, time_type
from spark_mv.query.syntax.parse import sql_text
from spark_mv.query.syntax.parser import Call

_BUILT_IN = frozenset({"builtin.", "system.builtin."})


def value(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """What `node` depends on in `scope`. Unknown names and functions are reported in `walk`."""
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        facts = handler(walk, node, scope)
    elif "call" in node.meta and isinstance(node.meta["call"], Call):
        facts = _call(walk, node, scope)
    elif isinstance(node, exp.Func):
        facts = _structural(walk, node, scope)
    else:
        facts = _parts(walk, node, scope)
    if not facts.fingerprint:
        facts = replace(facts, fingerprint=fingerprint(walk, node))
    resolved(walk, node, facts.fingerprint)
    return facts


def _parts(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    parts = [value(walk, item, scope) for item in node.iter_expressions()]
    return TaintedValue(
        union(part.taint for part in parts), "", any(part.aggregate for part in parts), held(node, parts)
    )


# -- names ----------------------------------------------------------------------------------------------------------


def _column(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    parts = [part.name for part in node.parts] if isinstance(node, exp.Column) else [node.name]
    if isinstance(node.this, exp.Star):
        return _star(walk, node, scope)
    return name_value(walk, node, parts, scope)


def _star(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """`*` as an argument: count(*) counts rows, struct(*) takes every column."""
    relations = [relation for _, relation in scope.visible()]
    if isinstance(node, exp.Column):
        named = scope.source([part.name for part in node.parts[:-1]])
        relations = [named] if named is not None else relations
    items = [item for relation in relations for item in relation.items]
    names = [f"{item.name if isinstance(item, Field) else '*'}={item.fingerprint}" for item in items]
    star = node.this if isinstance(node.this, exp.Star) else node
    for key in ("replace", "rename"):
        for item in star.args.get(key) or []:
            value(walk, item.this, scope)
    return TaintedValue(union(item.taint for item in items), digest("star", *names, *_star_words(walk, star)))


def _star_words(walk: Walk, star: exp.Expr) -> list[str]:
    """EXCEPT (…) and its like."""
    return [fingerprint(walk, star)] if any(star.args.values()) else []


# -- calls ----------------------------------------------------------------------------------------------------------


def _call(walk: Walk, node: exp.Expr, scope: Scope, qualifier: str = "") -> TaintedValue:
    call: Call = node.meta["call"]
    walk.seen.add(id(node))
    if call.name == "identifier" and isinstance(node, exp.Anonymous) and not qualifier:
        if (named := identifier_parts(node)) is not None:
            return name_value(walk, node, named, scope)
        walk.error("UNSUPPORTED_SYNTAX", "IDENTIFIER(…) hides which column is read. Name the column", walk.place(node))
    if call.name == "table" and [type(part) for part in node.expressions] == [exp.Column]:
        # an argument of a table function; what the function makes of it is the function's level
        name = ".".join(part.name for part in node.expressions[0].parts)
        walk.frames[-1].reads.append((name, walk.text.via))
        return TaintedValue(CLEAN, digest("table", name.lower()))
    if call.keyword and is_marked(call.name, Mark.KEYWORD):
        return name_value(walk, node, [call.name], scope)
    if call.name == "count" and isinstance(node.this, exp.Star):
        resolved(walk, node.this, digest("rows"))
        return TaintedValue(CLEAN, "", True)
    parts = _arguments(walk, node, scope)
    name = f"{qualifier}{call.name}"
    level = _call_level(walk, node, call.name, qualifier)
    if level == Level.AI:
        forbid_per_row(walk, "AI argument", parts.taint, f"{name}(…)", rows_key(scope, walk))
        told_apart = walk.told_apart.get(call.start, True) and not _hides_rows(walk, node, scope)
        walk.told_apart[call.start] = told_apart and not walk.text.via
    if level == Level.ORDER_DEPENDENT and orders.is_ordered_aggregate(walk, node, call.name, scope, value):
        level = Level.DETERMINISTIC
    shown = call.name if qualifier in _BUILT_IN else name
    own = union([walk.origin(shown, level, walk.at(call.start)), words_in_call(walk, node, call.name, scope)])
    aggregate = parts.aggregate or is_kind(call.name, Kind.AGGREGATE)
    # current_date() is current_date
    same = is_marked(call.name, Mark.KEYWORD) and call.empty and not qualifier
    written = (
        () if own or shown != call.name else parts.parts
    )  # a function of that name in a schema makes what it likes
    return TaintedValue(union([own, parts.taint]), digest("call", call.name) if same else "", aggregate, written)


def _hides_rows(walk: Walk, node: exp.Expr, scope: Scope) -> bool:
    """Whether rows that differ in what a call is given may have equal values in all columns that it reads; also where that is not known."""
    nested = (inner for inner in node.walk() if inner is not node)
    if any(isinstance(inner, exp.Query | exp.Star) or _is_other_ai(walk, inner) for inner in nested):
        return True
    return any(not equal_is_same(column_type(column, scope) or "") for column in node.find_all(exp.Column))


_TEXTS = frozenset({"ai_gen", "ai_summarize", "ai_translate", "ai_mask", "ai_fix_grammar", "ai_analyze_sentiment"})
"""AI functions whose answers are texts."""


def _is_other_ai(walk: Walk, node: exp.Expr) -> bool:
    """Whether it is an AI call whose answer may be no text."""
    call = node.meta.get("call")
    return isinstance(call, Call) and walk.level(call.name) is Level.AI and call.name not in _TEXTS


def _arguments(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """The arguments; lambda parameters take the taint of the arguments that are no lambdas."""
    lambdas = [item for item in node.iter_expressions() if isinstance(item, exp.Lambda)]
    if not lambdas:
        return _parts(walk, node, scope)
    parts = [value(walk, item, scope) for item in node.iter_expressions() if not isinstance(item, exp.Lambda)]
    inputs = union(part.taint for part in parts)
    taints = [inputs]
    for item in lambdas:
        names = [parameter.name.lower() for parameter in item.expressions]
        inner = Scope(parent=scope)
        depth = _lambda_depth(scope)
        inner.locals_ = {n: TaintedValue(inputs, digest("parameter", depth, i)) for i, n in enumerate(names)}
        body = value(walk, item.this, inner)
        taints.append(body.taint)
        resolved(walk, item, digest("lambda", len(names), body.fingerprint))
    return TaintedValue(union(taints), "", any(part.aggregate for part in parts))


def _lambda_depth(scope: Scope | None) -> int:
    depth = 0
    while scope is not None:
        depth, scope = depth + bool(scope.locals_), scope.parent
    return depth


def _call_level(walk: Walk, node: exp.Expr, name: str, qualifier: str) -> Level:
    own = f"{qualifier}{name}" if qualifier not in _BUILT_IN else name
    declared = walk.declared.get(own, walk.declared.get(name))
    if declared is not None:
        if declared is Level.DETERMINISTIC:
            walk.own_functions.add(own)
        return declared
    if own != name:
        return Level.NONDETERMINISTIC
    level = level_of_call(node.meta["call"])
    if level is None:
        return Level.NONDETERMINISTIC
    arguments = written_arguments(node)
    if name == "aes_encrypt":
        mode = arguments[2] if len(arguments) > 2 else None
        ecb = isinstance(mode, exp.Literal) and mode.name.upper() == "ECB"
        return Level.DETERMINISTIC if ecb or len(arguments) > 4 else level
    return level


def _structural(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """A node sqlglot calls a function although none was written by name (AND, CASE, CAST), or made up while it
    parsed. By its class, and never better than that."""
    parts = _parts(walk, node, scope)
    names: list[str] = type(node).sql_names() if isinstance(node, exp.Func) else []
    level = max((walk.level(name) or Level.DETERMINISTIC for name in names), default=None)
    if isinstance(node, exp.AnonymousAggFunc | exp.Anonymous):
        level = Level.NONDETERMINISTIC
    if level is None or level == Level.DETERMINISTIC or isinstance(node.parent, exp.Func):
        return parts
    own = walk.origin(names[0].lower(), level, walk.place(node))
    return TaintedValue(union([own, parts.taint]), "", parts.aggregate)


def _beside_times(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """Strings beside a date or timestamp are cast to it, and the cast knows words of the clock."""
    return _with_clock(_parts(walk, node, scope), words_beside_times(walk, node, scope))


def _with_clock(facts: TaintedValue, clock: Taint) -> TaintedValue:
    return replace(facts, taint=union([clock, facts.taint])) if clock else facts


def _cast(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """CAST and typed literals."""
    inner = value(walk, node.this, scope)
    to = node.args.get("to")
    # sqlglot writes the type TIME as TIMESTAMP
    time = isinstance(to, exp.DataType) and to.this == exp.DType.TIME
    kind = "" if time or not isinstance(to, exp.Expr) else time_type(sql_text(to))
    clock = words_as_time(walk, node.this, kind, scope) if kind else CLEAN
    return TaintedValue(union([clock, inner.taint]), "", inner.aggregate)


def _dot(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """`schema.function(…)`, or a field of a struct."""
    inner = node.expression
    if isinstance(inner, exp.Func) and "call" in inner.meta:
        path = sql_text(node.this).replace("`", "").lower()
        return _call(walk, inner, scope, qualifier=f"{path}.")
    left = value(walk, node.this, scope)
    if isinstance(inner, exp.Identifier | exp.Star):
        return left.inner([inner.name])
    right = value(walk, inner, scope)
    return TaintedValue(union([left.taint, right.taint]), "")


def _bracket(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """`struct['field']`, or an element of an array or a map."""
    named = node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(named, exp.Literal) and named.is_string and (inner := value(walk, node.this, scope)).fields:
        return inner.inner([named.name])
    return _beside_times(walk, node, scope)


def _plain(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    return TaintedValue(CLEAN, "")


def _identifier(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """A bare identifier: a lambda parameter, or the label of a field."""
    here: Scope | None = scope
    while here is not None:
        if node.name.lower() in here.locals_:
            return here.locals_[node.name.lower()]
        here = here.parent
    return TaintedValue(CLEAN, digest("identifier", node.name))


def _paren(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    return value(walk, node.this, scope)


def _named(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """`expression AS name`: the name of a struct field is part of the value, so it stays in the fingerprint."""
    inner = value(walk, node.this, scope)
    return TaintedValue(inner.taint, digest("named", node.alias, inner.fingerprint), inner.aggregate)


def _property(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    inner = value(walk, node.expression, scope)
    return TaintedValue(inner.taint, "", inner.aggregate, ((node.name, inner),))


def _placeholder(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    walk.error(
        "UNSUPPORTED_SYNTAX",
        f"parameter marker {sql_text(node)} has no value here. Write the value, or a dbt variable",
        _marker_place(walk, node),
    )
    return _plain(walk, node, scope)


def _marker_place(walk: Walk, node: exp.Expr) -> tuple[int, int]:
    """The place of `:name` or `?`, of which the tree remembers none: the first one written that way."""
    tokens = walk.text.parsed.tokens
    for token, following in zip(tokens, [*tokens[1:], None], strict=False):
        name = node.args.get("this")
        named = following is not None and following.text == name and token.token_type == TokenType.COLON
        if token.token_type == TokenType.PLACEHOLDER if name is None else named:
            return walk.at(token.start)
    return walk.place(node)


def _subquery(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    """A scalar subquery, EXISTS or IN (SELECT …) depends on its columns and on what decides its rows."""
    label = f"{scope.label}.subquery" if scope.label else "subquery"
    relation = walk.query(walk, node, Env(scope.ctes, scope, label, exists=isinstance(node.parent, exp.Exists)))
    walk.frames[-1].reads.extend(relation.reads)
    walk.flag("subquery", *({"opaque"} & relation.flags))
    taint = union([*(item.taint for item in relation.items), relation.rows])
    return TaintedValue(taint, digest("subquery", relation.fingerprint))


def _window(walk: Walk, node: exp.Expr, scope: Scope) -> TaintedValue:
    return orders.window_value(walk, node, scope, value)


_HANDLERS: dict[type[exp.Expr], Callable[[Walk, exp.Expr, Scope], TaintedValue]] = {
    exp.Column: _column,
    exp.Star: _star,
    exp.Literal: _plain,
    exp.Null: _plain,
    exp.Boolean: _plain,
    exp.DataType: _plain,
    exp.Var: _plain,
    exp.Identifier: _identifier,
    exp.Paren: _paren,
    exp.Alias: _named,
    exp.PropertyEQ: _property,
    exp.Kwarg: _property,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Dot: _dot,
    **dict.fromkeys(BESIDE_TIMES, _beside_times),
    exp.Bracket: _bracket,
    exp.Placeholder: _placeholder,
    exp.Parameter: _placeholder,
    exp.Select: _subquery,
    exp.Subquery: _subquery,
    exp.Union: _subquery,
    exp.Intersect: _subquery,
    exp.Except: _subquery,
    exp.Window: _window,
}
