"""The sentence that matters out of what Spark, py4j and Thrift raise."""

from __future__ import annotations

import re
from typing import Any

from spark_mv.spark.session.ended import ENDED, spark_has_ended

#: what an error without a message says
_SILENT = ("", "None")
#: PySpark asks Spark's own table of error classes and knows none of Delta's
_UNKNOWN_CLASS = "Cannot find main error class"

_BRANCH = re.compile(r"[: ]*[+:]- '?[A-Z]")
"""A line of a plan as Spark puts it behind its message."""

_CAUSED = re.compile(r"^Caused by: ", re.MULTILINE)
"""Before each of Java's nested errors in a stack trace: its class, ": " and what it says."""

_ROW = re.compile(r"by row with values:(\s*\n - [^\n]* : [^\n]*)+")
"""How Delta shows the row that a CHECK does not let in."""

_NO_RIGHTS = "Spark's own catalogue has no rights to grant: take `grants` out of the config, or say it only for targets whose catalogue has them."
_CURES = {
    "INVALID_SCHEMA_OR_RELATION_NAME": "A schema's name is that of the profile, or of a `schema` in the model's config: write it with these characters. A table's "
    "is that of the model's or the seed's file, if it has no other: give it an `alias` of these characters.",
    "FAILED_READ_FILE.FILE_NOT_EXIST": "A data file of a table is gone, and no REFRESH TABLE brings it back. Put it back from a copy, or restore the table "
    "to a version whose files are there. Where that is a model's own table and there is neither, drop it: the next run makes it anew, with values drawn anew and "
    "the AI answers that are kept.",
    "DELTA_PATH_DOES_NOT_EXIST": "The catalogue has that table, and its folder, or the _delta_log in it, is gone. Put it back from a copy, or drop the table: what a run "
    "makes is made anew by the next one.",
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": "The table was not changed. The CHECK is the table's, and not of the model: change the rows that the query gives, or drop "
    "it (alter table … drop constraint …).",
    "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION": "The contract has a check that rows of the table do not pass. Its rows were not changed. Correct these rows or the query and run with "
    "--full-refresh, or take the check back.",
    "Unsupported format in USING: delta": "The catalogue in which names without one are found is one of Iceberg's, which has no Delta tables: say file_format: iceberg "
    "(in the profile, for all), or make Delta's catalogue the default one.",
    "GRANT is not valid": _NO_RIGHTS,
    "missing 'FUNCTIONS'": _NO_RIGHTS,
    "Cannot resolve routine `ai_": "AI functions are answered in models with `materialized: nondeterministic_mv` alone, those that docs/ai.md lists and those that the profile "
    "declares: make this model one, or select the answers from one.",
    "packedCdc": "Delta's MERGE cannot write the change feed of a table that has a column with a backtick in its name. Give the column another name, or leave "
    "delta.enableChangeDataFeed away.",
    "DELTA_UNSUPPORTED_DATA_TYPES": "Take such a column as another type: a text with a collation as an ordinary one (`… collate UTF8_BINARY`), others as a text or a number. "
    "Delta's open releases hold text with a collation only with `spark.databricks.delta.schema.typeCheck.enabled: false` (under `spark_config` of the profile, or set in the "
    "model's sql_header).",
    "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED": "A column that the query takes from a table as it is has a DEFAULT there, which Spark gives to the model's table as well. "
    "Say `tblproperties: {'delta.feature.allowColumnDefaults': 'supported'}` in the model's config, or make the column an expression, such as `coalesce(v, NULL) AS v`.",
    "JsonMappingException": "A file of a Delta table's log (_delta_log/….json) is damaged. Put it back from a copy; the file is of the newest versions of a table that this "
    "statement reads or writes.",
    "java.lang.StackOverflowError": "Spark's JVM has too little stack for an expression of so many levels: cut it into columns of a subquery, or give it "
    "more (`spark.driver.extraJavaOptions: -Xss16m` under `spark_config` of the profile; of a server, in its own settings).",
}


