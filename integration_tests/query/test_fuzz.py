"""Generated SELECTs: what the analysis calls deterministic gives the same on Spark under another seed, user, clock and
partitioning. SPARK_MV_FUZZ=500 runs more of them.

Time zones 26 hours apart give two values of current_date at any instant; the expressions are not sensitive to the zone
otherwise.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level

EXAMPLES = int(os.environ.get("SPARK_MV_FUZZ", "25"))
SCHEMAS = {
    "fuzz_t": {"id": "int", "k": "int", "v": "int", "s": "string", "d": "date"},
    "fuzz_u": {"uid": "int", "w": "int"},
}
NUMBERS = [
    "{c}",
    "{c} + 1",
    "abs({c})",
    "coalesce({c}, 0)",
    "if({c} > 3, 1, 2)",
    "greatest({c}, 2)",
    "CAST({c} AS BIGINT)",
]
DRAWS = ["int(rand() * 100)", "int(rand(3) * 100)", "length(uuid()) + int(randn())", "int(monotonically_increasing_id())",
         "year(current_date())", "day(current_date)", "int(unix_timestamp())", "length(current_user())",
         "datediff(current_date, d)", "spark_partition_id()"]  # fmt: skip
AGGREGATES = ["sum({c})", "count(*)", "min({c})", "max({c})", "first({c})", "any_value({c})", "size(collect_list({c}))",
              "sort_array(collect_list({c}))[0]", "collect_list({c})[0]", "max_by({c}, v)", "count(DISTINCT {c})",
              "mode({c})", "mode({c}, true)", "int(listagg(CAST({c} AS STRING), '1'))"]  # fmt: skip
WINDOWS = ["row_number() OVER (PARTITION BY k ORDER BY {c})", "row_number() OVER (PARTITION BY k ORDER BY id)",
           "rank() OVER (PARTITION BY k ORDER BY {c})", "sum(v) OVER (PARTITION BY k ORDER BY {c})",
           "lag(v) OVER (PARTITION BY k ORDER BY {c})", "lag(v) OVER (PARTITION BY k ORDER BY {c}, id)",
           "first_value(v) OVER (PARTITION BY k ORDER BY {c})", "max(v) OVER (PARTITION BY {c})",
           "count(*) OVER (PARTITION BY k ORDER BY {c} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"]  # fmt: skip
FILTERS = ["{c} > 2", "{c} IS NOT NULL", "d < current_date", "rand() < 0.7", "id IN (SELECT uid FROM fuzz_u)",
           "EXISTS (SELECT 1 FROM fuzz_u WHERE uid = id)", "s <> current_user()", "v < (SELECT max(w) FROM fuzz_u)",
           "v < (SELECT first(w) FROM fuzz_u)"]  # fmt: skip


@st.composite
def numbers(draw: Any, columns: list[str]) -> str:
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(DRAWS))
    column = draw(st.sampled_from(columns))
    return str(draw(st.sampled_from(NUMBERS))).format(c=column)


@st.composite
def sources(draw: Any) -> str:
    """A FROM item with the columns id, k, v, s, d."""
    kind = draw(st.integers(0, 6))
    inner = draw(numbers(["id", "k", "v"]))
    if kind == 0:
        return f"(SELECT id, k, {inner} AS v, s, d FROM fuzz_t) AS q"
    if kind == 1:
        return "(SELECT id, k, v, s, d FROM fuzz_t UNION ALL SELECT uid, w, w, 'u', DATE'2020-01-01' FROM fuzz_u) AS q"
    if kind == 2:
        return (
            f"(SELECT id, k, v, s, d FROM fuzz_t ORDER BY {draw(st.sampled_from(['id', 'v', 'v, id']))} LIMIT 7) AS q"
        )
    if kind == 3:
        return "fuzz_t LEFT JOIN fuzz_u ON fuzz_t.k = fuzz_u.uid"
    if kind == 4:
        return "fuzz_t LATERAL VIEW explode(array(v, k)) e AS x"
    return "fuzz_t"


@st.composite
def selects(draw: Any) -> str:
    columns = ["id", "k", "v"]
    source = draw(sources())
    filters = (
        [str(draw(st.sampled_from(FILTERS))).format(c=draw(st.sampled_from(columns)))] if draw(st.booleans()) else []
    )
    where = f" WHERE {' AND '.join(filters)}" if filters else ""
    shape = draw(st.integers(0, 4))
    first, second = draw(numbers(columns)), draw(numbers(columns))
    if shape == 0:
        calls = [str(draw(st.sampled_from(AGGREGATES))).format(c=draw(st.sampled_from(columns))) for _ in range(2)]
        body = f"SELECT k, {calls[0]} AS a, {calls[1]} AS b FROM {source}{where} GROUP BY k"
    elif shape == 1:
        window = str(draw(st.sampled_from(WINDOWS))).format(c=draw(st.sampled_from(["v", "id", "k"])))
        body = f"SELECT id, {first} AS a, {window} AS b FROM {source}{where}"
    elif shape == 2:
        body = f"SELECT DISTINCT {first} AS a, {second} AS b FROM {source}{where}"
    else:
        body = f"SELECT id, {first} AS a, {second} AS b, a + 1 AS c FROM {source}{where}"
    if draw(st.integers(0, 3)) == 0:
        return f"WITH c AS ({body}) SELECT a AS x, * FROM c" + draw(
            st.sampled_from(["", " WHERE a > 3", " ORDER BY a LIMIT 5"])
        )
    return body


@pytest.fixture(scope="module")
def views(spark: Any) -> Iterator[Any]:
    """Registers the two tables with rows in one order and few partitions, or in another order and more."""
    rows = [(i, i % 4, (i * 7) % 5, f"s{i % 3}", f"20{20 + i % 9}-01-0{1 + i % 9}") for i in range(24)]
    others = [(i, (i * 3) % 5) for i in range(0, 12, 2)]

    def register(variant: int) -> None:
        order, partitions = (1, 1) if variant == 0 else (-1, 3)
        zone, user = (("Pacific/Kiritimati", "ann"), ("Etc/GMT+12", "bartholomew"))[variant]
        spark.conf.set("spark.sql.session.timeZone", zone)
        spark._jvm.org.apache.spark.sql.catalyst.CurrentUserContext.CURRENT_USER().set(user)
        for name, data, columns in (("fuzz_t", rows, "id int, k int, v int, s string, d string"),
                                    ("fuzz_u", others, "uid int, w int")):  # fmt: skip
            frame = spark.createDataFrame(data[::order], columns).coalesce(1).repartition(partitions)
            if name == "fuzz_t":
                frame = frame.withColumn("d", frame.d.cast("date"))
            frame.createOrReplaceTempView(name)

    before = spark.conf.get("spark.sql.session.timeZone")
    yield register
    spark.conf.set("spark.sql.session.timeZone", before)
    spark._jvm.org.apache.spark.sql.catalyst.CurrentUserContext.CURRENT_USER().remove()
    spark.catalog.dropTempView("fuzz_t")
    spark.catalog.dropTempView("fuzz_u")


def _stable(analysis: Analysis) -> list[str]:
    """Columns whose bag of values must not change, none if the rows themselves may."""
    if analysis.rows_level != Level.DETERMINISTIC:
        return []
    return [c.name for c in analysis.columns if c.level == Level.DETERMINISTIC]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=EXAMPLES <= 25)
@given(sql=selects(), key=st.sampled_from(["id", "k", "a"]))
def test_deterministic_means_the_same_result(spark: Any, views: Any, sql: str, key: str) -> None:
    key = key if key != "id" else ("k" if " GROUP BY k" in sql else "id")
    unique = key == "id" and "UNION ALL" not in sql and "JOIN" not in sql and "LATERAL" not in sql
    analysis = analyze(sql, unique_key="id" if unique else (), schemas=SCHEMAS)
    codes = {error.code for error in analysis.errors}
    refused = {code for code in codes if code.startswith("PER_ROW")}
    names = _stable(analysis) if not refused else []
    event("something to compare" if names else "nothing deterministic")
    assert not codes - refused - {"MISSING_UNIQUE_KEY", "UNKNOWN_UNIQUE_KEY", "DUPLICATE_COLUMN"}, (
        sql,
        analysis.errors,
    )
    if not names:
        return
    results: list[list[Any]] = []
    for variant in (0, 1):
        views(variant)
        try:
            results.append(spark.sql(sql).collect())
        except Exception as error:
            event("refused by Spark")
            assert "PARSE_SYNTAX_ERROR" not in str(error), sql
            return
    positions = [i for i, column in enumerate(analysis.columns) if column.name in names]
    bags = [Counter(tuple(row[i] for i in positions) for row in rows) for rows in results]
    assert bags[0] == bags[1], (sql, names)
