"""The table of answers at size: what a look-up of 1,000 keys and an append of 1,000 answers take, by its layout, and how large it is.

    python -m benchmarks.ai_results_size 1000000 10000000

Answers are made with Spark SQL: keys are sha256 of requests as ai_classify makes them, three functions, a tenth of the rows errors that were
asked again. `look-up` is the statement that a run asks which of 1,000 texts (half of them known) have no answer yet; `read` the model's own
SELECT over these texts. Best of three, in seconds.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_mv.ai.pending import counts_sql
from spark_mv.ai.results import COLUMNS, create_sql, table_name
from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls.ai_plan import plan_ai
from spark_mv.spark.session.session import open_session

SCHEMA = "size"
SQL = "SELECT id, ai_classify(body, array('complaint', 'question', 'praise')) AS kind FROM size.texts"
APPENDS = 200
"""Of so many runs the answers are, before anybody compacts the table."""


def fill(spark: Any, results: str, answers: int, settings: AiSettings) -> None:
    """So many rows, in APPENDS files."""
    (call,) = plan_ai(SQL, results_table=results, identity=settings.identity()).calls
    request = call.request_sql.split("FROM (SELECT ", 1)[1].split(" AS request FROM", 1)[0]
    numbers = f"SELECT id, concat('text ', id) AS body FROM range(0, {answers}, 1, {APPENDS})"
    spark.sql(f"CREATE OR REPLACE TEMP VIEW made AS SELECT *, {request} AS request FROM ({numbers})")
    who = call.request_sql.split("sha2(concat(", 1)[1].split(", request)", 1)[0]
    given = {
        "result_key": f"sha2(concat({who}, request), 256)",
        "function": "element_at(array('ai_classify', 'ai_extract', 'ai_gen'), cast(id % 3 AS int) + 1)",
        "arguments_hash": "sha2(request, 256)",
        "model": "'m'",
        "model_version": "'m'",
        "identity_hash": f"'{call.identity_hash}'",
        "status": "if(id % 10 = 9, 'error', 'ok')",
        "value": "element_at(array('complaint', 'question', 'praise'), cast(pmod(hash(id), 3) AS int) + 1)",
        "error_class": "if(id % 10 = 9, 'server', NULL)",
        "attempts": "1",
        "input_tokens": "120 + id % 60",
        "output_tokens": "7",
        "cost": "0.0001D * (id % 60)",
        "called_at": "timestamp_seconds(1760000000 + id / 100)",
        "invocation_id": "uuid()",
        "project": "'shop'",
    }
    columns = ", ".join(f"cast({given.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind, _ in COLUMNS)
    spark.sql(f"INSERT INTO {results} SELECT {columns} FROM made")


def best(work: Callable[[], Any], times: int = 3) -> float:
    """The shortest of some runs, seconds."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def measured(spark: Any, results: str, settings: AiSettings) -> dict[str, float]:
    """Seconds, files and megabytes of the table as it is."""
    plan = plan_ai(SQL, results_table=results, identity=settings.identity())
    look_up = counts_sql(plan.calls, results, settings, "2027-01-01 00:00:00 UTC")
    new = f"INSERT INTO {results} SELECT * FROM {results}_new"
    (detail,) = spark.sql(f"DESCRIBE DETAIL {results}").collect()
    return {
        "look-up": best(lambda: spark.sql(look_up).collect()),
        "read": best(lambda: spark.sql(plan.sql).collect()),
        "append": best(lambda: spark.sql(new)),
        "files": detail["numFiles"],
        "MB": detail["sizeInBytes"] / 1e6,
    }


def main(sizes: list[int]) -> None:
    """Prints a line for each size and layout."""
    home = Path(tempfile.mkdtemp(prefix="ai-results-"))
    spark = open_session({"spark.master": "local[2]", "spark.driver.memory": "4g"}, home / "warehouse", home / "log")
    settings = AiSettings.from_config({"provider": "scripted"})
    print(f"{'answers':>12}  {'layout':28}  look-up    read  append   files      MB    upkeep")
    try:
        for answers in sizes:
            spark.sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
            spark.sql(f"CREATE SCHEMA {SCHEMA}")
            spark.sql(
                f"CREATE TABLE {SCHEMA}.texts USING delta AS SELECT id, concat('text ', id * {answers // 500}) AS body FROM range(1000)"
            )
            results = table_name(SCHEMA)
            spark.sql(create_sql(results))
            fill(spark, results, answers, settings)
            spark.sql(f"CREATE TABLE {SCHEMA}.ai_results_new USING delta AS SELECT * FROM {results} LIMIT 1000")
            for layout in ("as runs appended it", "compacted"):
                begun = time.perf_counter()
                if layout == "compacted":
                    spark.sql(f"OPTIMIZE {results}")
                upkeep = time.perf_counter() - begun
                found = measured(spark, f"{SCHEMA}.ai_results", settings)
                print(
                    f"{answers:>12,}  {layout:28}  {found['look-up']:7.2f} {found['read']:7.2f} {found['append']:7.2f} "
                    f"{found['files']:7,} {found['MB']:7,.0f}  {upkeep:8.1f}",
                    flush=True,
                )
    finally:
        spark.stop()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1_000_000])
