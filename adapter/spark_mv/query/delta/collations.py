"""Texts that are equal and not the same: under a collation, a group has the spelling of any of its rows."""

from __future__ import annotations

import re

from sqlglot import exp

from spark_mv.query.analysis.verdict import Analysis, Shape
from spark_mv.query.rewrite.clock_scope_types import Schemas
from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.select_tree import NotIncremental

_COLLATED = re.compile(r"\bcollate\s+(?!utf8_binary\b)", re.IGNORECASE)


def refuse_collations(analysis: Analysis, schemas: Schemas) -> None:
    """Rows of which one stands for several, or that are found by others, are not followed under a collation: by the change of one
    row a group of 'A' becomes one of 'a', which is no key of the table's. Raises NotIncremental."""
    if _each_by_itself(analysis.shape):
        return
    columns = (type_ for columns in schemas.values() for type_ in columns.values())
    if any(map(_COLLATED.search, columns)) or _collates(analysis.sql):
        raise NotIncremental(
            "COLLATION", "texts under a collation are equal and not the same, where rows are grouped or joined"
        )


def _each_by_itself(shape: Shape) -> bool:
    return shape.row_wise and not shape.join and not shape.subquery


def _collates(sql: str) -> bool:
    found = parse(sql)
    if isinstance(found, QueryError):
        return True
    given = (
        node.expression if isinstance(node, exp.Collate) else node.args.get("collate")
        for node in found.tree.find_all(exp.Collate, exp.DataType)
    )
    return any(name is not None and name.name.upper() != "UTF8_BINARY" for name in given)
