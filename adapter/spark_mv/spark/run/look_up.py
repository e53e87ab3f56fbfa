"""Find out what a run must know before it decides: few, cheap, read-only statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spark_mv.maintenance.facts import Column, SourceFacts, TargetFacts
from spark_mv.maintenance.forget import PROPERTY, from_property
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.describe import Description, read_description
from spark_mv.spark.formats.history import latest_version, quoted, read_history
from spark_mv.spark.formats.remains import OWNER_PROPERTY

ASK_AGAIN_PROPERTY = "spark_mv.ask_again"
"""Table property with which recompute_ai asks the next run for new AI answers."""
FEED_PROPERTY = "delta.enableChangeDataFeed"

OUR_CHECKS = "spark_mv.checks"
"""Table property with the names of the checks that the model's contract brought: others are the user's own."""


@dataclass(frozen=True)
class SessionFacts:
    """What the functions of level user and session would answer in this session."""

    time_zone: str
    user: str
    catalog: str
    schema: str
    version: str


def session_facts(query: Query) -> SessionFacts:
    """One statement."""
    row = query(
        "select current_timezone() as time_zone, current_user() as user_name, current_catalog() as catalog_name, "
        "current_schema() as schema_name, version() as version_text"
    )[0]
    return SessionFacts(
        row["time_zone"], row["user_name"], row["catalog_name"], row["schema_name"], row["version_text"]
    )


def describe(query: Query, table: str) -> Description | None:
    """The description of a table or view, or None where there is none of that name."""
    try:
        return read_description(query(f"describe extended {table}"))
    except Exception as error:
        if "TABLE_OR_VIEW_NOT_FOUND" in str(error) or "SCHEMA_NOT_FOUND" in str(error):
            return None
        raise


def source_facts(query: Query, tables: Iterable[str], found: Mapping[str, SourceFacts]) -> dict[str, SourceFacts]:
    """Facts about the tables that are not in `found` yet. One statement each, and a look at the log of a Delta table.

    A table that does not exist is left out: Spark's own message about the query names it best.
    """
    facts: dict[str, SourceFacts] = {}
    for table in tables:
        if table in found or table in facts:
            continue
        description = describe(query, quoted(table))
        if description is None:
            continue
        version = latest_version(query, quoted(table)) if description.provider == "delta" else None
        facts[table] = SourceFacts(
            name=table,
            columns=description.columns,
            provider="view" if description.is_view else description.provider,
            version=version,
            view_text=description.view_text,
            change_feed=description.properties.get(FEED_PROPERTY, "").lower() == "true",
        )
    return facts


def target_facts(query: Query, table: str, exists: bool, model: str = "") -> TargetFacts:
    """Facts about the table of `model` (dbt's unique id; empty: of any); `exists` as dbt's relation cache has it, which saves
    a failing statement."""
    description = describe(query, table) if exists else None
    if description is None:
        return TargetFacts()
    ours = OWNER_PROPERTY in description.properties
    history, version = None, None
    if description.provider == "delta":
        history = read_history(query, table, model) if ours else None
        newest = None if ours else latest_version(query, table)
        version = history.version if history else newest.version if newest else None
    done = history.record.forgotten if history and history.record else ()
    return TargetFacts(
        exists=True,
        is_table=not description.is_view,
        provider=description.provider,
        ours=ours,
        columns=description.columns,
        version=version,
        record=history.record if history else None,
        record_at=history.record_at if history else "",
        record_version=history.record_version if history else None,
        clean=history.clean if history else (),
        written=description.details.get("Table Properties", ""),
        our_checks=description.properties.get(OUR_CHECKS, ""),
        comments=description.comments,
        intact=history.intact if history else False,
        foreign_operation=history.foreign_operation if history else None,
        partition_by=description.partition_by,
        cluster_by=description.cluster_by,
        ask_again=description.properties.get(ASK_AGAIN_PROPERTY, ""),
        forget=tuple(r for r in from_property(description.properties.get(PROPERTY)) if r.id not in done),
    )


def query_columns(query: Query, sql: str) -> tuple[Column, ...]:
    """The columns of a SELECT, without running it."""
    return tuple(Column(row["col_name"], row["data_type"]) for row in query(f"describe query {sql}"))
