"""How long Spark plans a SELECT with AI calls, by their number: CPU seconds of the JVM from the text to the executable plan.

    python -m benchmarks.ai_planning 1 2 4 8 9 19 40

Each call has labels of its own, so none shares a look-up. Best of three, after a warm-up; nothing is asked and no row is read.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "adapter"), str(ROOT)]

from spark_mv.ai.results import create_sql, table_name  # noqa: E402
from spark_mv.query.ai_calls.ai_plan import plan_ai  # noqa: E402
from spark_mv.spark.session.session import open_session  # noqa: E402


def select(calls: int) -> str:
    """A SELECT with so many calls."""
    columns = [f"ai_classify(body, array('a', 'b', 'c{n}')) AS k{n}" for n in range(calls)]
    return f"SELECT id, {', '.join(columns)} FROM planning.texts"


def planned(spark: Any, sql: str) -> tuple[float, float]:
    """CPU and wall seconds until Spark would begin to execute."""
    cpu, begun = used(spark), time.perf_counter()
    spark.sql(sql)._jdf.queryExecution().executedPlan()
    return used(spark) - cpu, time.perf_counter() - begun


def used(spark: Any) -> float:
    """CPU seconds of the JVM so far (Linux)."""
    words = (
        Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/stat").read_text().rpartition(")")[2].split()
    )
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def main(numbers: list[int]) -> None:
    """Prints a line for each number of calls: our rewrite, and Spark's planning."""
    home = Path(tempfile.mkdtemp(prefix="ai-planning-"))
    spark = open_session({"spark.master": "local[2]", "spark.driver.memory": "2g"}, home / "warehouse", home / "log")
    try:
        spark.sql("CREATE SCHEMA planning")
        spark.sql("CREATE TABLE planning.texts USING delta AS SELECT id, concat('text ', id) AS body FROM range(1000)")
        results = table_name("planning")
        spark.sql(create_sql(results))
        print("calls  rewrite, CPU s  planning, CPU s  wall s")
        for number in [2, *numbers]:
            begun = time.process_time()
            plan = plan_ai(select(number), results_table=results, identity={"model": "m"})
            rewritten = time.process_time() - begun
            cpu, wall = min(planned(spark, plan.sql) for _ in range(3))
            print(f"{number:>5}  {rewritten:14.2f}  {cpu:15.2f}  {wall:6.2f}", flush=True)
    finally:
        spark.stop()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1, 2, 4, 8, 9, 19, 40])
