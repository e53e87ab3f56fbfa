"""The columns of a star, and their order, are Spark's: for every kind of join, by ON, USING and NATURAL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.delta.names import output
from spark_mv.query.syntax.select_tree import NotIncremental
from spark_mv.query.syntax.tree_builder import build

pytestmark = pytest.mark.spark

TABLES = {"t": "a int, k int, j int", "u": "j int, b int, k int", "w": "c int, k int, j int"}
KINDS = ("join", "left join", "right join", "full join", "left semi join")
HOW = ("using (k)", "using (j, k)", "using (J)", "on t.k = {}.k", "natural")
OTHERS = (
    "select w.*, 1 as x from w, t join u using (k)",
    "select * from w, t join u using (k), t as t2 natural join u as u2",
    "select * from (t join u using (k)) join w using (j)",
    "select * from w join (t join u using (k)) using (k)",
    "select * from (t join u using (k)) as x join w using (a)",
    "select x.* from (select * from t right join u using (j)) as x natural join w",
    "select * from t, lateral (select t.k as k, 1 as y) join u using (k)",
    "select * from t join u using (k) lateral view explode(array(1)) as z",
    "select t2.* from t as t1 full join t as t2 using (k) full join t as t3 using (k)",
    "select t.*, u.* from t full join u using (j, k)",
    "select * except (t.k) from t join u on t.k = u.k",
    "select * except (u.j, k) from t join u using (k)",
    "select * from t natural join (select k as K, b from u)",
    "with q (x, y, z, v, w) as (select * from t join u using (k)) select w, x from q",
    "from t |> join u using (k) |> join w using (k)",
    "from t |> as x |> join u as y using (k) |> select x.*, y.*",
)


def queries() -> Iterator[str]:
    for first, how, second, then in product(KINDS, HOW, ("", *KINDS), HOW):
        if second or then == HOW[0]:
            joins = [(first, how, "u"), *([(second, then, "w")] if second else [])]
            sql = "select {} from t " + " ".join(
                f"natural {kind} {table}" if how == "natural" else f"{kind} {table} {how.format(table)}"
                for kind, how, table in joins
            )
            for star in ("*", "t.*", "u.*") if not second else ("*",):
                yield sql.format(star)
    yield from OTHERS


def test_spark_gives_these_columns(spark: Any) -> None:
    schemas = {name: {word.split()[0]: "int" for word in columns.split(", ")} for name, columns in TABLES.items()}
    listed = {name: tuple(columns) for name, columns in schemas.items()}
    for name, columns in TABLES.items():
        spark.createDataFrame([], columns).createOrReplaceTempView(name)
    compared, followed, wrong = 0, 0, []
    for sql in queries():
        try:
            columns = spark.sql(sql).columns
        except (AnalysisException, IllegalArgumentException):
            continue  # no such join
        compared += 1
        if [c.name for c in analyze(sql, unique_key="k", schemas=schemas).columns] != columns:
            wrong.append(sql)
        with suppress(NotIncremental):
            named = output(build(sql), listed)
            followed += 1
            if list(named) != columns:
                wrong.append(f"followed: {sql}")
    for name in TABLES:
        spark.catalog.dropTempView(name)
    assert not wrong, "\n".join([f"{len(wrong)} of {compared}", *wrong[:20]])
    assert compared > 400 and followed > 200
