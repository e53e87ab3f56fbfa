"""The job as workers get it: by value, into a Python that has no spark_mv (and no sqlglot) at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

cloudpickle = pytest.importorskip("pyspark.cloudpickle")

from spark_mv.ai.outcome import AiOutcome  # noqa: E402
from spark_mv.ai.settings import AiSettings  # noqa: E402
from spark_mv.ai.work import build_job, ship_by_value, with_shares  # noqa: E402
from spark_mv.query.ai_calls.ai_plan import plan_ai  # noqa: E402

WORKER = """
import sys, pandas
sys.path[:] = [p for p in sys.path if "adapter" not in p]
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("spark_mv", "sqlglot", "dbt"):
            raise ImportError(name + " is not installed here")
sys.meta_path.insert(0, Refuse())
import pickle
job = pickle.load(open(sys.argv[1], "rb"))
frame = pandas.DataFrame([("key", sys.argv[2], 0, "hash")], columns=["result_key", "request", "site", "arguments_hash"])
for out in job(iter([frame])):
    print(out.loc[0, "status"], out.loc[0, "value"], out.loc[0, "error_class"], out.loc[0, "error"])
"""

REQUESTS = {
    "scripted": ("ai_gen(t)", '{"constant":{},"function":"ai_gen","row":[{"prompt":"x"}]}', "ok ai_gen: x"),
    "local": (
        "ai_analyze_sentiment(t)",
        '{"constant":{},"function":"ai_analyze_sentiment","row":[{"content":"I love it"}]}',
        "ok positive",
    ),
    "openai": (
        "ai_query('m', t, returnType => 'STRUCT<a: INT>')",
        '{"constant":{},"function":"ai_query","row":[{"request":"x"}]}',
        "error None connection",
    ),
}


@pytest.mark.parametrize("provider", list(REQUESTS))
def test_a_worker_needs_no_spark_mv(provider: str, tmp_path: Path) -> None:
    call, request, expected = REQUESTS[provider]
    config = {
        "provider": provider,
        "model": "m",
        "api_key": "k",
        "base_url": "http://127.0.0.1:9/v1",
        "max_attempts": 1,
    }
    if provider != "openai":
        config = {"provider": provider}
    settings = AiSettings.from_config(config)
    plan = plan_ai(f"SELECT {call} AS x FROM r", results_table="x", identity=settings.identity())
    job = with_shares(build_job(plan.calls, settings, "i"), settings, 2, AiOutcome(), None)
    ship_by_value(settings)
    shipped = tmp_path / "job"
    shipped.write_bytes(cloudpickle.dumps(job))
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(shipped), request], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.stdout.startswith(expected), done.stderr[-2000:]
