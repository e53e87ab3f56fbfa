"""What a struct, an array or a map that is written out holds, and the columns that a generator makes of it: each depends on its own parts alone.

What an index gives is none of these parts: which one `map['k']` is is decided by the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from spark_mv.query.analysis.generators import has_fixed_rows
from spark_mv.query.analysis.taint import CLEAN, Field, Held, Parts, TaintedValue, digest, union
from spark_mv.query.syntax.parser import Call


def held(node: exp.Expr, arguments: Sequence[TaintedValue]) -> Parts:
    """The parts of the value of `node`, of which its arguments are known; empty where they are not written out."""
    if isinstance(node, exp.Struct):
        # not where a star, or a name that is made, stands among them
        written = all(isinstance(item, exp.PropertyEQ) for item in node.expressions)
        return tuple(field for part in arguments for field in part.parts) if written else ()
    if isinstance(node, exp.Array):
        return ((Held.ELEMENT, _any_of(arguments)),) if arguments else ()
    if isinstance(node, exp.VarMap | exp.Map):
        keys, values = (argument.held(Held.ELEMENT) for argument in arguments) if len(arguments) == 2 else (None, None)
        return ((Held.KEY, keys), (Held.VALUE, values)) if keys and values else ()
    call = node.meta.get("call")
    made = _GENERATORS.get(call.name.removesuffix("_outer")) if isinstance(call, Call) else None
    return made(node, arguments) if made and arguments else ()


def generated_fields(generator: TaintedValue, names: Sequence[str] | None) -> tuple[Field, ...]:
    """The columns of a generator under these names, or under those of what it takes apart; empty where neither is known."""
    parts = [item for _, item in generator.parts]
    names = names or [str(label) for label, _ in generator.parts]
    if len(parts) != len(names):
        parts = [TaintedValue(generator.taint, "")] * len(names)
    return tuple(
        Field(name, item.taint, digest("generated", i, generator.fingerprint), parts=item.parts)
        for i, (name, item) in enumerate(zip(names, parts, strict=True))
    )


def _explode(node: exp.Expr, arguments: Sequence[TaintedValue]) -> Parts:
    names = {Held.ELEMENT: "col", Held.KEY: "key", Held.VALUE: "value"}
    return tuple((names[label], item) for label, item in arguments[0].parts if isinstance(label, Held))


def _posexplode(node: exp.Expr, arguments: Sequence[TaintedValue]) -> Parts:
    place = TaintedValue(CLEAN if has_fixed_rows(node) else arguments[0].taint, "")
    parts = _explode(node, arguments)
    return (("pos", place), *parts) if parts else ()


def _inline(node: exp.Expr, arguments: Sequence[TaintedValue]) -> Parts:
    element = arguments[0].held(Held.ELEMENT)
    return element.parts if element else ()


def _stack(node: exp.Expr, arguments: Sequence[TaintedValue]) -> Parts:
    rows = next(node.iter_expressions(), None)
    cells = arguments[1:]
    if not (isinstance(rows, exp.Literal) and rows.is_int and int(rows.name) > 0 and cells):
        return ()
    width = -(-len(cells) // int(rows.name))
    return tuple((f"col{i}", _any_of(cells[i::width])) for i in range(width))


_GENERATORS: dict[str, Callable[[exp.Expr, Sequence[TaintedValue]], Parts]] = {
    "explode": _explode,
    "posexplode": _posexplode,
    "inline": _inline,
    "stack": _stack,
}


def _any_of(values: Sequence[TaintedValue]) -> TaintedValue:
    """One of these, whichever. It is no longer the value of the column that it came from: a row may have it more than once."""
    # a struct's fields have the names that they have in the first
    shapes = {tuple(label if isinstance(label, Held) else "field" for label, _ in value.parts) for value in values}
    parts = values[0].parts if len(shapes) == 1 else ()
    return TaintedValue(
        union(value.taint for value in values),
        digest("any of", *(value.fingerprint for value in values)),
        any(value.aggregate for value in values),
        tuple((label, _any_of([value.parts[i][1] for value in values])) for i, (label, _) in enumerate(parts)),
    )
