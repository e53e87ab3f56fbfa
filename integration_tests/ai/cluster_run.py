"""Run as a program: one round on a standalone master with two executors, each a process of its own, against the endpoint
whose address it is given; prints the outcome.

The executors' Python refuses to import spark_mv: the job ships itself.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path


def main(source_root: str, config: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.pop("PYTHONPATH", None)
    sys.path.insert(0, source_root)
    import pyspark
    from pyspark.sql import SparkSession

    from spark_mv.spark.session.jars import delta_coordinates, local_jars
    from spark_mv.spark.session.java import find_java

    options = json.loads(config)
    home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-cluster-"))
    os.chdir(home)
    (home / "sitecustomize.py").write_text(options.pop("sitecustomize"))
    spark_jars = Path(pyspark.__file__).parent / "jars"
    jars = local_jars(delta_coordinates(pyspark.__version__), find_java(pyspark.__version__), spark_jars)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("ai")
    settings = {
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.executor.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.executorEnv.PYTHONPATH": str(home),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(home),
        "spark.speculation": options.pop("speculation", "false"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    from spark_mv.ai.job import run_ai_round
    from spark_mv.ai.results import create_sql, table_name
    from spark_mv.ai.settings import AiSettings
    from spark_mv.query.ai_calls.ai_plan import plan_ai

    texts = options.pop("texts")
    ai = AiSettings.from_config(options)
    results = table_name("default")
    spark.sql(create_sql(results))
    spark.sql(f"CREATE TABLE src USING delta AS SELECT concat('text ', id % {texts}) AS body FROM range({2 * texts})")
    plan = plan_ai("SELECT ai_summarize(body) AS s FROM src", results_table=results, identity=ai.identity())
    outcome = run_ai_round(spark, plan.rounds[0], settings=ai, results_table=results, invocation_id="cluster")
    missing = spark.sql(plan.sql).where("s IS NULL").count()
    key = ai.api_key.reveal() if ai.api_key else None
    pages = _ui_pages(spark.sparkContext.uiWebUrl)
    spark.stop()
    leaks = [str(f) for f in home.rglob("*") if f.is_file() and key and key.encode() in f.read_bytes()]
    leaks += [url for url, text in pages.items() if key and key in text]
    print(
        "RESULT "
        + json.dumps(
            {"calls": outcome.calls, "ok": outcome.ok, "missing": missing, "leaks": leaks, "pages": len(pages)}
        )
    )


def _ui_pages(url: str) -> dict[str, str]:
    from urllib.request import urlopen

    pages = {}
    for path in ("/SQL/", "/jobs/", "/environment/", "/stages/", *(f"/SQL/execution/?id={n}" for n in range(20))):
        try:
            with urlopen(url + path, timeout=10) as reply:
                pages[path] = reply.read().decode("utf-8", "ignore")
        except OSError:
            continue
    return pages


if __name__ == "__main__":
    main(*sys.argv[1:])
