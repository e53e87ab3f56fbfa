"""VALUES in FROM: rows that are written out, as SELECTs of the same rows, which whoever follows changes can read."""

from __future__ import annotations

import re

from sqlglot import exp

from spark_mv.query.syntax.table_name import quoted

_PLAIN = re.compile(r"[^'\\\x00-\x1f]*")
"""Texts that are written the same way in every dialect."""
MOST = 100
"""Rows. A SELECT for each is planned."""


def rows_as_selects(values: exp.Values) -> str | None:
    """The rows as a UNION ALL, their columns called as the FROM item calls them. None for what has others than constants of one type in a column, of which
    UNION and VALUES might make different types.

    >>> from sqlglot import parse_one
    >>> rows_as_selects(parse_one("select * from values (1, 'a'), (-2, null) as v(id, l)", dialect="spark").find(exp.Values))
    "SELECT 1 AS `id`, 'a' AS `l` UNION ALL SELECT -2 AS `id`, NULL AS `l`"
    """
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in values.expressions]
    alias = values.args.get("alias")
    named = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    width = len(rows[0]) if rows else 0
    names = named or [f"col{k + 1}" for k in range(width)]
    kinds = [[_kind(value) for value in column] for column in zip(*rows, strict=False)]
    alike = all(len({kind for kind in column if kind}) == 1 and None not in column for column in kinds)
    if not rows or len(rows) > MOST or len(names) != width or any(len(row) != width for row in rows) or not alike:
        return None
    if any(values.args.get(key) for key in ("pivots", "joins", "laterals", "sample")):
        return None
    texts = (
        ", ".join(f"{value.sql('spark')} AS {quoted(name)}" for name, value in zip(names, row, strict=True))
        for row in rows
    )
    return " UNION ALL ".join(f"SELECT {text}" for text in texts)


def _kind(value: exp.Expr) -> str | None:
    """Of what type a constant is, empty for NULL; None for what is no constant."""
    if isinstance(value, exp.Null):
        return ""
    if isinstance(value, exp.Boolean):
        return "boolean"
    if isinstance(value, exp.Neg):
        return _kind(value.this) if isinstance(value.this, exp.Literal) and not value.this.is_string else None
    if isinstance(value, exp.Cast) and isinstance(value.this, exp.Literal) and value.this.is_string:
        return str(value.to.sql("spark")) if value.to.this in (exp.DType.DATE, exp.DType.TIMESTAMP) else None
    if not isinstance(value, exp.Literal):
        return None
    if value.is_string:
        return "string" if _PLAIN.fullmatch(value.this) else None
    return "int" if value.this.isdigit() else None
