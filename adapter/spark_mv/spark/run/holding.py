"""What small tables allow: to hold in memory what a run stages, where Spark's tasks run in this process, and to write all rows of the
model's table rather than to find and replace those that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.maintenance.changes import SourceChange, is_atomic, stage_args
from spark_mv.maintenance.facts import RunFacts, SourceFacts
from spark_mv.query.syntax.reserved import is_reserved
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.spark.formats.commits import Ask, Query, log_and_snapshot
from spark_mv.spark.formats.delta_source import FEED_PROPERTY
from spark_mv.spark.formats.registry import format_of
from spark_mv.spark.formats.table_format import TableFormat
from spark_mv.spark.run.amendments import by_delta_names
from spark_mv.spark.session.held_rows import can_hold, can_show

WHOLE = 1_000_000
"""Rows of a table up to which all of them are written rather than those that differ."""
BYTES = 64 * 2**20
"""Of the files of all sources and of the table, up to which staged rows are held: a million rows of a usual width, or some more."""

FEED = "shared"
"""The name in a plan of the relation that is held for others, too."""
MOST_COLUMNS = 64
"""Of a source whose feed is shared."""


@dataclass(frozen=True)
class HeldFeed:
    """A feed whose changes a run holds in memory. `key` is the same for all that read the same changes (None: not shared), `columns` are all of
    the source, as a step has them."""

    key: tuple[Any, ...] | None
    columns: Any


def replaced_whole(facts: RunFacts, config: Mapping[str, Any], followed: bool, format: TableFormat) -> bool:
    """Whether a run that reads the whole query also writes the whole table: a commit of all rows is quicker than one that finds some of
    them, up to WHOLE rows. Not where the change feed has readers, to whom every row would come anew: other models that follow
    this one (`followed`), or those for whom the user's `tblproperties` turn the feed on."""
    record, asked = facts.target.record, by_delta_names(config.get("tblproperties") or {})
    small = record is not None and record.target_rows is not None and record.target_rows <= WHOLE
    read = followed or asked.get(FEED_PROPERTY, "").lower() == "true"
    return small and facts.target.intact and format.replaces_by_key and not read


def holds(query: Ask, facts: RunFacts, target: str) -> bool:
    """Whether a run holds what it stages. What a query makes of small tables may be large: then Spark moves it to disk. Not where the
    size of one of the tables is not known."""
    if not can_hold(query.spark) or any(s.version is None and s.view_text is None for s in facts.sources):
        return False
    read = [(s.provider, quoted_name(s.name)) for s in facts.sources if s.version is not None]
    if facts.target.exists:
        read.append((facts.target.provider, target))
    sizes = [_bytes(query, provider, name) for provider, name in read]
    return all(size is not None for size in sizes) and sum(size or 0 for size in sizes) <= BYTES


def _holds_changes(query: Ask, source: SourceFacts, change: SourceChange) -> bool:
    """Whether a run holds what changed in a source, whatever the sizes of tables: by its share of the source's rows, which may be twenty times as
    large in memory as in files."""
    if not can_hold(query.spark) or change.rows is None or change.rows > change.table_rows:
        return False
    size = _bytes(query, source.provider, quoted_name(source.name))
    return size is not None and size * change.rows <= BYTES / 8 * change.table_rows


def held_feeds(query: Ask, facts: RunFacts, sources: Sequence[SourceChange]) -> Mapping[str, HeldFeed]:
    """Those of the changed sources whose changes a run holds, by the relation in which a step stages them. Shared are few rows, which outlive the
    run, that equality tells."""
    found = {}
    for number, change in enumerate(sources):
        source = next(s for s in facts.sources if s.name == change.name)
        few = change.how == "feed" and _holds_changes(query, source, change)
        if change.how == "feed" and (facts.held or few):
            args = stage_args(number, change, source)
            plain = all(is_atomic(column) and not is_reserved(column.name) for column in source.columns)
            shared = few and plain and len(source.columns) <= MOST_COLUMNS and can_show(query.spark)
            found[str(args["into"])] = HeldFeed(
                _key(query.spark, facts, source, change) if shared else None, args["columns"]
            )
    return found


def _key(spark: Any, facts: RunFacts, source: SourceFacts, change: SourceChange) -> tuple[Any, ...] | None:
    """The table, told from copies of its files and from what was restored in their place; its versions; and how a session reads them."""
    try:
        log, snapshot = log_and_snapshot(spark, quoted_name(source.name))
        table = (spark.sparkContext.applicationId, str(log.dataPath()), str(snapshot.metadata().id()))
    except Exception:  # the log is out of reach: each reads for itself
        return None
    columns = tuple((column.name, column.type) for column in source.columns)
    before = facts.target.record.sources.get(source.name) if facts.target.record else None
    settings = (facts.time_zone, *sorted(facts.settings.items()))
    return (*table, change.low, before, change.high, source.version, change.append_only, columns, settings)


def _bytes(query: Query, provider: str, name: str) -> int | None:
    table_format = format_of(provider)
    return None if table_format is None else table_format.size(query, name)
