"""What the functions of level user and session give in a session, without a statement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spark_mv.spark.session.jvm import static

TIME_ZONE = "spark.sql.session.timeZone"
_CATALYST = "org.apache.spark.sql.catalyst."
_PLAIN = re.compile(r"(?!\d+$)\w+", re.ASCII)


def current_values(spark: Any) -> Mapping[str, str] | None:
    """`time_zone`, `user_name`, `catalog_name`, `schema_name` and `version_text` from where Spark's own functions take them. None where
    the session's JVM is not in reach, Spark has other classes, or Spark would quote the schema's name."""
    try:
        manager = spark._jsparkSession.sessionState().catalogManager()
        namespace = list(manager.currentNamespace())
        schema = ".".join(namespace)
        if not all(_PLAIN.fullmatch(part) for part in namespace):
            return None
        found = {
            "time_zone": spark.conf.get(TIME_ZONE),
            "user_name": static(spark, _CATALYST + "CurrentUserContext", "getCurrentUser")(),
            "catalog_name": manager.currentCatalog().name(),
            "schema_name": schema,
            "version_text": static(
                spark, _CATALYST + "expressions.ExpressionImplUtils", "getSparkVersion"
            )().toString(),
        }
    except Exception:  # Spark Connect, Thrift, another Spark: the statement says it
        return None
    return found if all(isinstance(text, str) for text in found.values()) else None
