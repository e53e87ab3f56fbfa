"""Contracts read from the manifest, quoted names, descriptions of tables, readable errors."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from sqlglot.dialects.spark import Spark

from spark_mv.query.analysis.analyze import analyze
from spark_mv.spark.adapter.catalog import catalog_rows, parse_describe
from spark_mv.spark.adapter.column import SparkMvColumn
from spark_mv.spark.adapter.contract import Check, read_contract
from spark_mv.spark.adapter.relation import SparkMvRelation
from spark_mv.spark.session.error_texts import readable

pytestmark = pytest.mark.unit


def test_contract() -> None:
    contract = read_contract(
        {
            "id": {"name": "id", "data_type": "int", "constraints": [{"type": "not_null"}]},
            "key": {"name": "key", "data_type": "string", "constraints": []},
            "n": {"name": "n", "data_type": "int", "constraints": [{"type": "check", "expression": "n > 0"}]},
        },
        [{"type": "primary_key", "columns": ["KEY"]}, {"type": "check", "name": "small", "expression": "n < 9"}],
    )
    assert contract.columns == (("id", "int", True), ("key", "string", True), ("n", "int", False))
    assert contract.checks[1] == Check("small", "n < 9")
    assert contract.constrained
    assert contract.columns_ddl.splitlines()[0] == "`id` int not null,"
    assert contract.fingerprint("using  delta") == contract.fingerprint("using delta")
    assert contract.fingerprint("using delta") != contract.fingerprint("using delta partitioned by (n)")
    assert [check["expression"] for check in contract.row_checks[:2]] == ["`id` is not null", "`key` is not null"]
    assert contract.row_checks[-1] == {"name": "small", "expression": "n < 9"}


def test_relations_are_quoted_where_they_must() -> None:
    assert SparkMvRelation.create(schema="s", identifier="orders").render() == "s.orders"
    assert SparkMvRelation.create(schema="select", identifier="order").render() == "`select`.order"
    assert SparkMvRelation.create(schema="2024", identifier="my-model").render() == "`2024`.`my-model`"


@pytest.mark.parametrize(
    "dtype,kinds",
    [
        ("int", {"integer", "number"}),
        ("bigint", {"integer", "number"}),
        ("double", {"float", "number"}),
        ("decimal(10,2)", {"numeric", "number"}),
        ("varchar(20)", {"string"}),
        ("array<int>", set()),
    ],
)
def test_column_predicates(dtype: str, kinds: set[str]) -> None:
    column = SparkMvColumn("c", dtype)
    names = ("integer", "float", "numeric", "string", "number")
    assert {name for name in names if getattr(column, f"is_{name}")()} == kinds
    assert column.data_type == dtype


def test_describe() -> None:
    rows = [
        {"col_name": "id", "data_type": "int", "comment": "the key"},
        {"col_name": "day", "data_type": "date", "comment": None},
        {"col_name": "# Partition Information", "data_type": "", "comment": ""},
        {"col_name": "# col_name", "data_type": "data_type", "comment": "comment"},
        {"col_name": "day", "data_type": "date", "comment": None},
        {"col_name": "", "data_type": "", "comment": ""},
        {"col_name": "# Detailed Table Information", "data_type": "", "comment": ""},
        {"col_name": "Comment", "data_type": "a table", "comment": ""},
        {"col_name": "Owner", "data_type": "me", "comment": ""},
        {"col_name": "Type", "data_type": "MANAGED", "comment": ""},
        {"col_name": "Statistics", "data_type": "12 bytes, 3 rows", "comment": ""},
    ]
    described = parse_describe(rows)
    assert described.columns == (("id", "int", "the key"), ("day", "date", None))
    assert (described.kind, described.owner, described.comment) == ("table", "me", "a table")
    first = catalog_rows("s", "t", described)[0]
    assert first["column_index"] == 1
    assert first["stats:rows:value"] == 3


def test_errors_lose_the_stack_and_keep_the_message() -> None:
    error = Exception("[SOME_ERROR] what went wrong\n\tat org.apache.X.y(X.scala:1)\n\nJVM stacktrace:\nmore")
    assert readable(error) == "[SOME_ERROR] what went wrong"


def test_an_error_that_pyspark_could_not_translate() -> None:
    try:
        try:
            raise ValueError("[DELTA_X] the real one")
        except ValueError:
            raise RuntimeError("Cannot find main error class 'DELTA_X'")  # noqa: B904
    except RuntimeError as error:
        assert readable(error) == "[DELTA_X] the real one"


@dataclass
class Frame:
    method: str

    def getMethodName(self) -> str:
        return self.method

    def toString(self) -> str:
        return f"a.b.{self.method}(C.java:1)"


class Throwable:
    """As py4j shows one of Java's."""

    def __init__(self, message: str | None, cause: Throwable | None = None, method: str = "") -> None:
        self.message, self.cause, self.method = message, cause, method

    def getMessage(self) -> str | None:
        return self.message

    def getCause(self) -> Throwable | None:
        return self.cause

    def toString(self) -> str:
        return "java.lang.Error"

    def getStackTrace(self) -> list[Frame]:
        return [Frame(self.method)] if self.method else []


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (Throwable("[TASK] failed"), "[TASK] failed"),
        (
            Throwable("[TASK] failed", Throwable("x", Throwable("[REAL] one\n\tat a.b(C.java)"))),
            "[TASK] failed\nCaused by: [REAL] one",
        ),
        (Throwable("[TASK] failed of [REAL] one", Throwable("[REAL] one")), "[TASK] failed of [REAL] one"),
        (
            Throwable("[TASK] failed", Throwable("[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK c violated")),
            "[TASK] failed\nCaused by: [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK c violated\nThe table was not changed. The CHECK is the "
            "table's, and not of the model: change the rows that the query gives, or drop it (alter table … drop constraint …).",
        ),
        (Throwable("[TASK] failed", Throwable(None)), "[TASK] failed\nCaused by: java.lang.Error"),
        (Throwable(None), "java.lang.Error"),
        (Throwable(None, method="read"), "java.lang.Error at a.b.read(C.java:1)"),
    ],
)
def test_the_cause_of_a_failed_task(origin: Throwable, said: str) -> None:
    error = RuntimeError(origin.message)
    error._origin = origin  # type: ignore[attr-defined]
    assert readable(error) == said


def test_a_function_that_the_parser_of_iceberg_does_not_read() -> None:
    error = RuntimeError(None)
    error._origin = Throwable(None, method="parseRoutineParam")  # type: ignore[attr-defined]
    assert "cannot read a function that is written in SQL" in readable(error)


def test_every_keyword_is_a_name_that_a_model_can_read() -> None:
    """Bare where the analysis reads it as a name, quoted else: of schemas and of tables."""
    words = sorted(word.lower() for word in Spark.Tokenizer.KEYWORDS if re.fullmatch(r"[A-Za-z_]\w*", word))
    assert len(words) > 200
    for word in words:
        for relation in (
            SparkMvRelation.create(schema=word, identifier="t"),
            SparkMvRelation.create(schema="s", identifier=word),
        ):
            found = analyze(f"select id from {relation.render()}", unique_key=("id",))
            assert [table.name.replace("`", "") for table in found.tables] == [
                f"{relation.schema}.{relation.identifier}"
            ], word
