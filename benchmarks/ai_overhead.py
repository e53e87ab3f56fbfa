"""What the AI job costs besides the model's own time.

    python benchmarks/ai_overhead.py [--calls 2000] [--results 10000000]

1. Overhead per 1,000 calls: a provider that answers at once, through the whole job (distinct, anti-join, executors, append).
2. The same through HTTP, to an endpoint on loopback that answers at once, and to one that takes 0.1 s: the time of the job
   minus the endpoint's own (calls x latency / concurrency).
3. The same asked from the driver, over SQL alone.
4. A run with nothing new to ask.
5. 1,000 answers of 0.1 s by 32 at a time, from an endpoint in a process of its own: the whole, the time in which requests are under way,
   the same requests by bare sockets, and the fixed cost: a round with one answer to ask for.
6. Look-ups in a result table of `--results` answers: a small change (1,000 rows) and as many rows as there are results / 10.

Seconds of one run on this machine; the first numbers include the JVM's warm-up, so each is taken twice.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "adapter"), str(ROOT)]

from integration_tests.ai.endpoint import Behaviour, Endpoint  # noqa: E402

from spark_mv.ai.driver_job import run_ai_round_on_driver  # noqa: E402
from spark_mv.ai.job import run_ai_round  # noqa: E402
from spark_mv.ai.results import COLUMNS, create_sql  # noqa: E402
from spark_mv.ai.settings import AiSettings  # noqa: E402
from spark_mv.query.ai_calls.ai_plan import plan_ai  # noqa: E402
from spark_mv.spark.session.session import open_session  # noqa: E402

CONCURRENCY = 16


def timed(what: str, action: Callable[[], Any], calls: int = 0, waited: float = 0.0) -> Any:
    """Prints the seconds of the action, and per 1,000 calls those beyond what the endpoint took itself."""
    begun = time.perf_counter()
    out = action()
    seconds = time.perf_counter() - begun
    per = f", overhead {1000 * (seconds - waited) / calls:6.2f} s per 1,000 calls" if calls else ""
    print(f"{what:60s} {seconds:7.2f} s{per}", flush=True)
    return out


def run(spark: Any, sql: str, settings: AiSettings, driver: bool = False) -> Any:
    plan = plan_ai(sql, results_table="ai_results", identity=settings.identity())

    def execute(statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(statement).collect()]

    more: dict[str, Any] = {"settings": settings, "results_table": "ai_results", "invocation_id": "bench"}
    outcomes = [
        run_ai_round_on_driver(execute, calls, **more) if driver else run_ai_round(spark, calls, **more)
        for calls in plan.rounds
    ]
    assert not any(outcome.errors or outcome.left_for_later for outcome in outcomes), outcomes
    return outcomes, plan.sql


def overhead(spark: Any, calls: int) -> None:
    local = AiSettings.from_config({"provider": "scripted", "concurrency": CONCURRENCY})
    for number in (1, 2):
        sql = f"SELECT ai_summarize(concat('text {number} ', id)) AS s FROM range({calls})"
        timed(f"scripted provider, {calls:,} calls", lambda sql=sql: run(spark, sql, local), calls)
        timed("the same again: nothing to ask", lambda sql=sql: run(spark, sql, local))
    for latency in (0.0, 0.1):
        with Endpoint(Behaviour(seconds=latency)) as endpoint:
            config = {"provider": "openai", "base_url": endpoint.url, "model": "m", "api_key": "none"}
            http = AiSettings.from_config({**config, "concurrency": CONCURRENCY})
            for place, driver in (("executors", False), ("driver", True)):
                for number in (1, 2):
                    texts = f"concat('{latency} {place} {number} ', id)"
                    sql = f"SELECT ai_summarize({texts}) AS s FROM range({calls})"
                    what = f"endpoint of {latency} s, {calls:,} calls from the {place}"
                    waited = calls * latency / CONCURRENCY
                    timed(what, lambda sql=sql, driver=driver, http=http: run(spark, sql, http, driver), calls, waited)


def answers(spark: Any, calls: int = 1_000, latency: float = 0.1, concurrency: int = 32) -> None:
    program = [sys.executable, str(Path(__file__).with_name("quick_endpoint.py")), str(latency)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as endpoint:
        assert endpoint.stdout is not None
        port = int(endpoint.stdout.readline())
        config = {"provider": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "model": "m", "api_key": "none"}
        settings = AiSettings.from_config({**config, "concurrency": concurrency})
        ideal = calls * latency / concurrency
        for number in range(4):
            one, many = (
                f"SELECT ai_summarize(concat('{number} of {n} ', id)) AS s FROM range({n})" for n in (1, calls)
            )
            timed("one answer of a warm endpoint", lambda one=one: run(spark, one, settings), 1, latency)
            timed(f"{calls:,} answers by {concurrency} bare sockets", lambda: bare_sockets(port, calls, concurrency))
            begun = time.time()
            timed(f"{calls:,} answers, {ideal:.2f} s by the endpoint", lambda many=many: run(spark, many, settings))
            came = f"SELECT min(called_at), max(called_at) FROM ai_results WHERE unix_micros(called_at) > {begun * 1e6}"
            (first, last), *_ = spark.sql(came).collect()
            print(f"{'    under way':60s} {(last - first).total_seconds() + latency:7.2f} s", flush=True)
        besides = []
        for number in range(30):
            begun = time.perf_counter()
            run(spark, f"SELECT ai_summarize(concat('alone {number} ', id)) AS s FROM range(1)", settings)
            besides.append(time.perf_counter() - begun - latency)
        besides.sort()
        what = f"one answer, warm, besides its {latency} s: median of {len(besides)}"
        print(f"{what:60s} {median(besides):7.2f} s ({besides[0]:.2f} to {besides[-1]:.2f})", flush=True)
        endpoint.kill()


def bare_sockets(port: int, calls: int, concurrency: int) -> None:
    """So many requests of a chat completion's size, by as many connections at once: as fast as this endpoint can be asked."""
    body = b'{"model": "m", "messages": [{"role": "user", "content": "%s"}]}' % (b"x" * 300)
    request = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    open_ = threading.local()

    def ask(_: int) -> None:
        if not hasattr(open_, "socket"):
            open_.socket = socket.create_connection(("127.0.0.1", port))
        open_.socket.sendall(request)
        assert open_.socket.recv(65_536)

    with ThreadPoolExecutor(concurrency) as pool:
        list(pool.map(ask, range(calls)))


