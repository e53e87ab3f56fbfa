"""The catalogue against the functions of the Spark at hand."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.query.functions.catalogue import catalogue, level_of
from spark_mv.query.functions.level import Level

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
