"""Operators of the pipe syntax (`FROM t |> WHERE …`) that sqlglot does not know, or reads otherwise than Spark does.

sqlglot keeps a pipe as one SELECT to which operators are added, with a CTE where one SELECT is not enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

Operator = Callable[[Any, Any], Any]


def with_spark(known: Mapping[str, Operator]) -> dict[str, Operator]:
    """sqlglot's operators, with Spark's."""
    found = {name: _after(known[name], _AFTER.get(name, _ENDS)) for name in known}
    pivots = dict.fromkeys(("PIVOT", "UNPIVOT"), _pivot)
    found["AGGREGATE"] = _by_name(found["AGGREGATE"])
    found["LIMIT"] = lambda parser, query: known["LIMIT"](parser, settled(parser, query, _before_limit(parser)))
    return {**found, **pivots, "SELECT": _select, "DROP": _drop, "SET": _set, **dict.fromkeys(_ORDERS, _partitioned)}


_ORDERS = ("DISTRIBUTE BY", "SORT BY", "CLUSTER BY")
_ENDS = ("limit", "offset", "distinct", "sample", "sort", "cluster", "distribute")
"""Clauses of a SELECT to which an operator cannot be added: it sees what they leave."""
_AFTER: Mapping[str, Sequence[str]] = {"AS": ()}
"""The same of single operators."""


def _before_limit(parser: Any) -> Sequence[str]:
    """The same of `|> LIMIT n`, which counts what ORDER BY has put into order, and of two of which the smaller one counts; not so with an OFFSET."""
    behind = parser._tokens[parser._index + 2 : parser._index + 3]
    return ("limit", "offset") if behind and behind[0].token_type == TokenType.OFFSET else ("offset",)


def shown(name: str) -> str:
    """A FROM item as a reader knows it: sqlglot has names of its own for what stands ahead of an operator.

    >>> shown("__tmp12"), shown("t")
    ('what stands ahead of |>', 't')
    """
    return "what stands ahead of |>" if re.fullmatch(r"__tmp\d+", name) else name


def below(parser: Any, query: Any) -> Any:
    """What stands ahead of the first `|>`: a SELECT with a list of its own as a CTE, because the operators see what it gives and
    not what it reads (sqlglot adds them to the SELECT itself)."""
    if not isinstance(query, exp.Select) or [*query.expressions] == [exp.Star()]:
        return query
    return parser._build_pipe_cte(query=query, expressions=[exp.Star()])


def settled(parser: Any, query: Any, ends: Sequence[str] = _ENDS) -> Any:
    """The query as a CTE of its own where what comes next must see the rows it keeps, not those before its LIMIT."""
    if isinstance(query, exp.Select) and not any(query.args.get(key) for key in ends):
        return query
    return parser._build_pipe_cte(query=query, expressions=[exp.Star()])


def _after(operator: Operator, ends: Sequence[str]) -> Operator:
    return lambda parser, query: operator(parser, settled(parser, query, ends))


def _select(parser: Any, query: Any) -> Any:
    """`|> SELECT [DISTINCT] … [WINDOW …]`"""
    query = settled(parser, query)
    select = parser._parse_select(consume_pipe=False)
    if not isinstance(select, exp.Select):
        parser.raise_error("Expected expressions after SELECT")
    query = query.select(*select.expressions, append=False)
    for key in ("distinct", "windows", "hint", "kind"):
        if select.args.get(key):
            query.set(key, select.args[key])
    return parser._build_pipe_cte(query=query, expressions=[exp.Star()])


def _by_name(aggregate: Operator) -> Operator:
    """`|> AGGREGATE … GROUP BY 1` groups by the first column of what stands ahead, not by the number."""

    def run(parser: Any, query: Any) -> Any:
        found = aggregate(parser, query)
        select = found.args["with_"].expressions[-1].this
        group = select.args.get("group")
        keys = {key.name for key in group.expressions} if group else set()
        if any(isinstance(item.unalias(), exp.Literal) and item.alias_or_name in keys for item in select.expressions):
            parser.raise_error("A number behind GROUP BY of |> AGGREGATE stands for a column: name the column")
        return found

    return run


def _pivot(parser: Any, query: Any) -> Any:
    """`|> PIVOT (…)`, `|> UNPIVOT (…)`: of all that is there so far, which sqlglot does to the first FROM item."""
    query = parser._build_pipe_cte(query=query, expressions=[exp.Star()])
    query.args["from_"].this.set("pivots", parser._parse_pivots())
    return parser._build_pipe_cte(query=query, expressions=[exp.Star()])


def _drop(parser: Any, query: Any) -> Any:
    """`|> DROP a, b`"""
    parser._advance()
    names = parser._parse_csv(parser._parse_column)
    query = settled(parser, query)
    query.select(exp.Star(except_=names), append=False, copy=False)
    return parser._build_pipe_cte(query=query, expressions=[exp.Star()])


def _set(parser: Any, query: Any) -> Any:
    """`|> SET a = expression, …`"""
    parser._advance()
    query = settled(parser, query)
    pairs = parser._parse_csv(parser._parse_assignment)
    if not all(isinstance(pair, exp.EQ) and isinstance(pair.this, exp.Column) for pair in pairs):
        parser.raise_error("Expected column = expression after SET")
    replaced = [exp.alias_(pair.expression, pair.this.this, copy=False) for pair in pairs]
    query.select(exp.Star(replace=replaced), append=False, copy=False)
    return parser._build_pipe_cte(query=query, expressions=[exp.Star()])


def _partitioned(parser: Any, query: Any) -> Any:
    """`|> DISTRIBUTE BY …`, `|> SORT BY …`, `|> CLUSTER BY …`: the rows stay as they are."""
    for key, kind, token in (
        ("distribute", exp.Distribute, TokenType.DISTRIBUTE_BY),
        ("sort", exp.Sort, TokenType.SORT_BY),
        ("cluster", exp.Cluster, TokenType.CLUSTER_BY),
    ):
        if found := parser._parse_sort(kind, token):
            query.set(key, found)
            return query
    return query
