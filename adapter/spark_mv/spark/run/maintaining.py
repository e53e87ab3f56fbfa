"""Upkeep of the tables that runs write, for models that live long: small files become large ones, old ones go, staging tables of dead runs too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.ai.batches.store import TABLE_NAME as BATCHES
from spark_mv.ai.results import beside, table_name
from spark_mv.ai.similar_table import similar_table
from spark_mv.maintenance.errors import RefusedError, first_line
from spark_mv.maintenance.format_version import check_rows
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.formats.own_tables import with_files
from spark_mv.spark.formats.remains import OWNER_PROPERTY
from spark_mv.spark.formats.turn import tagged
from spark_mv.spark.run import stamps
from spark_mv.spark.run.aside import is_aside
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import describe
from spark_mv.spark.run.run_history import TABLE as RUNS
from spark_mv.spark.session.own_catalogue import own_catalogue

LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


@dataclass(frozen=True)
class Size:
    """A table's newest version."""

    files: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.files:,} files, {self.bytes:,} bytes"


def maintain(
    adapter: Any, invocations: Sequence[Invocation], ai: Mapping[str, Any], vacuum: bool, dry_run: bool
) -> str:
    """OPTIMIZE, and with `vacuum` VACUUM, for the tables of these models and those that they share; what to tell the user. Neither
    changes a row; a run that publishes at the same moment may lose its turn. Tables of somebody else's are left alone. Raises RefusedError where there is no model."""
    if not invocations:
        raise RefusedError("NOTHING_TO_MAINTAIN", "this project has no nondeterministic_mv")
    query: Query = adapter.query
    described = {table: describe(query, table) for table in _tables(invocations, ai)}
    there = {table: found for table, found in described.items() if found is not None and not found.is_view}
    of_models = {table for one in invocations for table in (one.target, one.state_table)}
    foreign = [table for table in there if table in of_models and OWNER_PROPERTY not in there[table].properties]
    there = {table: found for table, found in there.items() if table not in foreign}
    for table, found in there.items():  # before anything is done
        check_rows(table, [*found.properties.items()])
    lines = [f"{table}: {_one(adapter, table, found.provider, vacuum, dry_run)}" for table, found in there.items()]
    lines += [f"{table}: left alone, nondeterministic_mv did not make it" for table in foreign]
    dead = [name for one in invocations for name in _dead(adapter, one)]
    files = with_files(Ask(query, adapter.mv_spark())) if dead else ""
    for name in dead if not dry_run else ():
        query(f"drop table if exists {name}{files}")
    if dead:
        lines.append(f"staging tables of dead runs{'' if dry_run else ', dropped'}: {', '.join(dead)}")
    return "\n".join(lines) or "no model has been built yet"


def _tables(invocations: Sequence[Invocation], ai: Mapping[str, Any]) -> list[str]:
    """Each model's table and state, and the tables that they share, once."""
    found: dict[str, None] = {}
    for one in invocations:
        found[one.target] = None
        found[one.state_table] = None
    for one in invocations:
        answers = table_name(one.schema.strip("`"), ai.get("result_schema"))
        found[answers] = None
        found[beside(answers, BATCHES)] = None
        found[similar_table(answers)] = None
        found[f"{one.schema}.{quoted(RUNS)}"] = None
    return list(found)


def _one(adapter: Any, table: str, provider: str, vacuum: bool, dry_run: bool) -> str:
    if provider != "delta":
        return f"left to the procedures of its own format ({provider})"
    before = _size(adapter.query, table)
    if dry_run:
        return str(before)
    try:
        adapter.query(f"optimize {table}")
        if vacuum:  # Delta lists the files in as many tasks as this says, 10,000 of them for a table of one file
            with tagged(adapter, {LISTING: str(max(2, min(10_000, before.files)))}):
                adapter.query(f"vacuum {table}")
    except Exception as error:  # the other tables are maintained all the same
        return f"{before}; not maintained: {first_line(error)}"
    return f"{before}; now {_size(adapter.query, table)}{', vacuumed' if vacuum else ''}"


def _size(query: Query, table: str) -> Size:
    row = query(f"describe detail {table}")[0]
    return Size(int(row["numFiles"]), int(row["sizeInBytes"]))


def _dead(adapter: Any, invocation: Invocation) -> list[str]:
    names = stamps.leftovers(invocation.relation_names, invocation.identifier, own_catalogue(adapter.mv_spark()))
    kept = (name for name in names if invocation.target_exists or not is_aside(name, invocation.identifier))
    return [f"{invocation.schema}.{quoted(name)}" for name in kept]
