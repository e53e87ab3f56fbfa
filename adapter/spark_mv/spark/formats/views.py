"""What Spark keeps of a view beside its text: with what settings, and in what schema, the text says what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spark_mv.query.rewrite.inline_views import qualify_tables, with_own_names
from spark_mv.query.syntax.table_name import parts_of, quoted
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.session_settings import SETTINGS_BETWEEN, from_one_text, session_setting
from spark_mv.spark.session.jvm import jvm_class
from spark_mv.spark.session.session_catalogue import table_identifier


@dataclass(frozen=True)
class ViewMade:
    """How a view was made. `settings`: those of the session that made it, as far as Spark evaluates the view with them; one that is missing has Spark's
    default. `namespace`: catalogue and schema in which its text finds names without one. `collation`: of its literals."""

    settings: Mapping[str, str]
    namespace: tuple[str, ...]
    collation: str
    temporary: bool = False


def view_made(query: Query, name: str, temporary: bool = False) -> ViewMade | None:
    """How the view was made, None where neither the session's JVM nor a statement (new in Spark 4.0) tells."""
    spark: Any = getattr(query, "spark", None)
    with suppress(Exception):  # no JVM in reach
        if temporary:
            return _made(_raw_temp_view(spark, name), temporary)
        catalog = spark._jsparkSession.sessionState().catalog()
        return _made(catalog.getTableMetadata(table_identifier(spark, name)), temporary)
    if temporary:
        return None
    told = told_of_view(query, name)
    if told is None:
        return None
    settings = {str(k): str(v) for k, v in told["view_creation_spark_configuration"].items()}
    return ViewMade(settings, parts_of(told["view_catalog_and_namespace"]), str(told.get("collation") or ""))


def told_of_view(query: Query, name: str) -> Mapping[str, Any] | None:
    """What DESCRIBE EXTENDED … AS JSON says of a view (`name` as a statement has it); None from an earlier Spark, or of another catalogue."""
    try:
        told: Mapping[str, Any] = json.loads(next(iter(query(f"describe extended {name} as json")[0].values())))
    except Exception:  # no such statement, or no view of Spark's own
        return None
    wanted = ("view_text", "view_catalog_and_namespace", "view_creation_spark_configuration")
    return told if all(word in told for word in wanted) else None


def temp_view_text(spark: Any, name: str, columns: Sequence[str]) -> str | None:
    """The SELECT of a temporary view, with its tables qualified and the `columns` that the view has. None where the session is not in reach, and for a view made of a
    DataFrame."""
    try:
        meta = _raw_temp_view(spark, name)
        if not meta.viewText().isDefined():
            return None
        others = {_listed(names)[-1].lower() for names in _items(meta.viewReferredTempViewNames())}
        namespace = ".".join(map(quoted, _listed(meta.viewCatalogAndNamespace())))
        text = qualify_tables(meta.viewText().get(), namespace, others)
        return with_own_names(text, _listed(meta.viewQueryColumnNames()), columns)
    except Exception:  # another Spark, no JVM here, no such view
        return None


def default_setting(query: Query, name: str, made: bool) -> str | None:
    """What Spark takes where the setting is not made; None where that is not told: out of reach of the JVM, of one that this session has `made`."""
    spark: Any = getattr(query, "spark", None)
    try:
        return str(jvm_class(spark, "org.apache.spark.sql.internal.SQLConf")().getConfString(name))
    except Exception:  # no JVM in reach, or a setting without a default
        if made:
            return None
    try:
        return str(spark.conf.get(name)) if spark is not None else session_setting(query, name) or None
    except Exception:  # a setting without a default
        return None


def _raw_temp_view(spark: Any, name: str) -> Any:
    catalog = spark._jsparkSession.sessionState().catalog()
    parts = parts_of(name)
    found = catalog.getRawTempView(parts[0]) if len(parts) == 1 else catalog.getRawGlobalTempView(parts[-1])
    return found.get().tableMeta()


def _made(meta: Any, temporary: bool) -> ViewMade:
    settings = from_one_text(str(meta.viewSQLConfigs().mkString(SETTINGS_BETWEEN)))
    collation = ""
    with suppress(Exception):  # before Spark 4
        collation = str(meta.collation().get()) if meta.collation().isDefined() else ""
    return ViewMade(settings, tuple(_listed(meta.viewCatalogAndNamespace())), collation, temporary)


def _listed(names: Any) -> list[str]:
    return [str(name) for name in _items(names)]


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(k) for k in range(sequence.size())]
