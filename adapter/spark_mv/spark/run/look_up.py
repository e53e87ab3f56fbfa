"""Find out what a run must know before it decides: few, cheap, read-only statements."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from spark_mv.maintenance.columns import same_type
from spark_mv.maintenance.errors import RefusedError, first_line
from spark_mv.maintenance.facts import Column, SourceFacts, TargetFacts, without_versions
from spark_mv.maintenance.state import StateFacts, as_published
from spark_mv.query.syntax.table_name import parts_of, quoted_name
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.describe import Description, read_description
from spark_mv.spark.formats.described import described
from spark_mv.spark.formats.registry import format_of
from spark_mv.spark.formats.remains import OWNER_PROPERTY
from spark_mv.spark.formats.session_settings import made_settings
from spark_mv.spark.formats.state_rows import readable
from spark_mv.spark.formats.table_format import Versioned
from spark_mv.spark.formats.views import temp_view_text
from spark_mv.spark.session.current_values import current_values

ASK_AGAIN_PROPERTY = "spark_mv.ask_again"
"""Table property with which recompute_ai asks the next run for new AI answers."""

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
    settings: Mapping[str, str] = field(default_factory=dict)


RESULT_SETTINGS = frozenset(
    [
        "spark.sql.analyzer.preferColumnOverLcaInArrayIndex", "spark.sql.avro.datetimeRebaseModeInRead", "spark.sql.caseSensitive", "spark.sql.charAsVarchar",
        "spark.sql.chunkBase64String.enabled", "spark.sql.columnNameOfCorruptRecord", "spark.sql.decimalOperations.allowPrecisionLoss",
        "spark.sql.enforceTypeCoercionBeforeUnionDeduplication.enabled", "spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreInvalidPartitionPaths",
        "spark.sql.files.ignoreMissingFiles", "spark.sql.groupByAliases", "spark.sql.groupByOrdinal", "spark.sql.hive.convertMetastoreOrc",
        "spark.sql.hive.convertMetastoreParquet", "spark.sql.hive.convertMetastoreParquet.mergeSchema", "spark.sql.icu.caseMappings.enabled",
        "spark.sql.json.enableExactStringParsing", "spark.sql.json.enablePartialResults", "spark.sql.jsonGenerator.ignoreNullFields",
        "spark.sql.lateralColumnAlias.enableImplicitResolution", "spark.sql.mapKeyDedupPolicy", "spark.sql.mergeNestedTypeCoercion.enabled",
        "spark.sql.optimizer.decorrelateExistsSubqueryLegacyIncorrectCountHandling.enabled",
        "spark.sql.optimizer.decorrelateSubqueryLegacyIncorrectCountHandling.enabled", "spark.sql.orc.mergeSchema", "spark.sql.orderByOrdinal",
        "spark.sql.parquet.binaryAsString", "spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.ignoreVariantAnnotation",
        "spark.sql.parquet.inferTimestampNTZ.enabled", "spark.sql.parquet.int96AsTimestamp", "spark.sql.parquet.int96RebaseModeInRead",
        "spark.sql.parquet.int96TimestampConversion", "spark.sql.parquet.mergeSchema", "spark.sql.parquet.respectSummaryFiles",
        "spark.sql.preserveCharVarcharTypeInfo", "spark.sql.readSideCharPadding", "spark.sql.selfJoinAutoResolveAmbiguity", "spark.sql.sources.default",
        "spark.sql.sources.partitionColumnTypeInference.enabled", "spark.sql.stableDerivedColumnAlias.enabled", "spark.sql.storeAssignmentPolicy",
        "spark.sql.timestampType", "spark.sql.variable.substitute", "spark.sql.variant.allowDuplicateKeys",
    ]
)  # fmt: skip
"""Settings of a session that decide what an expression gives, beside those that start with RESULT_PREFIXES."""
RESULT_PREFIXES = (
    "spark.sql.ansi.",
    "spark.sql.collation.",
    "spark.sql.function.",
    "spark.sql.legacy.",
    "spark.sql.parser.",
    "spark.sql.session.collation",
)
_REFERENCE = re.compile(r"\$\{([^\s'\"`\\]+?)\}")
"""Where Spark puts the value of a setting, an environment variable (`env:`) or a property of its JVM (`system:`) into a statement
(`spark.sql.variable.substitute`)."""


def session_facts(query: Query, sql: str = "") -> SessionFacts:
    """No statement where the session is in reach; else one, and over Thrift another one for the settings. `sql`: the query whose result
    is to be told by them."""
    row = (
        current_values(getattr(query, "spark", None))
        or query(
            "select current_timezone() as time_zone, current_user() as user_name, current_catalog() as catalog_name, "
            "current_schema() as schema_name, version() as version_text"
        )[0]
    )
    return SessionFacts(
        row["time_zone"],
        row["user_name"],
        row["catalog_name"],
        row["schema_name"],
        row["version_text"],
        {"Spark": row["version_text"], **_result_settings(query, sql)},
    )


def _result_settings(query: Query, sql: str) -> dict[str, str]:
    """The settings that were made and decide what an expression gives, and what the query names as `${…}`. What was not made
    follows from Spark's version."""
    return {k: str(v) for k, v in made_settings(query).items() if decides_results(k)} | _put_in(query, sql)


