"""How far back Delta reads: since 4.4 it refuses every version but the newest once its commit is older than the table's
`delta.deletedFileRetentionDuration`, whether its files are still there or not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone

from spark_mv.spark.formats.commits import Query
from spark_mv.spark.session.spark_settings import ENFORCED

PROPERTY = "delta.deletedFileRetentionDuration"
WEEK = 7 * 86400.0
LONG_RUN = 86400.0
"""Seconds that a run may take."""
_UNITS = {"week": WEEK, "day": 86400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0}


def retention(properties: Mapping[str, str]) -> float:
    """Seconds for which older versions can be read.

    >>> retention({"delta.deletedFileRetentionDuration": "interval 2 weeks 12 hours"}) / 3600
    348.0
    >>> retention({}) == WEEK
    True
    """
    parts = re.findall(r"(\d+)'?\s*([a-z]+?)s?\b", properties.get(PROPERTY, "").lower())
    return sum(int(n) * _UNITS.get(unit, 0.0) for n, unit in parts) if parts else WEEK


def age(committed_at: str) -> float:
    """Seconds since a commit (UTC text)."""
    try:
        moment = datetime.fromisoformat(committed_at).replace(tzinfo=timezone.utc)
    except ValueError:
        return 0.0
    return (datetime.now(timezone.utc) - moment).total_seconds()


def is_enforced(query: Query) -> bool:
    """Whether this session refuses to read old versions. Asked only where it matters: over Thrift it is a statement."""
    spark = getattr(query, "spark", None)
    try:
        value = spark.conf.get(ENFORCED, "true") if spark is not None else query(f"set {ENFORCED}")[0]["value"]
    except Exception:  # a Delta that has no such setting
        return True
    return str(value).lower() != "false"
