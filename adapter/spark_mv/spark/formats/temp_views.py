"""Temporary views: DESCRIBE shows their columns and nothing else. Their text is asked of the session's own catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_mv.query.rewrite.inline_views import qualify_tables, with_own_names
from spark_mv.query.syntax.table_name import parts_of, quoted


def temp_view_text(spark: Any, name: str, columns: Sequence[str]) -> str | None:
    """The SELECT of a temporary view, with its tables qualified and the `columns` that the view has. None where the session is not in reach, for a view made of a
    DataFrame, and for one that reads other temporary views."""
    try:
        catalog = spark._jsparkSession.sessionState().catalog()
        parts = parts_of(name)
        found = catalog.getRawTempView(parts[0]) if len(parts) == 1 else catalog.getRawGlobalTempView(parts[-1])
        meta = found.get().tableMeta()
        if not meta.viewText().isDefined() or meta.viewReferredTempViewNames().nonEmpty():
            return None
        text = qualify_tables(meta.viewText().get(), ".".join(map(quoted, _listed(meta.viewCatalogAndNamespace()))))
        return with_own_names(text, _listed(meta.viewQueryColumnNames()), columns)
    except Exception:  # another Spark, no JVM here, no such view
        return None


def _listed(names: Any) -> list[str]:
    return [str(names.apply(k)) for k in range(names.size())]
