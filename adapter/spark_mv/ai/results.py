"""The table of paid answers: its columns, the statements that make and look at it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

from spark_mv.maintenance.format_version import TABLE_PROPERTIES
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.query.syntax.table_name import parts_of
from spark_mv.query.syntax.table_name import quoted as in_backquotes

TABLE_NAME = "ai_results"
Columns = Sequence[tuple[str, str, str]]
"""Name, type and comment of each."""

COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("result_key", "STRING", "sha256 of function, arguments, prompt version, model, model version, parameters, schema"),
    ("function", "STRING", "the AI function"),
    ("arguments_hash", "STRING", "sha256 of function and arguments: the same under every model"),
    ("model", "STRING", "the model that answered"),
    ("model_version", "STRING", "its declared version"),
    ("identity_hash", "STRING", "sha256 of model, version, prompt version, parameters, schema"),
    (
        "status",
        "STRING",
        "ok, near and similar (under dedupe), error (asked again), refused or given_up (only by recompute_ai); stale, used, submitted, released (no answer)",
    ),
    (
        "value",
        "STRING",
        "the answer: text, or JSON for other types; NULL is an answer where status is ok",
    ),
    ("error_class", "STRING", "why there is no answer: rate_limit, server, timeout, refused, invalid_answer, …"),
    ("error", "STRING", "text of the error"),
    ("attempts", "INT", "how often the provider was asked"),
    ("input_tokens", "BIGINT", "as the provider counted, else four bytes each"),
    ("output_tokens", "BIGINT", "as the provider counted, else four bytes each"),
    ("cost", "DOUBLE", "by the prices of the profile at that time"),
    ("called_at", "TIMESTAMP", "when the answer came"),
    ("next_retry_at", "TIMESTAMP", "an error is not asked again before; NULL: not by itself"),
    ("invocation_id", "STRING", "the dbt run that paid"),
    ("request", "STRING", "the arguments as canonical JSON, only with keep_requests"),
    ("project", "STRING", "the dbt project that paid, or that uses the answer of another"),
    ("batch", "STRING", "the batch that it was asked in (ai_batches); NULL: asked by itself"),
    (
        "confidence",
        "DOUBLE",
        "of a cascade: how sure the model that answered was, 0 to 1; NULL: not asked, or not known",
    ),
    (
        "steps",
        "STRING",
        "of a cascade: JSON of each model asked, its tokens, cost and confidence, and why it was declined",
    ),
    ("cached_tokens", "BIGINT", "of the input tokens, those that the endpoint had cached"),
    (
        "prompts",
        "STRING",
        "the prompt files that the question is from, with version and hash; NULL: written in the SQL",
    ),
    ("near_key", "STRING", "under dedupe: sha2 of the question with case and white space folded; NULL: not folded"),
    (
        "answered_by",
        "STRING",
        "where status is near or similar: the result_key of the question that is asked in its place",
    ),
)
COLUMN_NAMES = tuple(name for name, _, _ in COLUMNS)
DDL = ", ".join(f"{name} {kind}" for name, kind, _ in COLUMNS)


def quoted(*parts: str) -> str:
    """A name in SQL from its parts; a part that is already quoted stays."""
    return ".".join(p if p.startswith("`") else in_backquotes(p) for p in parts if p)


def table_name(schema: str, result_schema: str | None = None) -> str:
    """Where the result table lives: the profile's result_schema, else the target schema. Quoted, for SQL.

    >>> table_name("a.b"), table_name("`a`.`b`", "c")
    ('`a`.`b`.`ai_results`', '`c`.`ai_results`')
    """
    return quoted(*parts_of(result_schema or schema), TABLE_NAME)


def create_sql(
    results_table: str, file_format: str = "delta", location: str | None = None, properties: str = TABLE_PROPERTIES
) -> str:
    """CREATE TABLE IF NOT EXISTS. The table is only ever appended to, pruning apart."""
    what = "Answers of AI functions, shared by all models of this schema"
    return create_table_sql(results_table, COLUMNS, what, file_format, location, properties)


def create_table_sql(
    table: str,
    columns: Columns,
    what: str,
    file_format: str = "delta",
    location: str | None = None,
    properties: str = TABLE_PROPERTIES,
) -> str:
    """CREATE TABLE IF NOT EXISTS of a table of answers or beside them; `what` is in it, in words."""
    listed = ",\n  ".join(f"{name} {kind} COMMENT '{comment}'" for name, kind, comment in columns)
    where = f"\nLOCATION '{location}'" if location else ""
    return (
        f"CREATE TABLE IF NOT EXISTS {table} (\n  {listed}\n) USING {file_format}{where}\n"
        f"COMMENT '{what}. Kept by dbt-spark-mv.' TBLPROPERTIES ({properties})"
    )


def beside(results_table: str, name: str) -> str:
    """The table of that name in the schema of the answers.

    >>> beside("`a`.`ai_results`", "ai_batches"), beside("`ai_results`", "ai_batches")
    ('`a`.`ai_batches`', '`ai_batches`')
    """
    schema = results_table.rpartition(".")[0]
    return f"{schema}.`{name}`" if schema else f"`{name}`"


def add_columns_sql(table: str, there: Iterable[str], columns: Columns = COLUMNS) -> str | None:
    """The ALTER that a table with these columns needs, None where it has all."""
    found = {name.lower() for name in there}
    missing = [f"{name} {kind} COMMENT '{comment}'" for name, kind, comment in columns if name not in found]
    return f"ALTER TABLE {table} ADD COLUMNS ({', '.join(missing)})" if missing else None


def insert_rows(table: str, columns: Columns, rows: Sequence[Sequence[Any]]) -> str:
    """INSERT of rows given as Python values, in the order of the columns. A TIMESTAMP may be seconds since the epoch."""
    texts = [
        "(" + ", ".join(_literal(value, kind) for value, (_, kind, _) in zip(row, columns, strict=True)) + ")"
        for row in rows
    ]
    return f"INSERT INTO {table} VALUES\n" + ",\n".join(texts)


def timestamp(seconds: float) -> str:
    """The text of a timestamp literal."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f") + " UTC"


def _literal(value: Any, kind: str) -> str:
    if value is None:
        return f"cast(NULL AS {kind})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"timestamp '{timestamp(value.timestamp())}'"
    if kind == "TIMESTAMP":
        return f"timestamp '{timestamp(value)}'"
    return quote(value) if isinstance(value, str) else f"cast({value!r} AS {kind})"


def used_columns(invocation_id: str, project: str) -> list[str]:
    """The columns of the table over requests (see pending): rows which say that `project` reads these answers."""
    given = {
        "result_key": "result_key",
        "function": "function",
        "arguments_hash": "arguments_hash",
        "status": "'used'",
        "called_at": "current_timestamp()",
        "invocation_id": quote(invocation_id),
        "project": quote(project),
    }
    return [f"cast({given.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind, _ in COLUMNS]
