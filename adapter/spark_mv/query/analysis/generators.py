"""The column names that a generator function (explode, inline, json_tuple, …) makes when no alias names them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from spark_mv.query.analysis.field_types import column_type, element_type, expression_type, map_types, struct_fields
from spark_mv.query.analysis.scopes import Scope
from spark_mv.query.analysis.taint import Field
from spark_mv.query.syntax.parser import Call

_ARRAYS = frozenset({"array", "split", "sequence", "array_distinct", "filter", "transform", "sort_array", "array_sort",
                     "shuffle", "collect_list", "collect_set", "map_keys", "map_values", "flatten", "slice"})  # fmt: skip


def generated_names(node: exp.Expr, scope: Scope) -> list[str] | None:
    """The names of the columns of one generator call, None where they follow from a type that is not known."""
    call = node.meta.get("call")
    name = call.name if isinstance(call, Call) else ""
    arguments = [part for key in node.arg_types for part in _listed(node.args.get(key))]
    first = arguments[0] if arguments else None
    if name.startswith(("explode", "posexplode")):
        kind = _kind(first, scope)
        columns = None if kind is None else ["key", "value"] if kind.startswith("map") else ["col"]
        return ["pos", *columns] if columns and name.startswith("pos") else columns
    if name.startswith("inline"):
        found = re.fullmatch(r"array<(struct<.*>)>", _kind(first, scope) or "", re.DOTALL)
        return [field for field, _ in struct_fields(found[1])] if found else None
    if name == "json_tuple":
        return [f"c{i}" for i in range(len(arguments) - 1)]
    if name == "stack" and isinstance(first, exp.Literal) and first.is_int and int(first.name) > 0:
        return [f"col{i}" for i in range(-(-(len(arguments) - 1) // int(first.name)))]
    if name.startswith("variant_explode"):
        return ["pos", "key", "value"]
    return None


def typed(fields: Sequence[Field], node: exp.Expr, scope: Scope) -> tuple[Field, ...]:
    """The columns of a generator call with their types, as far as these follow from that of what is taken apart."""
    return tuple(replace(field, derive=partial(_type, node, k, scope)) for k, field in enumerate(fields))


def _type(node: exp.Expr, position: int, scope: Scope) -> str | None:
    call = node.meta.get("call")
    name = call.name.removesuffix("_outer") if isinstance(call, Call) else ""
    if name == "json_tuple":
        return "string"
    if name in ("posexplode", "variant_explode"):
        if position == 0:
            return "int"
        position -= 1
    first = next((part for key in node.arg_types for part in _listed(node.args.get(key))), None)
    whole = expression_type(first, scope) if first is not None else None
    if whole is None or name not in ("explode", "posexplode", "inline"):
        return None
    if name == "inline":
        fields = struct_fields(element_type(whole) or "")
        return fields[position][1] if position < len(fields) else None
    if whole.lower().startswith("map<") and position == 0:
        return map_types(whole)[0]
    return element_type(whole)


def has_fixed_rows(node: exp.Expr) -> bool:
    """Whether a generator makes as many rows as are written: explode(array(a, b)), stack(2, …)."""
    call = node.meta.get("call")
    arguments = [part for key in node.arg_types for part in _listed(node.args.get(key))]
    if not isinstance(call, Call) or not arguments:
        return False
    if call.name == "stack":
        return isinstance(arguments[0], exp.Literal)
    inner = arguments[0].meta.get("call")
    return call.name.removesuffix("_outer") in ("explode", "posexplode", "inline") and (
        isinstance(inner, Call) and inner.name in ("array", "map")
    )


def _listed(part: object) -> list[exp.Expr]:
    return [item for item in (part if isinstance(part, list) else [part]) if isinstance(item, exp.Expr)]


def _kind(node: exp.Expr | None, scope: Scope) -> str | None:
    """`array`, `map` or the whole type of what is taken apart."""
    if node is None:
        return None
    if isinstance(node, exp.Column):
        kind = column_type(node, scope)
        return kind.strip().lower() if kind else None
    call = node.meta.get("call")
    if not isinstance(call, Call):
        return None
    if call.name in _ARRAYS:
        return "array"
    return "map" if call.name in ("map", "map_from_arrays", "map_filter", "str_to_map", "map_concat") else None
