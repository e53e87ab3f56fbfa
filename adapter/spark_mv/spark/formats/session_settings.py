"""Settings of the session that statements are sent to."""

from __future__ import annotations

from spark_mv.spark.formats.commits import Query


def session_setting(query: Query, name: str) -> str:
    """A setting, empty where it is not made. Over Thrift it takes a statement."""
    conf = getattr(getattr(query, "spark", None), "conf", None)
    if conf is not None:
        return str(conf.get(name, "") or "")
    try:
        value = str(query(f"set `{name}`")[0]["value"] or "")
    except Exception:  # a server that lets nobody look
        return ""
    return "" if "<undefined>" in value else value
