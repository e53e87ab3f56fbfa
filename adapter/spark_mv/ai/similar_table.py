"""The table of AI inputs that mean the same: its columns, the statements that make it, read it, and take out what nobody has asked."""

from __future__ import annotations

from spark_mv.ai.providers.local import MINILM, MINILM_VERSION
from spark_mv.ai.results import beside, create_table_sql
from spark_mv.query.syntax.source_text import string_literal as quote

TABLE_NAME = "ai_similar"
SIMILAR_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("near_key", "STRING", "the question, as in ai_results"),
    ("leader", "STRING", "near_key of the question whose answer counts for it; its own where it leads"),
    ("similarity", "DOUBLE", "cosine of the two texts; NULL: it leads"),
    ("kind", "STRING", "sha2 of all of the question but its text: function, constants, model"),
    ("numbers", "STRING", "sha2 of the numbers in its text"),
    ("vector", "BINARY", "of those that lead: 32-bit floats, little-endian; NULL: not to be compared"),
    ("at_least", "DOUBLE", "dedupe.semantic of the run"),
    ("model", "STRING", "who made the vectors"),
    ("at", "TIMESTAMP", "when it was looked at"),
    ("project", "STRING", "the dbt project that did"),
)
MODEL = f"{MINILM} {MINILM_VERSION}"


def similar_table(results_table: str) -> str:
    """The table of what means the same, beside that of answers."""
    return beside(results_table, TABLE_NAME)


def create_similar_sql(results_table: str, file_format: str = "delta") -> str:
    """CREATE TABLE IF NOT EXISTS."""
    return create_table_sql(similar_table(results_table), SIMILAR_COLUMNS, "AI inputs that mean the same", file_format)


def mine_sql(at_least: float) -> str:
    """SQL over the table: the rows of runs that had this `dedupe.semantic`."""
    return f"at_least = {at_least!r}D AND model = {quote(MODEL)}"


def classes_sql(results_table: str, at_least: float) -> str:
    """The near_keys that were looked at, each with the one that leads it (`class`). Of two processes that placed a question, the first counts."""
    return (
        f"SELECT near_key, min_by(leader, struct(at, leader)) AS class FROM {similar_table(results_table)} "
        f"WHERE {mine_sql(at_least)} GROUP BY near_key"
    )


def forget_sql(results_table: str) -> str:
    """Removes the questions of which the table of answers knows nothing, with their vectors."""
    table = similar_table(results_table)
    gone = f"SELECT DISTINCT s.near_key FROM {table} s LEFT ANTI JOIN {results_table} r ON r.near_key = s.near_key"
    return f"MERGE INTO {table} AS t USING ({gone}) AS g ON t.near_key = g.near_key WHEN MATCHED THEN DELETE"
