"""What the histories of the sources say since the last run: few, cheap statements that read no data."""

from __future__ import annotations

from spark_mv.maintenance.changes import Changes, SourceChange
from spark_mv.maintenance.facts import RunFacts, SourceFacts
from spark_mv.maintenance.plan import Reason
from spark_mv.maintenance.record import SourceVersion
from spark_mv.maintenance.steps.versions import MOVED
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.registry import format_of
from spark_mv.spark.formats.table_format import Since

ROWS_OF_A_FILE = 1_000_000
"""About as many as Spark writes into a large one, if they are of a usual width."""


def read_changes(query: Query, facts: RunFacts, target: str) -> Changes:
    """The sources that moved since the target's last record, with estimates. The record must exist. Rows are counted
    where the record does not know them, and else follow from what the commits since then say."""
    record = facts.target.record
    assert record is not None
    moved, problems, rows = [], [], {}
    if len({source.name.lower() for source in facts.sources}) < len(facts.sources):
        problems.append(Reason("STRUCTURE", "two sources are paths that differ in their case only"))
    for source in facts.sources:
        if source.view_text is not None:
            continue
        if source.version is None:
            problems.append(Reason("SOURCE_UNVERSIONED", source.without_version))
            continue
        if source.obstacle:
            problems.append(Reason("SOURCE_UNREADABLE_AT_VERSION", source.obstacle))
            continue
        before = record.sources.get(source.name)
        known = record.source_rows.get(source.name)
        if before is None or before == source.version:
            rows[source.name] = _count(query, quoted_name(source.name)) if known is None else known
            continue
        found = _since(query, source, before, record.source_columns.get(source.name, ""))
        if isinstance(found, Reason):
            problems.append(found)
            continue
        nets = [commit.net for commit in found.commits]
        if known is None or None in nets:
            rows[source.name] = _count(query, quoted_name(source.name))
        else:
            rows[source.name] = max(known + sum(n for n in nets if n is not None), 0)
        moved.append(_change(source, before, source.version, found, rows[source.name]))
    of_target = _count(query, target) if record.target_rows is None else record.target_rows
    return Changes(tuple(moved), tuple(problems), rows, of_target)


def _since(query: Query, source: SourceFacts, before: SourceVersion, columns: str) -> Since | Reason:
    if before.version == MOVED:
        return Reason("SOURCE_MOVED", f"{source.name} was written to while the last run read it through a view")
    table_format = format_of(source.provider)
    assert table_format is not None, source  # it has a version
    return table_format.since(query, source, before, columns)


def _change(source: SourceFacts, before: SourceVersion, now: SourceVersion, since: Since, count: int) -> SourceChange:
    rows = [None if commit.rows is None else commit.rows + commit.anew * count for commit in since.commits]
    return SourceChange(
        name=source.name,
        low=before.version,
        high=now.version,
        how=since.how,
        append_only=bool(since.commits) and all(commit.appends for commit in since.commits),
        rows=None if None in rows else sum(row for row in rows if row is not None),
        table_rows=count,
        sequence=since.sequence,
        searched=sum(min(commit.marked * ROWS_OF_A_FILE, count) for commit in since.commits),
    )


def _count(query: Query, table: str) -> int:
    """Answered from the format's statistics, without a job, unless deletion vectors or missing statistics forbid it."""
    return int(query(f"select count(*) as n from {table}")[0]["n"])