def readable(error: BaseException) -> str:
    """One message for dbt's console: Spark's own words, without Java's stack trace or py4j's preface.

    Where Spark only says that a task failed, the error that the task failed of follows.
    """
    if spark_has_ended(error):
        return ENDED
    thrift = getattr(error.args[0], "status", None) if error.args else None
    if thrift is not None and getattr(thrift, "errorMessage", None):
        return _with_cure(_trim(str(thrift.errorMessage)))
    message, cause = _trim(_message(error)), _trim(_deepest_cause(error))
    return _with_cure(message if not cause or cause in message else f"{message}\nCaused by: {cause}")


def _with_cure(message: str) -> str:
    """What Spark says is wrong, and what to do about it in a project of dbt, where Spark does not know."""
    return next((f"{message}\n{cure}" for code, cure in _CURES.items() if code in message), message)


def _deepest_cause(error: BaseException) -> str:
    """What the innermost of Java's nested errors says; empty where there is none."""
    if _UNKNOWN_CLASS in str(error) and error.__context__ is not None:
        error = error.__context__
    told = getattr(error, "_stacktrace", None)
    if isinstance(told, str):  # Spark Connect has no more of the causes
        *_, cause = ("", *_CAUSED.split(told)[1:])
        return cause.split("\n\tat ")[0].partition(": ")[2]
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if not hasattr(java, "getCause"):  # no error of this process's JVM
        return ""
    try:
        deepest = None
        for _ in range(20):  # errors may be their own causes' causes
            cause = (deepest or java).getCause()
            if cause is None:
                break
            deepest = cause
        return str(deepest.getMessage() or deepest.toString()) if deepest is not None else ""
    except Exception:  # the JVM has gone meanwhile
        return ""


def _message(error: BaseException) -> str:
    if _UNKNOWN_CLASS in str(error) and error.__context__ is not None:
        # PySpark failed while it translated the error that matters, which is therefore the context of its own
        return _message(error.__context__)
    java = getattr(error, "java_exception", None)
    if java is not None:  # py4j.protocol.Py4JJavaError
        try:
            return str(java.getMessage() or java.toString())
        except Exception:
            return str(error)
    for name in ("_desc", "desc", "_message"):
        text = getattr(error, name, None)
        if isinstance(text, str) and text not in _SILENT and _UNKNOWN_CLASS not in text:
            return text
    text = str(error)
    origin = getattr(error, "_origin", None)
    if (text.strip() in _SILENT or _UNKNOWN_CLASS in text) and origin is not None:
        try:
            return str(origin.getMessage() or _place(origin))
        except Exception:
            return str(origin)
    return type(error).__name__ if text.strip() in _SILENT else text


def _place(origin: Any) -> str:
    """What there is to say of an error without a message: its kind, and where it came from."""
    frame = next(iter(origin.getStackTrace()), None)
    if frame is not None and str(frame.getMethodName()) == "parseRoutineParam":
        return (
            "Iceberg's SQL extensions cannot read a function that is written in SQL (CREATE FUNCTION … RETURN …). Put its expression "
            "into a macro, write it in Python or Java, or leave `iceberg` out of the profile's formats"
        )
    return str(origin.toString()) + (f" at {frame.toString()}" if frame is not None else "")


def _trim(text: str) -> str:
    """Without values of a row, "JVM stacktrace" and frames of the form `\\tat package.Class.method(File.scala:1)`."""
    text = _ROW.sub("by a row (whose values are not shown)", text.split("\n\nJVM stacktrace:")[0])
    lines = [line for line in text.splitlines() if not re.match(r"\s+at [\w.$]+", line)]
    branch = next((n for n, line in enumerate(lines) if _BRANCH.match(line)), None)
    if branch is not None and branch > 1:  # the tree of a plan, whose root is the line before
        return "\n".join(lines[: branch - 1]).strip().removesuffix(";")
    return "\n".join(lines).strip()