def _put_in(query: Query, sql: str) -> dict[str, str]:
    """What Spark puts in for each `${…}` of the query, as a hash: it may be a secret. Spark itself is asked, because a value may
    name others, and each connection has its own environment. Raises RefusedError for what does not stay inside quotes."""
    names = sorted(set(_REFERENCE.findall(sql)))
    if not names:
        return {}
    columns = ", ".join(f"left(sha2(r'${{{name}}}', 256), 12) as put_in_{k}" for k, name in enumerate(names))
    try:
        row = query(f"select {columns}")[0]
    except Exception as error:
        listed = ", ".join(f"${{{name}}}" for name in names)
        raise RefusedError(
            "VALUE_IN_QUERY",
            f"what Spark puts into the query for {listed} is no plain text: {first_line(error)}. Nothing was run. "
            "Write it with dbt's var() or env_var(), so that the query is known as it runs",
        ) from error
    # without ${…}: Spark would put the value into the record, too
    return {f"{name} in the query": str(row[f"put_in_{k}"]) for k, name in enumerate(names)}


def decides_results(setting: str) -> bool:
    """Whether a setting of the session decides what an expression gives, its time zone apart."""
    return setting in RESULT_SETTINGS or setting.startswith(RESULT_PREFIXES)


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
        fact = _source(query, table)
        if fact is not None:
            facts[table] = fact
    return facts


def _source(query: Query, table: str) -> SourceFacts | None:
    if (fact := without_versions(table)) is not None:
        return fact
    name = quoted_name(table)
    description = described(query, name, lambda: describe(query, name))
    if description is None:
        return _files(query, table)
    if not description.details:
        names = [column.name for column in description.columns]
        text = temp_view_text(getattr(query, "spark", None), table, names)
        return SourceFacts(name=table, columns=description.columns, provider="temporary view", view_text=text)
    table_format = format_of(description.provider)
    known = table_format.source(query, name, description) if table_format else Versioned()
    text = description.view_text
    by_order = text is not None and description.is_by_order
    return SourceFacts(
        name=table,
        columns=description.columns,
        provider="view" if description.is_view else description.provider,
        version=known.version,
        view_text=None if by_order else text,
        sealed="several of its columns have one name in its SELECT, and a * gives them in the order that its tables have now"
        if by_order
        else "",
        sealed_text=(text or "") if by_order else "",
        change_feed=known.change_feed,
        retention=known.retention,
        pinnable=known.pinnable,
        obstacle=known.obstacle,
    )


def _files(query: Query, table: str) -> SourceFacts | None:
    """What Spark reads and has no description of: files by their path (``parquet.`/path` ``)."""
    try:
        columns = query_columns(query, f"select * from {quoted_name(table)}")
    except Exception:  # nothing of that name: the message about the whole query says so
        return None
    return SourceFacts(name=table, columns=columns, provider=f"{parts_of(table)[0].lower()} files")


