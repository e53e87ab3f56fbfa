"""The catalogue against the functions of the Spark at hand."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from spark_mv.query.functions.catalogue import Kind, Mark, catalogue, level_of
from spark_mv.query.functions.level import Level

# Spark's group of a function → its kind
GROUPS = {
    "agg_funcs": Kind.AGGREGATE, "generator_funcs": Kind.GENERATOR, "window_funcs": Kind.WINDOW, "table_funcs": Kind.TABLE,
}  # fmt: skip
# whose group says what they work on (variant_funcs, json_funcs), and whose class says what they are
OF_ANOTHER_GROUP = {
    "schema_of_variant_agg": Kind.AGGREGATE, "json_tuple": Kind.GENERATOR, "variant_explode": Kind.GENERATOR,
    "variant_explode_outer": Kind.GENERATOR,
}  # fmt: skip

# Spark's own words in the notes of these functions, which say less than what they mean: see functions.txt
NOTED = "non-deterministic"


def test_no_function_is_missing(spark: Any) -> None:
    names = {row[0].lower() for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert len(names) > 400
    assert sorted(names - set(catalogue())) == []


def test_what_spark_calls_nondeterministic_is_not_deterministic_here(spark: Any) -> None:
    wrong = []
    for (name,) in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        text = "\n".join(row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect())
        if NOTED in text and level_of(name) == Level.DETERMINISTIC:
            wrong.append(name)
    assert wrong == []


def test_kinds_and_ages_are_those_of_sparks_registry(spark: Any) -> None:
    registry = spark._jsparkSession.sessionState().catalog()
    identifier = spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    wrong = []
    for (name,) in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        known = catalogue()[name.lower()]
        info = registry.lookupFunctionInfo(identifier(name))
        kind = OF_ANOTHER_GROUP.get(known.name) or GROUPS.get(info.getGroup(), Kind.SCALAR)
        since = max("3.5", ".".join(info.getSince().split(".")[:2]) or "3.5")
        if known.kind not in (kind, Kind.OPERATOR) or known.since != since:
            wrong.append((name, known.kind.value, kind.value, known.since, since))
    assert wrong == []


def test_keyword_forms_are_sparks(spark: Any) -> None:
    """Of those that take no arguments; a group's number (grouping__id) is one in GROUPING SETS only."""
    taken = set()
    for name, function in catalogue().items():
        if function.level in (Level.COMMAND, Level.USER, Level.SESSION):
            try:
                spark.sql(f"SELECT {name} FROM range(1)")
            except AnalysisException:
                continue
            taken.add(name)
    assert taken == {name for name, f in catalogue().items() if Mark.KEYWORD in f.marks} - {"grouping__id"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("rand", ""), ("randn", "1"), ("uuid", ""), ("shuffle", "array(1, 2)"), ("uniform", "1, 5"), ("randstr", "3"),
     ("monotonically_increasing_id", ""), ("spark_partition_id", ""), ("input_file_name", ""),
     ("java_method", "'java.util.UUID', 'randomUUID'")],
)  # fmt: skip
def test_spark_agrees_that_it_is_nondeterministic(spark: Any, name: str, arguments: str) -> None:
    """Spark's analyser marks the expression itself."""
    plan = spark.sql(f"SELECT {name}({arguments}) AS x FROM range(3)")._jdf.queryExecution().analyzed()
    assert not plan.expressions().head().deterministic()
    assert level_of(name) == Level.NONDETERMINISTIC
