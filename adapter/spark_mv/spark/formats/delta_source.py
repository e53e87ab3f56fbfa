"""What Delta's history says of a source since the last run: few, cheap statements that read no data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_mv.maintenance.facts import SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.record import SourceVersion
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.spark.formats.commits import Query, commit_time, commits
from spark_mv.spark.formats.history import KEEPS_ROWS, entries
from spark_mv.spark.formats.retention import PROPERTY, age, is_enforced
from spark_mv.spark.formats.table_format import Commit, Since
from spark_mv.spark.session.spark_settings import ENFORCED

FEED_PROPERTY = "delta.enableChangeDataFeed"

SCHEMA_CHANGES = frozenset({"RENAME COLUMN", "DROP COLUMNS", "REPLACE COLUMNS"})
"""Operations after which Delta refuses the feed, or an older version has other columns."""
NEW_TABLE = ("CREATE", "REPLACE", "RESTORE", "CLONE")
_COUNTS: Mapping[str, Mapping[str, int]] = {
    "DELETE": {"numDeletedRows": 1},
    "UPDATE": {"numUpdatedRows": 2},
    "MERGE": {"numTargetRowsInserted": 1, "numTargetRowsUpdated": 2, "numTargetRowsDeleted": 1},
}


def since(query: Query, source: SourceFacts, before: SourceVersion, columns: str) -> Since | Reason:
    """See TableFormat.since."""
    name, now = source.name, source.version
    assert now is not None
    if now.version <= before.version:
        return Reason(
            "SOURCE_RECREATED", f"{name} is at version {now.version} and was at {before.version}: it was made anew"
        )
    lost = set(columns.split()) - set(source.columns_print.split())
    if lost or not columns:
        what = "have other names or types than" if columns else "are not known to be those that"
        return Reason("SOURCE_SCHEMA_CHANGED", f"columns of {name} {what} the last run read")
    history = commits(query, quoted_name(name), now.version - before.version + 5)
    base = next((row for row in history if int(row["version"]) == before.version), None)
    if base is None:
        return Reason("HISTORY_GONE", f"the history of {name} does not reach back to version {before.version}")
    if commit_time(base) != before.timestamp:
        return Reason("SOURCE_RECREATED", f"version {before.version} of {name} is another one than the last run read")
    since = [row for row in history if before.version < int(row["version"]) <= now.version]
    writes = [row for row in since if row["operation"] not in KEEPS_ROWS]
    changed = [str(row["operation"]) for row in since if row["operation"] in SCHEMA_CHANGES]
    if changed:
        return Reason("SOURCE_SCHEMA_CHANGED", f"the columns of {name} changed ({', '.join(dict.fromkeys(changed))})")
    made_anew = any(word in str(row["operation"]) for row in writes for word in NEW_TABLE)
    # other properties come and go: a model that found nothing to write marks its table with one
    switched = any(
        row["operation"] in ("SET TBLPROPERTIES", "UNSET TBLPROPERTIES")
        and FEED_PROPERTY in str(row["operationParameters"])
        for row in since
    )
    feed = source.change_feed and not made_anew and not switched
    if not feed and set(source.columns_print.split()) - set(columns.split()):
        return Reason("SOURCE_SCHEMA_CHANGED", f"{name} has columns that the version which the last run read has not")
    first = next((row for row in since if int(row["version"]) == before.version + 1), base) if feed else base
    if int(first["version"]) < now.version and age(commit_time(first)) > source.retention and is_enforced(query):
        return Reason(
            "HISTORY_GONE",
            f"version {first['version']} of {name} is older than the {source.retention / 3600:,.0f} hours for which Delta "
            f"reads old versions of it. A longer {PROPERTY} of {name} keeps more, and the setting {ENFORCED}=false reads "
            "all that VACUUM has left",
        )
    return Since("feed" if feed else "snapshots", tuple(_commit(row) for row in writes))


def _commit(row: Mapping[str, Any]) -> Commit:
    rows, anew = _rows(row)
    return Commit(_appends(row), _net(row), rows, anew, _marked(row))


def _appends(row: Mapping[str, Any]) -> bool:
    parameters, operation = entries(row["operationParameters"]), row["operation"]
    if operation == "WRITE":
        return parameters.get("mode") == "Append"
    if operation == "STREAMING UPDATE":
        return parameters.get("outputMode") == "Append"
    if operation == "MERGE":
        metrics = entries(row["operationMetrics"])
        names = ("numTargetRowsUpdated", "numTargetRowsDeleted")
        return all(metrics.get(name) == "0" for name in names)
    return bool(operation == "COPY INTO")


def _rows(row: Mapping[str, Any]) -> tuple[int | None, bool]:
    """Rows that came or went with one commit, and whether all others went besides."""
    metrics, operation = entries(row["operationMetrics"]), str(row["operation"])
    try:
        if operation in _COUNTS:
            return sum(factor * int(metrics[name]) for name, factor in _COUNTS[operation].items()), False
        written = int(metrics["numOutputRows"])
        if "numDeletedRows" in metrics:  # REPLACE WHERE; rows that stay are counted as written and as copied
            return written - int(metrics.get("numCopiedRows", 0)) + int(metrics["numDeletedRows"]), False
    except (KeyError, ValueError):
        return None, False
    return written, not _appends(row)


def _marked(row: Mapping[str, Any]) -> int:
    """In how many files a DELETE marked rows. Other statements write the rows that they change beside the files, for the feed."""
    found = (
        entries(row["operationMetrics"]).get("numDeletionVectorsAdded", "0") if row["operation"] == "DELETE" else "0"
    )
    return int(found) if found.isdigit() else 0


def _net(row: Mapping[str, Any]) -> int | None:
    """By how many rows one commit made the table longer; None where its figures do not say."""
    metrics, operation = entries(row["operationMetrics"]), str(row["operation"])
    try:
        if operation == "UPDATE":
            return 0
        if operation == "DELETE":
            return -int(metrics["numDeletedRows"])
        if operation == "MERGE":
            return int(metrics["numTargetRowsInserted"]) - int(metrics["numTargetRowsDeleted"])
        return int(metrics["numOutputRows"]) if _appends(row) else None
    except (KeyError, ValueError):
        return None
