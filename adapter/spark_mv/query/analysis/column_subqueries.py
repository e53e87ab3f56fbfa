"""Whether a query has subqueries among its columns, and is so of those that Spark's optimizer stops at, or takes for another one.

Spark 4.1: of a UNION it rewrites the columns above it (PushProjectionThroughUnion), and once its rows are filtered, which every check of keys
does, what is known of the columns of its branches (UnionBase.rewriteConstraints). In a correlated subquery among these columns it meets one
of the subquery's own, which it does not find: `NoSuchElementException: key not found: id#17`. Answers of AI functions are looked up by such
subqueries, and an incremental run reads a source's changed rows beside others in a UNION of its own.

Columns above ORDER BY … LIMIT it moves below the LIMIT (PushProjectionThroughLimitAndOffset). A correlated subquery among them becomes a join
there, right above the ORDER BY, which it then drops: any rows are the first ones, without an error.
"""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parse import Parsed, parse
from spark_mv.query.syntax.query_error import QueryError


@deep
def subquery_in_columns(sql: str) -> bool:
    """Whether a SELECT has a subquery among its columns. False for what cannot be read.

    >>> subquery_in_columns("select id from t where exists (select 1 from u)"), subquery_in_columns("select (select 1) as a")
    (False, True)
    """
    if sql.lower().count("select") < 2:  # spares reading it
        return False
    found = parse(sql)
    return not isinstance(found, QueryError) and _in_columns(found)


@deep
def subquery_in_union(sql: str) -> bool:
    """Whether there is a UNION, and a subquery among the columns of a SELECT: also where the one does not hold the other, because
    a CTE may stand between them, and where it is not correlated. False for what cannot be read.

    >>> subquery_in_union("select id, (select max(v) from u where u.id = t.id) as m from t union all select id, 0 from t")
    True
    >>> subquery_in_union("select id from t where exists (select 1 from u where u.id = t.id) union all select id from t")
    False
    """
    return _beside(sql, exp.Union)


@deep
def subquery_over_limit(sql: str) -> bool:
    """Whether there is a LIMIT or OFFSET, and a subquery among the columns of a SELECT. False for what cannot be read.

    >>> subquery_over_limit("select id, (select max(v) from u where u.id = t.id) as m from (select * from t order by x limit 3) t")
    True
    """
    return _beside(sql, exp.Limit, exp.Offset)


def _beside(sql: str, *kinds: type[exp.Expr]) -> bool:
    found = parse(sql)
    return not isinstance(found, QueryError) and found.tree.find(*kinds) is not None and _in_columns(found)


def _in_columns(found: Parsed) -> bool:
    columns = (column for select in found.tree.find_all(exp.Select) for column in select.expressions)
    return any(column.find(exp.Query) is not None for column in columns)