def _columns_at(query: Query, table: str, versions: Sequence[int]) -> dict[int, tuple[Column, ...]]:
    """The table's columns at each of these versions that can still be read."""
    found = {}
    for version in versions:
        with suppress(Exception):  # the run says so, where it needs that version
            found[version] = query_columns(query, f"select * from {table} version as of {version}")
    return found


def target_facts(query: Query, table: str, exists: bool, model: str = "", others: Collection[str] = ()) -> TargetFacts:
    """Facts about the table of `model` (dbt's unique id; empty: of any); `exists` as dbt's relation cache has it, which saves
    a failing statement. A table that one of `others` made is not the model's."""
    description = describe(query, table) if exists else None
    if description is None:
        return TargetFacts()
    table_format = format_of(description.provider)
    if table_format is not None:
        description = table_format.described(query, table, description)
    owner = description.properties.get(OWNER_PROPERTY)
    ours = owner is not None and owner not in others
    found, version = None, None
    if table_format is not None:
        found = table_format.history(query, table, model)
        newest = None if ours else table_format.newest(query, table)
        version = newest.version if newest else found.version if found else None
    history = found if ours else None
    return TargetFacts(
        exists=True,
        is_table=not description.is_view,
        provider=description.provider,
        ours=ours,
        owner=owner or "",
        columns=description.columns,
        version=version,
        record=history.record if history else None,
        record_at=history.record_at if history else "",
        record_version=found.record_version if found else None,
        clean=history.clean if history else (),
        columns_then={} if history is None or history.intact else _columns_at(query, table, history.clean),
        written=description.written,
        our_checks=description.properties.get(OUR_CHECKS, ""),
        comments=description.comments,
        comment=description.details.get("Comment", ""),
        intact=history.intact if history else False,
        foreign_operation=history.foreign_operation if history else None,
        partition_by=description.partition_by,
        cluster_by=description.cluster_by,
        ask_again=description.properties.get(ASK_AGAIN_PROPERTY, ""),
        forget=history.forget if history else (),
    )


def state_facts(query: Query, table: str) -> StateFacts:
    """Facts about the model's state table; it may be gone although dbt's relation cache has it."""
    description = describe(query, table)
    table_format = format_of(description.provider) if description is not None else None
    if description is None:
        return StateFacts()
    if description.is_view or table_format is None:  # never ours, and in the way
        return StateFacts(exists=True, provider=description.provider, ours=False)
    facts = table_format.state(query, table, description.columns)
    return replace(facts, provider=description.provider, ours=OWNER_PROPERTY in description.properties)


def uncastable(query: Query, table: Iterable[Column], wanted: Iterable[Column]) -> frozenset[tuple[str, str]]:
    """Types of a table's columns, and types that the query gives these columns now, between which Spark knows no cast. No
    statement where no type changed."""
    now = {column.name.lower(): column for column in wanted}
    both = [(column, now[column.name.lower()]) for column in table if column.name.lower() in now]
    pairs = {(old.type, new.type) for old, new in both if not same_type(old, new)}
    return frozenset(pair for pair in pairs if not _castable(query, *pair))


def _castable(query: Query, old: str, new: str) -> bool:
    try:
        query_columns(query, f"select cast(cast(null as {old}) as {new}) as one")
    except Exception as error:
        if "DATATYPE_MISMATCH" in str(error):
            return False
        raise
    return True


def published_state(query: Query, table: str, state: StateFacts, target: TargetFacts) -> StateFacts:
    """The state as the model's table stands on it: what a run made of it that published nothing is not read."""
    found = as_published(state, target)
    if found is None:
        return state
    version, record = found
    try:
        columns = query_columns(query, f"select * from {table} version as of {version}")
    except Exception:  # a version that is gone
        return replace(state, foreign="a run that published nothing", readable=False)
    there = readable(query, table, version, columns)
    return replace(
        state,
        columns=columns,
        record=record,
        read_at=version,
        foreign="a run that published nothing",
        readable=there,
    )


def query_columns(query: Query, sql: str) -> tuple[Column, ...]:
    """The columns of a SELECT, without running it."""
    return tuple(Column(row["col_name"], row["data_type"]) for row in query(f"describe query {sql}"))
