"""Spark types of expressions, as far as the solver needs them: dates, timestamps, whole numbers, strings.

None means "not known"; the solver then solves only what holds for every type. "double" is a whole number divided by
one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from spark_mv.query.functions.catalogue import Mark, is_marked
from spark_mv.query.solver.intervals import DAY_UNITS, MONTH_UNITS, TIME_UNITS, interval_steps, literal_int
from spark_mv.query.solver.predicate import call_name

_EQUAL_IS_SAME = re.compile(
    r"(tinyint|smallint|int|bigint|boolean|binary|date|timestamp|timestamp_ntz|string|decimal\(\d+,\s*\d+\)|"
    r"(var)?char\(\d+\))",
    re.IGNORECASE,
)


def equal_is_same(kind: str) -> bool:
    """Whether equal values of the type are the same value: not of floats (0.0 = -0.0), collations, maps, variants and nested types with such parts.

    >>> equal_is_same("STRING"), equal_is_same("array<double>"), equal_is_same("string collate UTF8_LCASE")
    (True, False, False)
    """
    return _EQUAL_IS_SAME.fullmatch(kind.strip()) is not None


_INTS = {"tinyint", "smallint", "int", "integer", "byte", "short", "bigint", "long"}
_BY_DTYPE = {
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "int",
    exp.DType.SMALLINT: "int",
    exp.DType.TINYINT: "int",
    exp.DType.TEXT: "string",
    exp.DType.VARCHAR: "string",
}
_BY_CALL = {
    **dict.fromkeys(
        [
            "to_date", "date", "date_add", "date_sub", "add_months", "last_day", "next_day", "trunc", "make_date",
            "date_from_unix_date",
        ],
        "date",
    ),
    **dict.fromkeys(
        [
            "to_timestamp", "timestamp", "timestamp_seconds", "timestamp_millis", "timestamp_micros", "timestampadd",
            "date_trunc", "make_timestamp", "make_timestamp_ltz",
        ],
        "timestamp",
    ),
    **dict.fromkeys(
        [
            "datediff", "date_diff", "timestampdiff", "year", "month", "day", "quarter", "hour", "minute", "second",
            "dayofmonth", "dayofweek", "dayofyear", "weekofyear", "unix_timestamp", "to_unix_timestamp",
            "unix_seconds", "unix_millis", "unix_micros", "unix_date", "length", "int", "bigint",
        ],
        "int",
    ),
    **dict.fromkeys(
        [
            "upper", "lower", "trim", "concat", "date_format", "substring", "substr", "from_unixtime", "string", "ltrim",
            "rtrim", "btrim", "lpad", "rpad", "initcap", "replace", "translate", "concat_ws", "format_string", "split_part",
            "substring_index", "regexp_extract", "regexp_replace", "regexp_substr", "get_json_object", "to_json", "md5",
            "sha1", "sha2", "hex", "base64",
        ],
        "string",
    ),
}  # fmt: skip


def normal_type(name: str) -> str | None:
    """A Spark type name as a kind: date, timestamp, timestamp_ntz, int (every whole number), string; else None."""
    text = name.strip().lower()
    if text in _INTS:
        return "int"
    if text in ("timestamp", "timestamp_ltz"):
        return "timestamp"
    if text in ("date", "timestamp_ntz"):
        return text
    if text.split("(")[0].split()[0:1] and text.split("(")[0].split()[0] in ("string", "varchar", "char"):
        return "string"
    return None


def type_of(node: exp.Expr, types: Mapping[str, str]) -> str | None:
    """Kind of an expression over columns of the given Spark types (keys in lower case, `alias.column` or `column`)."""
    if isinstance(node, exp.Paren):
        return type_of(node.this, types)
    if isinstance(node, exp.Column):
        name = node.name.lower()
        if node.args.get("db"):
            return None
        key = f"{node.table.lower()}.{name}" if node.table else name
        # `a.b` may be a field of a struct a: only a key of that form tells its type
        found = types.get(key)
        return normal_type(found) if found else None
    if isinstance(node, exp.Literal):
        return "string" if node.is_string else ("int" if node.name.isdigit() else None)
    if isinstance(node, exp.Neg):
        return "int" if type_of(node.this, types) == "int" else None
    if isinstance(node, exp.Cast):
        return _BY_DTYPE.get(node.to.this)
    if isinstance(node, (exp.Add, exp.Sub)):
        return _arithmetic(node, types)
    if isinstance(node, exp.Substring | exp.Trim | exp.DPipe):
        return "string"
    if isinstance(node, exp.Window):
        return type_of(node.this, types)
    if isinstance(node, exp.Div):
        whole = type_of(node.left, types) == "int" and (literal_int(node.right) or 0) != 0
        return "double" if whole else None
    if isinstance(node, exp.Extract):
        return None if str(node.this.name).upper().startswith("S") else "int"
    if isinstance(node, exp.Mul):
        kinds = {type_of(node.left, types), type_of(node.right, types)}
        return "int" if kinds == {"int"} else None
    if isinstance(node, exp.If):
        return _common([node.args.get("true"), node.args.get("false")], types)
    if isinstance(node, exp.Case):
        return _common([*(branch.args.get("true") for branch in node.args["ifs"]), node.args.get("default")], types)
    name = call_name(node)
    if name in ("date_part", "datepart") and len(node.expressions) == 2:
        unit = node.expressions[0]
        return "int" if isinstance(unit, exp.Literal) and not unit.name.upper().startswith("S") else None
    if name in ("try_add", "try_subtract") and len(node.expressions) == 2:
        made = exp.Add if name == "try_add" else exp.Sub
        return _arithmetic(made(this=node.expressions[0].copy(), expression=node.expressions[1].copy()), types)
    if is_marked(name, Mark.PICKS) and len(node.expressions) == 1:
        return type_of(node.expressions[0], types)
    if name == "count":
        return "int"
    if name in ("from_utc_timestamp", "to_utc_timestamp"):
        return "timestamp"
    if name in ("coalesce", "nvl", "ifnull", "greatest", "least"):
        return _common(node.expressions, types)
    if name in ("dateadd", "date_add") and len(node.expressions) == 3:
        return _added(node.expressions[2], types)
    if name == "dateadd":
        return "date"
    if name == "timestampadd" and len(node.expressions) == 3:
        return _added(node.expressions[2], types)
    if name == "date_trunc":
        return "timestamp"
    return _BY_CALL.get(name)


def _added(node: exp.Expr, types: Mapping[str, str]) -> str | None:
    kind = type_of(node, types)
    return kind if kind == "timestamp_ntz" else ("timestamp" if kind in ("timestamp", "date", "string") else None)


def _arithmetic(node: exp.Add | exp.Sub, types: Mapping[str, str]) -> str | None:
    left, right = node.left, node.right
    kinds = type_of(left, types), type_of(right, types)
    if set(kinds) <= {"int", "double"} and kinds[0] and kinds[1]:
        return "int" if set(kinds) == {"int"} else "double"
    if isinstance(node, exp.Add) and interval_steps(left):
        left, right, kinds = right, left, (kinds[1], kinds[0])
    steps = interval_steps(right)
    if kinds[0] in ("timestamp", "timestamp_ntz"):
        return kinds[0] if steps else None
    if kinds[0] == "date" and steps:
        return "timestamp" if steps[0] == "micros" else "date"
    if "date" in kinds and "int" in kinds and (isinstance(node, exp.Add) or kinds[0] == "date"):
        return "date"
    return None


def _common(nodes: list[exp.Expr | None], types: Mapping[str, str]) -> str | None:
    kinds = {type_of(node, types) for node in nodes if node is not None and not isinstance(node, exp.Null)}
    return kinds.pop() if len(kinds) == 1 else None


__all__ = ["DAY_UNITS", "MONTH_UNITS", "TIME_UNITS", "interval_steps", "literal_int", "normal_type", "type_of"]
