"""Names that belong to the adapter, and names that only look like it."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.formats import own_tables
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.own_tables import OWN_TABLES
from spark_mv.spark.run import ai_upkeep, stamps
from spark_mv.spark.run.failures import rows_refused
from spark_mv.spark.run.prepare import config_of
from spark_mv.spark.session.ended import ENDED, spark_has_ended
from spark_mv.spark.session.error_texts import readable

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", [*OWN_TABLES, "AI_Results"])
def test_no_model_is_called_as_a_table_of_all_models(name: str) -> None:
    invocation: Any = SimpleNamespace(name="m", identifier=name)
    with pytest.raises(RefusedError, match=rf"OWN_NAME.*model m.*{name}.*another alias"):
        config_of(None, invocation, {})


def test_a_users_table_is_no_staging_table() -> None:
    names = ["m__mv_stage_feed", "m__mv_stage_feed_old", "m__mv_stage_1_a", "m__mv_stage_10000000_backup"]
    assert stamps.leftovers(names, "m", alone=True) == ()
    stamp = stamps.new_stamp()
    stamps.begun(stamp)
    assert stamps.leftovers([f"m__mv_stage_{stamp}_a"], "m", alone=True) == ()
    stamps.ended(stamp)
    assert stamps.leftovers([f"m__mv_stage_{stamp}_a"], "m", alone=True) == (f"m__mv_stage_{stamp}_a",)


def test_a_name_that_spark_refuses_has_a_cure() -> None:
    message = readable(RuntimeError("[INVALID_SCHEMA_OR_RELATION_NAME] `a.b` is not a valid name for tables/schemas."))
    assert "`a.b`" in message and message.endswith("give it an `alias` of these characters.")


class Catalogue:
    """An adapter whose session has this default catalogue; any statement fails."""

    def __init__(self, name: str) -> None:
        self.conf = {"spark.sql.defaultCatalog": name}

    def mv_spark(self) -> Any:
        return self

    def query(self, sql: str) -> Any:
        pytest.fail(sql)


@pytest.mark.parametrize("name", ["it's", "with space", "dot.ted", "größe"])
def test_no_model_is_called_as_no_table_can_be(name: str) -> None:
    invocation: Any = SimpleNamespace(name="m", identifier=name)
    with pytest.raises(RefusedError, match=r"TABLE_NAME.*model m.*an `alias`.*Nothing was changed"):
        config_of(Catalogue("spark_catalog"), invocation, {})
    assert own_tables.takes_name(Ask(None, Catalogue("rest")), name)  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["true) or (true", "true) group by (model", "x; drop table t", "model ="])
def test_answers_are_asked_for_again_by_one_condition(where: str) -> None:
    models: Any = SimpleNamespace(query=lambda sql: pytest.fail(sql))
    with pytest.raises(RefusedError, match=r"RECOMPUTE_WHERE.*is not one condition.*Write"):
        ai_upkeep.recompute(models, where=where)


def test_a_spark_that_was_ended_is_one_sentence() -> None:
    text = "Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was created at:\n\norg.apache.spark.SparkContext.getOrCreate(SparkContext.scala)"
    message = readable(RuntimeError(text))
    assert "\n" not in message and message.endswith("nothing else was changed.")


def test_a_refused_connection_is_of_spark_where_py4j_met_it() -> None:
    from py4j.java_gateway import GatewayParameters, JavaGateway
    from py4j.protocol import Py4JNetworkError

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        port = taken.getsockname()[1]
        with pytest.raises((OSError, Py4JNetworkError)) as refused:
            JavaGateway(gateway_parameters=GatewayParameters(port=port)).jvm.System.exit(0)
        with pytest.raises(OSError) as other:
            socket.create_connection(("127.0.0.1", port))
    assert spark_has_ended(refused.value) and readable(refused.value) == ENDED
    assert not spark_has_ended(other.value) and "refused" in readable(other.value)
    wrapped = RuntimeError("of dbt's")
    wrapped.__cause__ = refused.value
    assert spark_has_ended(wrapped)


def test_what_is_missing_is_said_with_the_cure_and_without_the_plan() -> None:
    gone = "[DELTA_PATH_DOES_NOT_EXIST] file:/w/an.db/m doesn't exist, or is not a Delta table.;\nDescribeRelation true, [col_name#1]\n+- ResolvedTable an.m"
    found = readable(RuntimeError(gone))
    assert (
        "DescribeRelation" not in found
        and "ResolvedTable" not in found
        and "Put it back from a copy, or drop the table" in found
    )
    broken = "[TABLE_OR_VIEW_NOT_FOUND] `s`.`t` cannot be found. SQLSTATE: 42P01; line 2 pos 4;\n'Project ['id]\n:  +- 'Filter x\n+- 'UnresolvedRelation [s, t]\n"
    assert readable(RuntimeError(broken)).endswith("line 2 pos 4")
    assert readable(RuntimeError("a - b\n+ one\n- two")) == "a - b\n+ one\n- two"


def test_the_cause_of_a_failed_task_is_said_over_spark_connect() -> None:
    error = RuntimeError("[TASK_WRITE_FAILED] Task failed while writing rows to file:/w/m. SQLSTATE: 58030")
    error._stacktrace = (  # type: ignore[attr-defined]
        "org.apache.spark.SparkException\n\tat org.a.B.c(B.scala:1)\nCaused by: org.a.Outer: outer\n\tat org.a.B.c(B.scala:2)\n"
        "Caused by: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] their\nown: error\n\tat org.a.B.c(B.scala:3)"
    )
    found = readable(error)
    assert found.startswith("[TASK_WRITE_FAILED]") and found.endswith(
        "\nCaused by: [USER_RAISED_EXCEPTION] their\nown: error"
    )
    assert rows_refused(error) and not rows_refused(RuntimeError("[DIVIDE_BY_ZERO] Division by zero."))
    error._stacktrace = ""  # type: ignore[attr-defined]
    assert readable(error) == str(error)


def test_a_catalogue_without_delta_has_a_cure() -> None:
    assert "say file_format: iceberg" in readable(RuntimeError("Unsupported format in USING: delta"))


@pytest.mark.parametrize(
    "said",
    [
        "[INVALID_STATEMENT_OR_CLAUSE] The statement or clause: GRANT is not valid. SQLSTATE: 42601",
        "[PARSE_SYNTAX_ERROR] Syntax error at or near 'on': missing 'FUNCTIONS'. SQLSTATE: 42601",
    ],
)
def test_rights_that_a_catalogue_does_not_have(said: str) -> None:
    """What Spark says of `grants` in the first run, and in the next."""
    assert "take `grants` out" in readable(RuntimeError(said))


def test_an_ai_function_elsewhere_has_a_cure() -> None:
    said = readable(
        Exception("[UNRESOLVED_ROUTINE] Cannot resolve routine `ai_gen` on search path [`system`.`builtin`].")
    )
    assert "Cannot resolve routine `ai_gen`" in said and "`materialized: nondeterministic_mv`" in said
