"""The name Spark gives an output column that has no alias, as far as it follows from the text."""

from __future__ import annotations

from sqlglot import exp

from .parse import Call, sql_text

_KEYWORDS = {"current_date", "current_timestamp", "current_user", "current_time", "session_user", "user"}


def output_name(node: exp.Expr) -> str:
    """`upper(name)`, `(a + 1)`, `count(1)`, `CAST(a AS INT)`; a column's own name. What is not known comes as SQL text.

    >>> from sqlglot import parse_one
    >>> output_name(parse_one("a + 1"))
    '(a + 1)'
    """
    if isinstance(node, exp.Paren):
        return output_name(node.this)
    if isinstance(node, exp.Column | exp.Dot):
        return node.name
    if isinstance(node, exp.Literal):
        return str(node.name)
    if isinstance(node, exp.Star):
        return "1"
    call = node.meta.get("call")
    if isinstance(call, Call):
        if call.name == "identifier" and (text := node.find(exp.Literal)) is not None:
            return str(text.name).replace("`", "").rsplit(".", 1)[-1]
        if call.keyword and call.name in _KEYWORDS:
            return f"{call.name}()"
        return _call_name(node, call)
    if isinstance(node, exp.Neg):
        return f"(- {output_name(node.this)})"
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        operator = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "eq": "=", "gt": ">", "gte": ">=",
                    "lt": "<", "lte": "<="}[node.key]  # fmt: skip
        return f"({output_name(node.left)} {operator} {output_name(node.right)})"
    if isinstance(node, exp.Cast):
        return f"CAST({output_name(node.this)} AS {sql_text(node.args['to'])})"
    return sql_text(node)


def _call_name(node: exp.Expr, call: Call) -> str:
    if call.name in ("case", "cast", "try_cast", "extract", "if") or isinstance(node, exp.Cast | exp.Case):
        return sql_text(node)
    if call.empty or (call.name in ("rand", "randn", "random") and not list(node.iter_expressions())):
        return f"{call.name}()"
    arguments = [part for value in node.args.values() for part in (value if isinstance(value, list) else [value])]
    shown = [part for part in arguments if isinstance(part, exp.Expr)]
    if any(
        not isinstance(part, exp.Column | exp.Literal | exp.Star | exp.Func | exp.Binary | exp.Paren) for part in shown
    ):
        return sql_text(node)
    return f"{call.name}({', '.join(map(output_name, shown))})"
