"""The tables that are the adapter's own in the catalogue of the session: the format of those that belong to no single model (`ai_results`,
`ai_batches`, `mv_runs`, evaluations of answers), and what dropping one takes."""

from __future__ import annotations

import re
import time
from typing import Any

from spark_mv.ai.batches.store import TABLE_NAME as BATCHES
from spark_mv.ai.results import TABLE_NAME as ANSWERS
from spark_mv.ai.similar_table import TABLE_NAME as SIMILAR
from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.formats.registry import FORMATS
from spark_mv.spark.formats.remains import Remains, find_remains
from spark_mv.spark.formats.session_settings import default_catalogue, is_icebergs
from spark_mv.spark.formats.table_format import TableFormat
from spark_mv.spark.session.iceberg import stands_behind_delta
from spark_mv.spark.session.session_catalogue import SESSION_CATALOGUE

RUNS = "mv_runs"
EVALUATED = "ai_evaluations"
OWN_TABLES = {
    ANSWERS: "the table of AI answers",
    SIMILAR: "the table of AI inputs that mean the same",
    BATCHES: "the table of AI batches",
    RUNS: "the table of runs",
    **{EVALUATED + part: "a table of `ai_eval`" for part in ("", "_confusion", "_agreement")},
}
"""Names, in lower case, that no model's table may have."""
_RACES = (
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
    "ALREADY_EXISTS",
    "AlreadyExists",
    "CommitFailed",
)
_PAUSES = (0.0, 0.2, 1.0, 2.0)
"""Seconds before each attempt to make a table."""
_OF_A_QUERY = re.compile(
    r"create table if not exists (?P<head>.*comment '(?P<comment>[^']*)'.*) as (?P<query>select .*)", re.I | re.S
)
_OF_COLUMNS = re.compile(
    r"create table if not exists (?P<name>(?:`[^`]*`|[^`(])+) \((?P<columns>.*?)\)(?P<rest>\s+using .*)", re.I | re.S
)


def made_by_another(error: Exception) -> bool:
    """Whether CREATE TABLE IF NOT EXISTS of a shared table failed because another thread or process made it, or its columns, meanwhile."""
    return any(sign in str(error) for sign in _RACES)


def make_table(query: Query, table: str, statement: str) -> None:
    """Sends the CREATE TABLE IF NOT EXISTS of a table that models share. Where another thread or process is making it, waits for that; where
    only files are there that one left which was killed before the catalogue knew of the table, makes the table in their place.
    Raises RunFailed where they may be more than that."""
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            query(statement)
            return
        except Exception as error:
            if not made_by_another(error):
                raise
            failed = error
    try:
        remains = find_remains(query, table, failed)
    except TurnTaken:  # it has come meanwhile
        return
    if remains is None:
        raise failed
    query(_in_the_place_of(remains, table, statement))


def _in_the_place_of(remains: Remains, table: str, statement: str) -> str:
    """CREATE OR REPLACE TABLE AS SELECT: Delta puts a table of columns only in the place of a table. A table that is made by a query has
    its rows from its first commit on and keeps those of the remains; one of columns has none until the catalogue knows it."""
    as_query, columns = _OF_A_QUERY.fullmatch(statement), _OF_COLUMNS.fullmatch(statement)
    is_ours = remains.detail is None or (
        remains.detail["description"] == as_query["comment"] if as_query else remains.detail["numFiles"] == 0
    )
    if not is_ours:
        place = string_literal(remains.location)
        raise RunFailed(
            "REMAINS",
            f"{remains.location}, where the table {table} is to be, holds a Delta table that no catalogue knows. Nothing was changed. If it is "
            f"{table}, give it back to the catalogue: CREATE TABLE {table} USING delta LOCATION {place}. If not, move its files away",
        )
    if as_query:
        rows = as_query["query"] if remains.detail is None else f"SELECT * FROM {remains.path}"
        return f"CREATE OR REPLACE TABLE {as_query['head']} AS {rows}"
    assert columns is not None, statement
    # the fields of a struct bring the columns' comments along
    none = f"SELECT row.* FROM (SELECT from_json('{{}}', {string_literal(columns['columns'])}) AS row) WHERE false"
    return f"CREATE OR REPLACE TABLE {columns['name']}{columns['rest']} AS {none}"


def own_format(query: Query, wanted: str | None) -> TableFormat:
    """The profile's default one (`wanted`) where it can be written to row by row, else that of the catalogue in
    which names without one are found: Iceberg where this is one of Iceberg's own, Delta everywhere else."""
    if wanted and wanted.lower() in FORMATS:
        return FORMATS[wanted.lower()]
    return FORMATS["iceberg" if is_icebergs(query, default_catalogue(query)) else "delta"]


def own_format_of(adapter: Any) -> TableFormat:
    """The same for dbt's adapter."""
    wanted = getattr(adapter.config.credentials, "file_format", None)
    return own_format(Ask(adapter.query, adapter.mv_spark()), wanted)


def takes_name(query: Query, name: str) -> bool:
    """Whether the catalogue in which names without one are found can have a table of this name. Spark's own takes ASCII letters, digits and `_` (its
    SessionCatalog.validateName), and looks only once the table's files have been written."""
    return re.fullmatch(r"\w+", name, re.ASCII) is not None or default_catalogue(query) != SESSION_CATALOGUE


def with_files(query: Query, written: TableFormat | None = None) -> str:
    """What DROP TABLE needs to be told so that the files of a table of ours go, too: Iceberg's catalogues leave them, and where one stands behind
    Delta's, those of any table. `written`: the format of the model's table; over Thrift, where it takes statements, none but Iceberg's leads to asking."""
    spark = getattr(query, "spark", None)
    if spark is None and written is not None and written.name != "iceberg":
        return ""
    leaves_files = is_icebergs(query, default_catalogue(query)) or stands_behind_delta(spark)
    return " purge" if leaves_files else ""