def lookups(spark: Any, results: int) -> None:
    settings = AiSettings.from_config({"provider": "scripted"})
    sql = "SELECT id, ai_summarize(concat('kept ', id)) AS s FROM rows"
    spark.sql(f"CREATE OR REPLACE TEMP VIEW rows AS SELECT id FROM range({results})")
    call = plan_ai(sql, results_table="ai_results", identity=settings.identity()).calls[0]
    given = {
        "result_key": "result_key",
        "function": "function",
        "arguments_hash": "sha2(request, 256)",
        "identity_hash": f"'{call.identity_hash}'",
        "status": "'ok'",
        "value": "concat('an answer of some length to request ', result_key)",
        "called_at": "current_timestamp()",
    }
    columns = ", ".join(f"cast({given.get(n, 'NULL')} AS {k}) AS {n}" for n, k, _ in COLUMNS)
    fill = f"INSERT INTO ai_results SELECT {columns} FROM ({call.request_sql})"
    timed(f"fill the result table with {results:,} answers", lambda: spark.sql(fill))
    for rows in (1_000, results // 10):
        spark.sql(f"CREATE OR REPLACE TEMP VIEW rows AS SELECT id * 7 AS id FROM range({rows})")
        for _ in (1, 2):
            plan = plan_ai(sql, results_table="ai_results", identity=settings.identity())
            timed(f"what is missing? {rows:,} rows", lambda: run(spark, sql, settings))
            count = f"SELECT count(s) FROM ({plan.sql})"
            found = timed(f"read the answers of {rows:,} rows", lambda sql=count: spark.sql(sql).collect()[0][0])
            assert found == rows, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--results", type=int, default=10_000_000)
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-bench-"))
    conf = {"spark.master": "local[2]", "spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8"}
    try:
        spark = open_session(conf, home / "warehouse", home / "spark.log")
        spark.sql(create_sql("ai_results"))
        if options.calls:
            overhead(spark, options.calls)
        answers(spark)
        if options.results:
            lookups(spark, options.results)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
