"""Whether a query is of those that Spark's optimizer stops at once their rows are filtered, which every check of keys does, or looked up
by a subquery, as answers of AI functions are.

Spark 4.1: of a UNION it rewrites what is known of its branches' columns (UnionBase.rewriteConstraints), and columns above it
(PushProjectionThroughUnion), and meets, in a correlated subquery among these columns, one of the subquery's own, which it does not find:
`NoSuchElementException: key not found: id#17`.
"""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.query_error import QueryError


@deep
def subquery_in_union(sql: str) -> bool:
    """Whether there is a UNION, and a subquery among the columns of a SELECT: also where the one does not hold the other, because
    a CTE may stand between them, and where it is not correlated. False for what cannot be read.

    >>> subquery_in_union("select id, (select max(v) from u where u.id = t.id) as m from t union all select id, 0 from t")
    True
    >>> subquery_in_union("select id from t where exists (select 1 from u where u.id = t.id) union all select id from t")
    False
    """
    found = parse(sql)
    if isinstance(found, QueryError) or found.tree.find(exp.Union) is None:
        return False
    columns = (column for select in found.tree.find_all(exp.Select) for column in select.expressions)
    return any(column.find(exp.Query) is not None for column in columns)
