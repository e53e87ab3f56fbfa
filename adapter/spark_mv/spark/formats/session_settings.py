"""Settings of the session that statements are sent to, and what they say of the catalogue in which names without one are found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_mv.spark.formats.commits import Query
from spark_mv.spark.session.session_catalogue import SESSION_CATALOGUE

OVERWRITES = "spark.sql.sources.partitionOverwriteMode"
CATALOGUES = "spark.sql.catalog."
SETTINGS_BETWEEN, _IS = "\x1espark_mv\x1e", " -> "
"""What stands between two settings, and between name and value, in a text of all."""


def made_settings(query: Query) -> Mapping[str, str]:
    """All settings that were made in the session. A statement over Thrift and before PySpark 4."""
    spark = getattr(query, "spark", None)
    if (made := _in_one_text(spark)) is not None:
        return made
    everything = getattr(spark.conf, "getAll", None) if spark is not None else None  # new in PySpark 4
    if everything is None:
        return {row["key"]: row["value"] for row in query("set")}
    return {key: str(value) for key, value in everything.items()}


def _in_one_text(spark: Any) -> dict[str, str] | None:
    """The settings of a session whose JVM is in reach, where PySpark asks it three times for each of them."""
    try:
        text = spark._jsparkSession.conf().getAll().mkString(SETTINGS_BETWEEN)
    except Exception:  # no JVM in reach
        return None
    return from_one_text(text)


def from_one_text(text: str) -> dict[str, str]:
    """The settings in a map of the JVM that was printed with SETTINGS_BETWEEN between them: one answer, where each entry would be four."""
    return dict(entry.split(_IS, 1) for entry in text.split(SETTINGS_BETWEEN)) if text else {}


def session_setting(query: Query, name: str) -> str:
    """A setting, empty where it is not made. Over Thrift it takes a statement; raises what a server says that lets nobody look."""
    conf = getattr(getattr(query, "spark", None), "conf", None)
    if conf is not None:
        return str(conf.get(name, None) or "")  # another default would have to be a value of the setting
    rows = query(f"set `{name}`")
    value = str(rows[0].get("value") or "") if rows else ""
    return "" if "<undefined>" in value else value


def default_catalogue(query: Query) -> str:
    """Its name."""
    return _told(query, "spark.sql.defaultCatalog") or SESSION_CATALOGUE


def is_icebergs(query: Query, catalogue: str) -> bool:
    """Whether a catalogue is one of Iceberg's own."""
    return _told(query, CATALOGUES + catalogue).startswith("org.apache.iceberg.")


def _told(query: Query, name: str) -> str:
    try:
        return session_setting(query, name)
    except Exception:  # a server that lets nobody look: its catalogue is taken for Spark's own
        return ""
