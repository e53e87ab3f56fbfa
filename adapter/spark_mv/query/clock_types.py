"""Spark types of expressions, as far as the solver needs them: dates, timestamps, whole numbers, strings.

None means "not known"; the solver then solves only what holds for every type.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_mv.query.clock_parse import call_name

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
            "to_date",
            "date",
            "date_add",
            "date_sub",
            "add_months",
            "last_day",
            "next_day",
            "trunc",
            "make_date",
            "date_from_unix_date",
        ],
        "date",
    ),
    **dict.fromkeys(
        [
            "to_timestamp",
            "timestamp",
            "timestamp_seconds",
            "timestamp_millis",
            "timestamp_micros",
            "timestampadd",
            "date_trunc",
        ],
        "timestamp",
    ),
    **dict.fromkeys(
        [
            "datediff",
            "date_diff",
            "timestampdiff",
            "year",
            "month",
            "day",
            "quarter",
            "hour",
            "minute",
            "second",
            "dayofmonth",
            "dayofweek",
            "dayofyear",
            "weekofyear",
            "unix_timestamp",
            "to_unix_timestamp",
            "unix_seconds",
            "unix_millis",
            "unix_micros",
            "unix_date",
            "length",
            "int",
            "bigint",
        ],
        "int",
    ),
    **dict.fromkeys(
        ["upper", "lower", "trim", "concat", "date_format", "substring", "substr", "from_unixtime", "string"], "string"
    ),
}
DAY_UNITS = {"DAY": 1, "DAYS": 1, "WEEK": 7, "WEEKS": 7}
MONTH_UNITS = {"MONTH": 1, "MONTHS": 1, "YEAR": 12, "YEARS": 12, "QUARTER": 3}
_TIME_UNITS = {
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
TIME_UNITS = _TIME_UNITS | {unit + "S": size for unit, size in _TIME_UNITS.items()}


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


def literal_int(node: exp.Expr) -> int | None:
    """The value of a whole-number literal, sign and parentheses included."""
    if isinstance(node, exp.Paren):
        return literal_int(node.this)
    if isinstance(node, exp.Neg):
        inner = literal_int(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Mul):
        left, right = literal_int(node.left), literal_int(node.right)
        return None if left is None or right is None else left * right
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    return None


def interval_steps(node: exp.Expr) -> tuple[str, int] | None:
    """('months' | 'days' | 'micros', n) of an interval literal with one unit, sign included; None for any other."""
    if isinstance(node, exp.Paren):
        return interval_steps(node.this)
    if isinstance(node, exp.Neg):
        inner = interval_steps(node.this)
        return None if inner is None else (inner[0], -inner[1])
    if not isinstance(node, exp.Interval) or not isinstance(node.args.get("unit"), exp.Var):
        return None
    unit = str(node.args["unit"].this).upper()
    amount = node.this
    while isinstance(amount, exp.Paren):
        amount = amount.this
    text = amount.name.strip() if isinstance(amount, exp.Literal) else ""
    if isinstance(amount, exp.Neg) and isinstance(amount.this, exp.Literal):
        text = "-" + amount.this.name
    if not text.lstrip("+-").isdigit() or len(text) - len(text.lstrip("+-")) > 1:
        return None
    n = int(text)
    for units, what in ((MONTH_UNITS, "months"), (DAY_UNITS, "days"), (TIME_UNITS, "micros")):
        if unit in units:
            return what, n * units[unit]
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
    if isinstance(node, exp.Mul):
        kinds = {type_of(node.left, types), type_of(node.right, types)}
        return "int" if kinds == {"int"} else None
    if isinstance(node, exp.If):
        return _common([node.args.get("true"), node.args.get("false")], types)
    if isinstance(node, exp.Case):
        return _common([*(branch.args.get("true") for branch in node.args["ifs"]), node.args.get("default")], types)
    name = call_name(node)
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
    if kinds == ("int", "int"):
        return "int"
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
