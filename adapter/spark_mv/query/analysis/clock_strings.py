"""Words of the clock in strings, found where Spark casts a string to a date or timestamp. See syntax/clock_words.py."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from spark_mv.query.analysis.field_types import expression_type
from spark_mv.query.analysis.scopes import Scope, find_plain, find_qualified
from spark_mv.query.analysis.taint import CLEAN, Taint, union
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.clock_words import argument_types, clock_text, constant_text, leaves, may_spell, time_type
from spark_mv.query.syntax.parser import Call

BESIDE_TIMES: tuple[type[exp.Expr], ...] = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In,
    exp.Case, exp.Add, exp.Sub, exp.Bracket,
)  # fmt: skip
"""Nodes that are no calls and give their operands one type."""
_ONE_TYPE = frozenset(
    [
        "array", "array_append", "array_contains", "array_insert", "array_position", "array_prepend", "array_remove",
        "between", "case", "coalesce", "decode", "element_at", "equal_null", "greatest", "iff", "if", "ifnull", "in",
        "lag", "lead", "least", "map", "map_contains_key", "nullif", "nvl", "nvl2", "sequence", "try_element_at",
    ]
)  # fmt: skip


def words_as_time(walk: Walk, node: exp.Expr, kind: str, scope: Scope) -> Taint:
    """The clock in a string that becomes a `kind`: a constant, a branch of CASE, a column of one constant time of day."""
    found = []
    for leaf in leaves(node):
        text = constant_text(leaf)
        if text is None and isinstance(leaf, exp.Column):
            text = _column_text(leaf, scope)
            if text is not None and (read := clock_text(text, kind)) is not None and read.word:
                text = None  # Spark knows the words in constants alone
        if text is not None and clock_text(text, kind) is not None:
            found.append(walk.origin(f"'{text.strip()}'", Level.COMMAND, walk.place(leaf)))
        elif text is None and may_spell(leaf):
            found.append(walk.origin(f"'{_call_name(leaf)}(…)'", Level.COMMAND, walk.place(leaf)))
    return union(found)


def words_in_call(walk: Walk, node: exp.Expr, name: str, scope: Scope) -> Taint:
    """The clock in the arguments of a function call."""
    arguments = written_arguments(node)
    # sqlglot does not keep the order of arguments; strings that are units or formats are no words of the clock
    kinds = sorted(set(argument_types(name, len(arguments)).values()))
    own = union(words_as_time(walk, part, kind, scope) for kind in kinds for part in arguments)
    beside = words_beside_times(walk, node, scope) if name in _ONE_TYPE else CLEAN
    return union([own, beside])


def words_beside_times(walk: Walk, node: exp.Expr, scope: Scope) -> Taint:
    """The clock in strings that stand beside a date or timestamp, which they are cast to."""
    return union(_words_beside(walk, operands, scope) for operands in _operands(node))


def _words_beside(walk: Walk, operands: list[exp.Expr], scope: Scope) -> Taint:
    suspects = [part for part in operands if any(_suspect(leaf, scope) for leaf in leaves(part))]
    if not suspects:
        return CLEAN
    kinds = {kind for part in operands if part not in suspects and (kind := _kind(part, scope))}
    return union(words_as_time(walk, part, kind, scope) for part in suspects for kind in sorted(kinds))


def _suspect(leaf: exp.Expr, scope: Scope) -> bool:
    text = constant_text(leaf)
    if text is None:
        return may_spell(leaf) and not _kind(leaf, scope)
    return clock_text(text, "timestamp") is not None


def _operands(node: exp.Expr) -> Iterator[list[exp.Expr]]:
    """The operands of a node that get one type: of CASE x WHEN, what is compared is one group and what comes out another."""
    if isinstance(node, exp.Case) and node.this is not None:
        yield [node.this, *(branch.this for branch in node.args.get("ifs") or [])]
    if isinstance(node, exp.Case | exp.If):
        yield list(leaves(node))
        return
    # the keys and values of a map
    yield [
        inner
        for part in node.iter_expressions()
        for inner in (part.expressions if isinstance(part, exp.Array) and "call" not in part.meta else [part])
    ]


def _kind(node: exp.Expr, scope: Scope) -> str:
    """The type of time that an operand has or holds; where it is not known, that of a time that stands in it."""
    if isinstance(node, exp.Interval):
        return "timestamp"
    while not scope.sources and scope.parent is not None:
        scope = scope.parent  # that of a lambda has no columns
    kind = expression_type(node, scope)
    if kind is not None:
        return time_type(_element(kind))
    around = node.find_ancestor(exp.Lambda)
    # the type of a parameter is that of an element of an array beside the lambda
    beside = (
        [part for part in around.parent.iter_expressions() if part is not around] if around and around.parent else []
    )
    for part in (inner for tree in [node, *beside] for inner in tree.walk()):
        if isinstance(part, exp.Cast | exp.Column):
            inner = expression_type(part, scope) if isinstance(part, exp.Column) else part.to.sql("spark")
            if inner and time_type(_element(inner)):
                return time_type(_element(inner))
    return ""


def _element(kind: str) -> str:
    """The type of an array's elements, or of a map's keys; any other type as it is."""
    word = kind.lower().removeprefix("array<")
    return word.removeprefix("map<").split(",")[0] if word.startswith("map<") else word.rstrip(">")


def _column_text(node: exp.Column, scope: Scope) -> str | None:
    """The constant that a column of a CTE or subquery is."""
    if isinstance(node.this, exp.Star):
        return None
    parts = [part.name for part in node.parts]
    found = find_plain(scope, parts[0])[0] if len(parts) == 1 else (find_qualified(scope, parts) or (None,))[0]
    return constant_text(found.node) if found is not None and found.node is not None else None


def _call_name(node: exp.Expr) -> str:
    call = node.meta.get("call")
    return call.name if isinstance(call, Call) else node.key


def written_arguments(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call, as far as sqlglot keeps their order (this, expression, …, expressions)."""
    found: list[exp.Expr] = []
    for key in node.arg_types:
        item = node.args.get(key)
        for part in item if isinstance(item, list) else [item]:
            if isinstance(part, exp.Expr):
                found.append(part)
    return found
