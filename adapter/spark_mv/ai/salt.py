"""An optional salt of the hashes in the result table: who may read these and not the table that has the salt cannot tell whether a guess at a
question is right. The salt is a variable of the session, set from its table, so that it stands in no statement; the result table carries
a mark of the salt that its hashes are made with, because with another one, or with none, every answer would be paid again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.format_version import TABLE_PROPERTIES
from spark_mv.query.syntax.table_name import parts_of

SALT_PROPERTY = "spark_mv.salt"
_NAME = "spark_mv_salt"
SALT = f"system.session.{_NAME}"
"""SQL of the salt, in a session to which set_sql was sent."""


def problem_of_salt(value: Any) -> str | None:
    """What is wrong with the word in the profile."""
    if isinstance(value, str) and parts_of(value):
        return None
    return f"salt_table must be the name of a table, such as secrets.ai_salt, not {value!r}"


def create_salt_sql(salt_table: str, file_format: str) -> str:
    """CREATE TABLE IF NOT EXISTS, with its one row: a salt that nobody has chosen."""
    what = "The salt of the hashes in ai_results. Who may read it can test guesses at questions. Kept by dbt-spark-mv."
    return (
        f"CREATE TABLE IF NOT EXISTS {salt_table} USING {file_format} COMMENT '{what}' "
        f"TBLPROPERTIES ({TABLE_PROPERTIES}) AS SELECT concat(uuid(), uuid()) AS salt"
    )


def set_sql(salt_table: str) -> tuple[str, ...]:
    """The statements that set the session's variable. Subqueries in its place fail in some of Spark's plans ("has not finished")."""
    return f"DECLARE OR REPLACE VARIABLE {_NAME} STRING", f"SET VAR {_NAME} = (SELECT max(salt) FROM {salt_table})"


def mark_sql() -> str:
    """The mark of the session's salt, NULL where there is none."""
    return f"SELECT left(sha2({SALT}, 256), 16) AS mark"


def properties_of(mark: str | None) -> str:
    """The properties of a new result table whose hashes are made with the salt of this mark."""
    return f"{TABLE_PROPERTIES}, '{SALT_PROPERTY}' = '{mark}'" if mark else TABLE_PROPERTIES


def check_salt(results_table: str, properties: Mapping[str, str], salt_table: str, mark: str | None) -> None:
    """Raises RefusedError where the hashes of the result table are not made as these settings would make them. `salt_table` is "" where
    none is asked for, `mark` that of its salt."""
    found = properties.get(SALT_PROPERTY) or None
    if salt_table and mark is None:
        raise _refused(f"{salt_table} has no salt. Write one row into it, with the salt in a column `salt`")
    if found == (mark if salt_table else None):
        return
    if not salt_table:
        raise _refused(
            f"the hashes in {results_table} are salted, and the profile's ai block names no salt_table: every answer would be paid again. "
            "Set salt_table to the table that the other projects name"
        )
    if found is None:
        raise _refused(
            f"the hashes in {results_table} are not salted with {salt_table}: every answer would be paid again. Take salt_table away, or salt "
            'what is there, as "Hashes of questions" in docs/privacy.md says'
        )
    raise _refused(
        f"the hashes in {results_table} are made with another salt than that of {salt_table}: every answer would be paid again. Put the salt "
        "back, or name the table that has it"
    )


def check_unsalted(results_table: str, properties: Mapping[str, str], salt_table: str) -> None:
    """Raises RefusedError where a salt must not be drawn: the hashes of the result table are made with one."""
    if properties.get(SALT_PROPERTY):
        raise _refused(
            f"{salt_table} is not there, and the hashes in {results_table} are made with its salt: with another one every answer would be paid "
            "again. Bring it back, or name the table that has the salt"
        )


def _refused(why: str) -> RefusedError:
    return RefusedError("AI_SALT", f"{why}. Nothing was asked")
