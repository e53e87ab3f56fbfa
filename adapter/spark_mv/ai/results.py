"""The table of paid answers: its columns, the statements that make and look at it."""

from __future__ import annotations

TABLE_NAME = "ai_results"

COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("result_key", "STRING", "sha256 of function, arguments, prompt version, model, model version, parameters, schema"),
    ("function", "STRING", "the AI function"),
    ("arguments_hash", "STRING", "sha256 of function and arguments: the same under every model"),
    ("model", "STRING", "the model that answered"),
    ("model_version", "STRING", "its declared version"),
    ("identity_hash", "STRING", "sha256 of model, version, prompt version, parameters, schema"),
    ("status", "STRING", "ok or error"),
    ("value", "STRING", "the answer: text, or JSON for other types; NULL is an answer where status is ok"),
    ("error_class", "STRING", "why there is no answer: rate_limit, server, timeout, refused, invalid_answer, …"),
    ("error", "STRING", "text of the error"),
    ("attempts", "INT", "how often the provider was asked"),
    ("input_tokens", "BIGINT", "as the provider counted"),
    ("output_tokens", "BIGINT", "as the provider counted"),
    ("cost", "DOUBLE", "by the prices of the profile at that time"),
    ("called_at", "TIMESTAMP", "when the answer came"),
    ("next_retry_at", "TIMESTAMP", "an error is not asked again before"),
    ("invocation_id", "STRING", "the dbt run that paid"),
    ("request", "STRING", "the arguments as canonical JSON, only with keep_requests"),
)
COLUMN_NAMES = tuple(name for name, _, _ in COLUMNS)
DDL = ", ".join(f"{name} {kind}" for name, kind, _ in COLUMNS)


def quoted(*parts: str) -> str:
    """A name in SQL from its parts; a part that is already quoted stays."""
    return ".".join(p if p.startswith("`") else "`" + p.replace("`", "``") + "`" for p in parts if p)


def table_name(schema: str, result_schema: str | None = None) -> str:
    """Where the result table lives: the profile's result_schema, else the target schema. Quoted, for SQL."""
    return quoted(*(result_schema or schema).split("."), TABLE_NAME)


def create_sql(results_table: str, file_format: str = "delta", location: str | None = None) -> str:
    """CREATE TABLE IF NOT EXISTS. The table is only ever appended to, pruning apart."""
    columns = ",\n  ".join(f"{name} {kind} COMMENT '{comment}'" for name, kind, comment in COLUMNS)
    where = f"\nLOCATION '{location}'" if location else ""
    return (
        f"CREATE TABLE IF NOT EXISTS {results_table} (\n  {columns}\n) USING {file_format}{where}\n"
        "COMMENT 'Answers of AI functions, shared by all models of this schema. Kept by dbt-spark-mv.'"
    )
