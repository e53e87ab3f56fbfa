"""Two executors: limits over the whole job, measured at the endpoint, and no installed spark_mv on the workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from integration_tests.ai.endpoint import Behaviour, Endpoint, most_in_any_window
from integration_tests.servers.server import NOT_ON_THE_SERVER

SECRET = "sk-planted-3b9e8a11"


def run(**options: Any) -> dict[str, Any]:
    here = Path(__file__).parent
    options["sitecustomize"] = NOT_ON_THE_SERVER.format(missing={"spark_mv", "dbt", "sqlglot"})
    command = [sys.executable, str(here / "cluster_run.py"), str(here.parents[1] / "adapter"), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert SECRET not in done.stdout + done.stderr
    line = next((s for s in done.stdout.splitlines() if s.startswith("RESULT ")), None)
    assert line, done.stderr[-3000:]
    return dict(json.loads(line[7:]))


@pytest.mark.slow
def test_limits_hold_over_two_executors() -> None:
    with Endpoint(Behaviour(seconds=0.3, rate_limit=0.05)) as endpoint:
        found = run(
            provider="openai",
            base_url=endpoint.url,
            model="m",
            api_key=SECRET,
            texts=110,
            requests_per_minute=90,
            concurrency=3,
            chunk_seconds=10,
        )
        assert found["calls"] == found["ok"] == 110
        assert found["missing"] == 0
        assert found["leaks"] == []
        assert found["pages"] > 4
        assert set(endpoint.seen.answered.values()) == {1}
        assert endpoint.seen.most_at_once <= 3
        assert most_in_any_window(endpoint.seen.times, 60.0) <= 90
        # paced evenly: no burst in any part of a minute either (one fence post per executor)
        assert most_in_any_window(endpoint.seen.times, 10.0) <= 15 + 2


@pytest.mark.slow
def test_two_executors_keep_the_pace_and_speculation_pays_nothing_twice() -> None:
    """Speculation starts a second copy of a task that runs long beside one that is done: here one whose texts take long."""
    with Endpoint(Behaviour(seconds=0.1, slow=0.1, slow_seconds=4.0)) as endpoint:
        found = run(
            provider="openai",
            base_url=endpoint.url,
            model="m",
            api_key=SECRET,
            texts=60,
            requests_per_minute=300,
            concurrency=4,
            speculation="true",
        )
        assert found["calls"] == found["ok"] == 60
        assert (found["missing"], found["leaks"]) == (0, [])
        assert found["pages"] > 4
        assert set(endpoint.seen.asked.values()) == {1}
        assert endpoint.seen.most_at_once <= 4
        # 300 a minute is one every 0.2 s, and a fence post per executor; seen are arrivals, and some are on their way longer
        assert most_in_any_window(endpoint.seen.times, 4.0) <= 20 + 2 + 5
