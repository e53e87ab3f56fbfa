"""What changes between two evaluations of a query is judged drawn: queries over structs, arrays and maps, each run twice.

SPARK_MV_FUZZ=1000 runs more of them, and SPARK_MV_SEED others.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from tests.oracle.nested import ROWS, SCHEMAS, Nested

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.functions.level import Level

pytestmark = pytest.mark.spark

QUERIES = int(os.environ.get("SPARK_MV_FUZZ", "80"))
SEED = int(os.environ.get("SPARK_MV_SEED", "1"))


@pytest.fixture(scope="module")
def views(spark: Any) -> Iterator[None]:
    for name, rows in ROWS.items():
        spark.sql(rows).createOrReplaceTempView(name)
    yield
    for name in ROWS:
        spark.catalog.dropTempView(name)


def values(rows: list[Any], key: int, column: int) -> Counter[tuple[str, str]]:
    return Counter((str(row[key]), str(row[column])) for row in rows)


def judged(spark: Any, sql: str) -> tuple[str, list[str]]:
    """What became of a query, and what is wrong with its verdict."""
    try:
        frame = spark.sql(sql)
        names = frame.columns
        if len({name.lower() for name in names}) < len(names):
            return "names a column twice", []
        once, again = frame.collect(), spark.sql(sql).collect()
    except (PySparkException, Py4JJavaError):  # the latter: faults of its own
        return "refused by Spark", []
    analysis = analyze(sql, unique_key="id", schemas=SCHEMAS)
    if analysis.errors:
        return f"refused: {analysis.errors[0].code}", []
    verdicts = {column.name.lower(): column for column in analysis.columns}
    if "*" not in verdicts and list(verdicts) != [name.lower() for name in names]:
        return "judged", [f"the columns are {names}, not {[c.name for c in analysis.columns]}"]
    if analysis.rows_level != Level.DETERMINISTIC:
        return "its rows are drawn", []
    if len(once) != len(again):
        return "judged", [f"{len(once)} rows, then {len(again)}"]
    key = names.index("id")
    levels = [(verdicts.get(name.lower()) or verdicts["*"]).level for name in names]
    stale = [
        f"{name} changed and is called {level.name}"
        for place, (name, level) in enumerate(zip(names, levels, strict=True))
        if level != Level.NONDETERMINISTIC and values(once, key, place) != values(again, key, place)
    ]
    return "judged", stale


def test_what_changes_is_judged_drawn(spark: Any, views: None) -> None:
    source, counts, wrong = Nested(SEED), Counter[str](), []
    for _ in range(QUERIES):
        sql = source.query()
        became, faults = judged(spark, sql)
        counts[became] += 1
        wrong += [f"{fault}: {sql}" for fault in faults]
    assert not wrong, "\n".join([str(dict(counts)), *wrong])
    assert counts["judged"] > QUERIES / 3, counts
