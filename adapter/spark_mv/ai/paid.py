"""The rows of the result table of which somebody was asked, each once."""

from __future__ import annotations

from spark_mv.ai.retry import MARKS
from spark_mv.query.syntax.source_text import string_literals


def paid_sql(results_table: str, where: str = "true") -> str:
    """SQL of the rows of answers and errors of which `where` holds. An input has one in each batch that held it: two processes that take in
    one batch at a time both append it, and it was paid once."""
    once = "row_number() OVER (PARTITION BY result_key, batch ORDER BY status <> 'ok', called_at) = 1"
    return (
        f"SELECT * FROM (SELECT *, batch IS NULL OR {once} AS __mv_once FROM {results_table} "
        f"WHERE status NOT IN ({string_literals(MARKS)}) AND ({where})) AS __mv_paid WHERE __mv_once"
    )
