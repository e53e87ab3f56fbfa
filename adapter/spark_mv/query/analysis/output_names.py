"""The name Spark gives an output column that has no alias, as far as it follows from the text.

Spark names a column after the expression as its parser read it: `(qty + 1)`, `count(1)`, `CASE WHEN (a > 1) THEN x END`.
The rules are those of `toPrettySQL` in its catalyst.util package and of `sql` in each expression class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from spark_mv.query.functions.catalogue import Kind, Mark, is_kind, is_marked
from spark_mv.query.solver.predicate import PredicateText, call_name
from spark_mv.query.syntax.parse import sql_text
from spark_mv.query.syntax.parser import Call

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.EQ: "=", exp.GT: ">", exp.GTE: ">=",
    exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "<=>", exp.And: "AND", exp.Or: "OR", exp.IntDiv: "div",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}  # fmt: skip
_NEGATED: dict[type[exp.Expr], str] = {exp.NEQ: "=", exp.NullSafeNEQ: "<=>"}
# functions that the parser turns into another one, or whose class writes itself in capitals
_OTHER = {
    "curdate": "current_date", "session_user": "current_user", "current_database": "current_schema",
    "floor": "FLOOR", "ceil": "CEIL", "ceiling": "CEIL", "sqrt": "SQRT", "rank": "RANK", "dense_rank": "DENSE_RANK",
    "percent_rank": "PERCENT_RANK", "date_diff": "datediff", "timediff": "timestampdiff", "regexp_like": "REGEXP_LIKE",
}  # fmt: skip
_DEFAULTS = {
    ("round", 1): ("0",), ("bround", 1): ("0",), ("percentile", 2): ("1",), ("sort_array", 1): ("true",),
    ("substr", 2): ("2147483647",), ("substring", 2): ("2147483647",), ("lag", 1): ("1", "NULL"),
    ("lag", 2): ("NULL",), ("lead", 1): ("1", "NULL"), ("lead", 2): ("NULL",),
    ("unix_timestamp", 1): ("yyyy-MM-dd HH:mm:ss",), ("from_unixtime", 1): ("yyyy-MM-dd HH:mm:ss",),
    ("unix_timestamp", 0): ("current_timestamp()", "yyyy-MM-dd HH:mm:ss"), ("rand", 0): (), ("listagg", 1): ("NULL",),
}  # fmt: skip


def output_name(node: exp.Expr, text: str = "") -> str:
    """`upper(name)`, `(a + 1)`, `count(1)`; a column's own name. `text` is the expression as written; what cannot be
    named by it comes as SQL text.

    >>> output_name(exp.Literal.number(1), "a + 1")
    '(a + 1)'
    """
    read = PredicateText(text).tree if text else None
    call = node.meta.get("call")
    if read is None:
        return f"{call.name}()" if isinstance(call, Call) and call.empty else sql_text(node)
    if isinstance(node, exp.Column | exp.Dot) and not isinstance(node.this, exp.Star) and _is_path(read):
        return node.name
    if isinstance(read, exp.Cast) and not _is_literal(read.this) and isinstance(_bare(read.this), exp.Column):
        return str(_bare(read.this).name)
    if call_name(read) == "identifier" and read.expressions and isinstance(read.expressions[0], exp.Literal):
        return str(read.expressions[0].name).replace("`", "").rsplit(".", 1)[-1]
    if call_name(read) in ("window", "session_window"):
        return call_name(read)
    return _name(read)


def _is_path(node: exp.Expr) -> bool:
    return isinstance(_bare(node), exp.Column | exp.Dot) and not any(
        isinstance(part, exp.Bracket | exp.Anonymous | exp.Func) for part in node.walk()
    )


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_literal(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal)


def _name(node: Any) -> str:
    if node is None:
        return "NULL"
    node = _bare(node)
    if type(node) in _BINARY:
        sides = f"{_name(node.left)} {_BINARY[type(node)]} {_name(node.right)}"
        # an interval added to a time is a class of its own, without parentheses
        plain = isinstance(node, exp.Add | exp.Sub) and isinstance(_bare(node.right), exp.Interval)
        return sides if plain else f"({sides})"
    if type(node) in _NEGATED:
        return f"(NOT ({_name(node.left)} {_NEGATED[type(node)]} {_name(node.right)}))"
    if isinstance(node, exp.Column):
        unquoted = not (isinstance(node.this, exp.Identifier) and node.this.quoted)
        if not node.table and unquoted and is_marked(node.name, Mark.KEYWORD):
            return f"{_OTHER.get(node.name.lower(), node.name.lower())}()"
        return "1" if isinstance(node.this, exp.Star) else ".".join(part.name for part in node.parts[-1:])
    if isinstance(node, exp.Literal) and not node.is_string and "e" in node.name.lower():
        return str(float(node.name))
    if isinstance(node, exp.Literal | exp.Identifier | exp.Var):
        return str(node.name)
    if isinstance(node, exp.Star):
        return "1"
    if isinstance(node, exp.Null):
        return "NULL"
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    handler = _FORMS.get(type(node))
    if handler is not None:
        return handler(node)
    if isinstance(node, exp.Anonymous):
        return _call(node)
    return sql_text(node)


def _call(node: exp.Expr) -> str:
    name = call_name(node)
    shown = [_argument(part) for part in node.expressions]
    if name in ("dateadd", "date_add") and len(shown) == 3:
        name = "timestampadd"
    elif name in ("datediff", "date_diff") and len(shown) == 3:
        name = "timestampdiff"
    elif name == "dateadd":
        name = "date_add"
    if name in ("from_json", "from_csv", "from_xml"):
        shown = shown[:1]  # the schema is no child of the expression
    shown += _DEFAULTS.get((name, len(shown)), ())
    return f"{_OTHER.get(name, name)}({', '.join(shown)})"


def _argument(node: exp.Expr) -> str:
    if isinstance(node, exp.Distinct):
        return f"DISTINCT {', '.join(map(_name, node.expressions))}"
    if isinstance(node, exp.Lambda):
        names = {item.name.lower() for item in node.expressions}
        body = node.this.copy()
        for part in list(body.walk()):
            named = isinstance(part, exp.Column | exp.Identifier) and part.name.lower() in names
            if named and not isinstance(part.parent, exp.Column):
                made = exp.Var(this="namedlambdavariable()")
                if part is body:
                    body = made
                else:
                    part.replace(made)
        variables = ", ".join("namedlambdavariable()" for _ in names)
        return f"lambdafunction({_name(body)}, {variables})"
    return _name(node)


def _cast(node: exp.Expr) -> str:
    kind = sql_text(node.args["to"]).upper()
    inner = node.this
    if isinstance(inner, exp.Literal) and inner.is_string and kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return f"{kind} '{inner.name}'"
    return f"CAST({_name(inner)} AS {kind})"


def _case(node: exp.Expr) -> str:
    subject = node.args.get("this")
    steps = []
    for branch in node.args["ifs"]:
        when = f"({_name(subject)} = {_name(branch.this)})" if subject is not None else _name(branch.this)
        steps.append(f"WHEN {when} THEN {_name(branch.args['true'])}")
    default = node.args.get("default")
    last = f" ELSE {_name(default)}" if default is not None else ""
    return f"CASE {' '.join(steps)}{last} END"


def _not(node: exp.Expr) -> str:
    inner = _bare(node.this)
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({_name(inner.this)} IS NOT NULL)"
    return f"(NOT {_name(inner)})"


def _window(node: exp.Expr) -> str:
    function = node.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    parts = []
    if partition := node.args.get("partition_by"):
        parts.append(f"PARTITION BY {', '.join(map(_name, partition))}")
    order = node.args.get("order")
    if order is not None:
        parts.append(f"ORDER BY {', '.join(map(_ordered, order.expressions))}")
    parts.append(_frame(node.args.get("spec"), order is not None, call_name(function), function))
    return f"{_name(function)} OVER ({' '.join(filter(None, parts))})"


def _ordered(node: exp.Expr) -> str:
    if not isinstance(node, exp.Ordered):
        return f"{_name(node)} ASC NULLS FIRST"
    down = bool(node.args.get("desc"))
    first = node.args.get("nulls_first")
    nulls = "FIRST" if (not down if first is None else first) else "LAST"
    return f"{_name(node.this)} {'DESC' if down else 'ASC'} NULLS {nulls}"


def _frame(spec: exp.Expr | None, ordered: bool, name: str, function: exp.Expr) -> str:
    if spec is not None:
        start = f"{_edge(spec.args.get('start'))} {spec.args.get('start_side') or ''}".strip()
        end = f"{_edge(spec.args.get('end') or 'CURRENT ROW')} {spec.args.get('end_side') or ''}".strip()
        return f"{spec.args.get('kind')} BETWEEN {start} AND {end}"
    if name in ("lag", "lead"):
        steps = _name(function.expressions[1]) if len(function.expressions) > 1 else "1"
        at = f"-{steps}" if name == "lag" else steps
        return f"ROWS BETWEEN {at} FOLLOWING AND {at} FOLLOWING"
    if is_kind(name, Kind.WINDOW) and name != "nth_value":
        return "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    if ordered:
        return "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def _edge(edge: object) -> str:
    return _name(edge) if isinstance(edge, exp.Expr) else str(edge)


def _like(node: exp.Expr) -> str:
    word = "LIKE" if isinstance(node, exp.Like) else "ilike"
    pattern = node.expression
    escape = ""
    if isinstance(pattern, exp.Escape):
        pattern, escape = pattern.this, f" ESCAPE '{pattern.expression.name}'"
    if isinstance(pattern, exp.Any | exp.All):
        return sql_text(node)
    made = f"{_name(node.this)} LIKE {_name(pattern)}{escape}"
    if word != "LIKE":
        made = f"ilike({_name(node.this)}, {_name(pattern)})"
    return f"(NOT {made})" if node.args.get("negate") else made


def _trim(node: exp.Expr) -> str:
    if node.expression is None:
        return f"trim({_name(node.this)})"
    side = str(node.args.get("position") or "BOTH").upper()
    return f"TRIM({side} {_name(node.expression)} FROM {_name(node.this)})"


def _substring(node: exp.Expr) -> str:
    length = node.args.get("length")
    parts = [_name(node.this), _name(node.args.get("start")), _name(length) if length else "2147483647"]
    return f"substring({', '.join(parts)})"


def _bracket(node: exp.Expr) -> str:
    return f"{_name(node.this)}[{', '.join(map(_name, node.expressions))}]"


def _filter(node: exp.Expr) -> str:
    return f"{_name(node.this)} FILTER (WHERE {_name(node.expression.this)})"


def _within(node: exp.Expr) -> str:
    order = node.expression
    listed = ("listagg", "string_agg")
    shown = [_ordered(item) if call_name(node.this) in listed else _sorted(item) for item in order.expressions]
    return f"{_name(node.this)} WITHIN GROUP (ORDER BY {', '.join(shown)})"


def _sorted(node: exp.Expr) -> str:
    inner = node.this if isinstance(node, exp.Ordered) else node
    return f"{_name(inner)} DESC" if node.args.get("desc") else _name(inner)


def _in(node: exp.Expr) -> str:
    query = node.args.get("query")
    listed = ", ".join(map(_name, node.expressions)) if query is None else f"listquery({_outer(query)})"
    return f"({_name(node.this)} IN ({listed}))"


def _outer(query: exp.Expr) -> str:
    """The columns of the row around a subquery that it names by their tables."""
    inside = {table.alias_or_name.lower() for table in query.find_all(exp.Table, exp.Subquery)}
    columns = (column for column in query.find_all(exp.Column, bfs=False) if column.table)
    return ", ".join(dict.fromkeys(column.name for column in columns if column.table.lower() not in inside))


def _interval(node: exp.Expr) -> str:
    """Of one unit, as Spark writes its literals: `INTERVAL '3' DAY`, `INTERVAL '01' HOUR`."""
    count, unit = node.this, str(node.args.get("unit") or "").upper().removesuffix("S")
    if not isinstance(count, exp.Literal) or not count.name.isdigit() or unit not in _UNITS:
        return sql_text(node)
    times, unit, digits = _UNITS[unit]
    return f"INTERVAL '{int(count.name) * times:0{digits}d}' {unit}"


_UNITS = {
    "YEAR": (1, "YEAR", 1), "MONTH": (1, "MONTH", 1), "WEEK": (7, "DAY", 1), "DAY": (1, "DAY", 1), "HOUR": (1, "HOUR", 2),
    "MINUTE": (1, "MINUTE", 2), "SECOND": (1, "SECOND", 2),
}  # fmt: skip
_FORMS: dict[type[Any], Callable[[Any], str]] = {
    exp.Neg: lambda n: f"(- {_name(n.this)})",
    exp.Not: _not,
    exp.BitwiseNot: lambda n: f"~{_name(n.this)}",
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: lambda n: f"(IF({_name(n.this)}, {_name(n.args.get('true'))}, {_name(n.args.get('false'))}))",
    exp.Is: lambda n: f"({_name(n.this)} IS {_name(n.expression)})",
    exp.In: _in,
    exp.Between: lambda n: f"between({_name(n.this)}, {_name(n.args['low'])}, {_name(n.args['high'])})",
    exp.DPipe: lambda n: f"concat({_name(n.left)}, {_name(n.right)})",
    exp.RegexpLike: lambda n: (
        ("(NOT " if n.args.get("negate") else "")
        + f"RLIKE({_name(n.this)}, {_name(n.expression)})"
        + (")" if n.args.get("negate") else "")
    ),
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: lambda n: f"{_name(n.this)} ESCAPE '{n.expression.name}'",
    exp.Transform: lambda n: f"transform({_name(n.this)}, {_argument(n.expression)})",
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.StrPosition: lambda n: f"locate({_name(n.args.get('substr'))}, {_name(n.this)}, 1)",
    exp.Bracket: _bracket,
    exp.Dot: lambda n: f"{_name(n.this)}.{_name(n.expression)}",
    exp.Window: _window,
    exp.Filter: _filter,
    exp.WithinGroup: _within,
    exp.Subquery: lambda n: f"scalarsubquery({_outer(n.this)})",
    exp.Exists: lambda n: f"exists({_outer(n.this)})",
    exp.Interval: _interval,
    exp.Extract: lambda n: f"extract({_name(n.this)} FROM {_name(n.expression)})",
    exp.Struct: lambda n: f"struct({', '.join(map(_name, n.expressions))})",
    exp.Array: lambda n: f"array({', '.join(map(_name, n.expressions))})",
}
