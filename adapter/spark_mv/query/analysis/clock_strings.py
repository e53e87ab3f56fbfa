"""Words of the clock in strings, found where Spark casts a string to a date or timestamp. See syntax/clock_words.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from spark_mv.query.analysis.field_types import element_type, expression_type, field_type, inner_type, map_types
from spark_mv.query.analysis.scopes import Scope, find_plain, find_qualified
from spark_mv.query.analysis.taint import CLEAN, Field, Taint, union
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.functions.catalogue import level_of
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

_MAKES_TIMES = frozenset(
    [
        "try_to_timestamp", "try_to_date", "to_timestamp_ltz", "to_timestamp_ntz", "try_make_timestamp", "try_make_timestamp_ltz",
        "try_make_timestamp_ntz", "make_timestamp_ntz", "to_utc_timestamp", "from_utc_timestamp", "convert_timezone", "localtimestamp", "window",
        "session_window", "window_time", "dateadd", "curdate",
    ]
)  # fmt: skip
"""Functions that give times, or hold them, of which the solver knows no type."""
_TIME_IN_TYPE = re.compile(r"\b(date|timestamp(_ltz|_ntz)?)\b", re.IGNORECASE)


def words_as_time(walk: Walk, node: exp.Expr, kind: str, scope: Scope) -> Taint:
    """The clock in a string that becomes a `kind`: a constant, a branch of CASE, a column of one constant time of day."""
    found = []
    for leaf in leaves(node):
        text = constant_text(leaf)
        if text is None and isinstance(leaf, exp.Column):
            text = _column_time(leaf, kind, scope)
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
    beside = {_kind(part, scope) for part in operands if part not in suspects}
    # beside what may be a time, for all that is known, the word is the clock
    kinds = sorted(kind for kind in beside if kind) or ["timestamp"] * (None in beside)
    return union(words_as_time(walk, part, kind, scope) for part in suspects for kind in kinds)


def _suspect(leaf: exp.Expr, scope: Scope) -> bool:
    text = constant_text(leaf)
    if text is None and isinstance(leaf, exp.Column):
        text = _column_time(leaf, "timestamp", scope)
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


def _kind(node: exp.Expr, scope: Scope) -> str | None:
    """The type of time that an operand has or holds, that of a time that stands in it; '' where it is none, None where that is not known."""
    if isinstance(node, exp.Interval):
        return "timestamp"
    if isinstance(node, exp.Null | exp.Boolean):
        return ""
    while not scope.sources and scope.parent is not None:
        scope = scope.parent  # that of a lambda has no columns
    kind = _type(node, scope)
    if kind is not None:
        return time_type(_element(kind))
    beside = _beside_lambda(node) if isinstance(node, exp.Column | exp.Identifier) else []
    for part in (inner for tree in [node, *beside] for inner in tree.walk()):
        if isinstance(part, exp.Cast | exp.Column):
            inner = _type(part, scope) if isinstance(part, exp.Column) else part.to.sql("spark")
            if inner and time_type(_element(inner)):
                return time_type(_element(inner))
    seen: set[int] = set()
    return None if any(_may_be_time(part, scope, seen) for part in [node, *beside]) else ""


def _may_be_time(node: exp.Expr, scope: Scope, seen: set[int]) -> bool:
    """Whether an expression of unknown type may be a date or timestamp: one is made or held by something in it, or nobody knows of it.
    `seen`: what has been looked at on the way, which is not looked at again."""
    if id(node) in seen:
        return False
    seen.add(id(node))
    for part in node.walk():
        call = part.meta.get("call")
        if isinstance(call, Call) and (level_of(call.name) is None or call.name in _MAKES_TIMES):
            return True
        if isinstance(part, exp.Cast):
            kind = part.to.sql("spark")
        elif isinstance(part, exp.Literal):
            kind = part.name if part.is_string and node is not part else ""  # a schema: from_json(s, 'd date')
        elif isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
            if _of_unknown(part, scope, seen):
                return True
            kind = _type(part, scope) or ""
        else:
            kind = (expression_type(part, scope) or "") if isinstance(call, Call) else ""
        if _TIME_IN_TYPE.search(kind):
            return True
    return False


def _of_unknown(column: exp.Column, scope: Scope, seen: set[int]) -> bool:
    """Whether a column is made of what may be a time, for all that is known; so is an alias of the same select list."""
    found, _, sure = _found(_path(column), scope)
    if found is None:
        return column.parts[0].name.lower() in scope.aliases
    if not sure or field_type(found) is not None:
        return False
    return found.node is not None and found.scope is not None and _may_be_time(found.node, found.scope, seen)


def _type(node: exp.Expr, scope: Scope) -> str | None:
    """The Spark type of an expression, of a part of a struct, an array or a map, too; None if it is not known."""
    node = node.unnest()
    call = node.meta.get("call")
    name = call.name if isinstance(call, Call) else ""
    if isinstance(node, exp.Identifier) or (isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)):
        return _column_type(node, scope)
    if isinstance(node, exp.Dot):
        return inner_type(_type(node.this, scope), [node.expression.name])
    if isinstance(node, exp.Bracket) or name in ("element_at", "try_element_at", "get"):
        arguments = written_arguments(node)
        whole = _type(arguments[0], scope) if arguments else None
        return element_type(whole) if whole is not None else None
    return expression_type(node, scope)


def _column_type(node: exp.Expr, scope: Scope) -> str | None:
    """That of a column, or of the parameter of a lambda."""
    parts = _path(node)
    beside = _beside_lambda(node)
    if beside:
        # a parameter's type is that of an element of an array beside the lambda
        arrays = {
            kind for part in beside if (kind := _type(part, scope)) is not None and kind.lower().startswith("array<")
        }
        return inner_type(element_type(arrays.pop()), parts[1:]) if len(arrays) == 1 else None
    found, path, sure = _found(parts, scope)
    return inner_type(field_type(found), path) if found is not None and sure else None


def _path(node: exp.Expr) -> list[str]:
    return [part.name for part in node.parts] if isinstance(node, exp.Column) else [node.name]


def _found(parts: Sequence[str], scope: Scope | None) -> tuple[Field | None, Sequence[str], bool]:
    """The column here or around, the path of a field of it, and whether that is certain."""
    while scope is not None:
        if len(parts) > 1 and (qualified := find_qualified(replace(scope, parent=None), parts)) is not None:
            found, path = qualified
            owner = scope.source(parts[: len(parts) - len(path) - 1])
            return found, path, owner is not None and owner.has(found.name)
        plain, sure = find_plain(scope, parts[0])
        if plain is not None:
            return plain, parts[1:], sure
        scope = scope.parent
    return None, (), False


def _beside_lambda(node: exp.Expr) -> list[exp.Expr]:
    """What stands beside the lambda of which the name is a parameter."""
    around = node.find_ancestor(exp.Lambda)
    while around is not None and _path(node)[0].lower() not in {p.name.lower() for p in around.expressions}:
        around = around.find_ancestor(exp.Lambda)
    if around is None or around.parent is None:
        return []
    return [part for part in around.parent.iter_expressions() if part is not around]


def _element(kind: str) -> str:
    """The type of an array's elements, or of a map's keys; any other type as it is."""
    word = kind.lower()
    if word.startswith("map<"):
        return map_types(word)[0]
    return (element_type(word) or "") if word.startswith("array<") else word


def _column_time(node: exp.Column, kind: str, scope: Scope) -> str | None:
    """The time of day that a column of a CTE or subquery is, which the clock completes. Spark knows the words in constants alone."""
    text = _column_text(node, scope)
    read = clock_text(text, kind) if text is not None else None
    return text if read is not None and not read.word else None


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
