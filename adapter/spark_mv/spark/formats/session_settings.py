"""Settings of the session that statements are sent to, and what they say of the catalogue in which names without one are found."""

from __future__ import annotations

from spark_mv.spark.formats.commits import Query

CATALOGUES = "spark.sql.catalog."
SESSION_CATALOGUE = "spark_catalog"


def session_setting(query: Query, name: str) -> str:
    """A setting, empty where it is not made. Over Thrift it takes a statement; raises what a server says that lets nobody look."""
    conf = getattr(getattr(query, "spark", None), "conf", None)
    if conf is not None:
        return str(conf.get(name, "") or "")
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
