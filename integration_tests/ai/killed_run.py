"""Run as a program: one round of the embedded session against the endpoint at the given address. Prints how many answers
were kept when it began, and the outcome. May be killed at any time."""

from __future__ import annotations

import sys
from pathlib import Path

from integration_tests.under_format import FORMAT

from spark_mv.ai.job import run_ai_round
from spark_mv.ai.results import create_sql, table_name
from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls.ai_plan import plan_ai
from spark_mv.spark.session.iceberg import FORMATS
from spark_mv.spark.session.session import open_session


def main(folder: str, url: str, texts: str, ask_from: str) -> None:
    config = {"provider": "openai", "base_url": url, "model": "m", "api_key": "none", "concurrency": 4}
    settings = AiSettings.from_config({**config, "chunk_seconds": 1, "ask_from": ask_from})
    conf = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "1"}
    if FORMAT != "delta":
        conf[FORMATS] = f"delta,{FORMAT}"
    conf["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1"
    spark = open_session(conf, Path(folder) / "warehouse", Path(folder) / "spark.log")
    results = table_name("default")
    spark.sql(create_sql(results, FORMAT))
    kept = spark.table(results).count()
    sql = f"SELECT ai_summarize(concat('text ', id)) AS s FROM range({texts})"
    plan = plan_ai(sql, results_table=results, identity=settings.identity())
    outcome = run_ai_round(spark, plan.rounds[0], settings=settings, results_table=results, invocation_id="i")
    print("RESULT", kept, outcome.calls, outcome.reused, spark.sql(plan.sql).where("s IS NULL").count())


if __name__ == "__main__":
    main(*sys.argv[1:])
