"""Many runs on one model: what grows with their number, and what `maintain` makes of it.

`RUNS=n pytest -m slow integration_tests/incremental/test_long_life.py`; with `FAULTS_COUNTED=file` each look is a line of it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from changing_models import CASES, World
from gates import Gated, gated_session, gates
from integration_tests.counting import counted
from integration_tests.under_format import delta_only

from spark_mv.spark.run.maintaining import maintain

RUNS = int(os.environ.get("RUNS", "1000"))
LOOKS = 10


@pytest.fixture
def session(spark: Any) -> Iterator[Gated]:
    with gates():
        yield gated_session(spark)


@delta_only("maintain")
@pytest.mark.parametrize(
    ("name", "runs"),
    [pytest.param("remembered", 4, id="few"), pytest.param("asked", RUNS, id="many", marks=pytest.mark.slow)],
)
def test_what_grows(session: Gated, warehouse: Path, tmp_path: Path, name: str, runs: int) -> None:
    world = World(replace(CASES[name], hours=1), f"long_life_{name}", tmp_path / "asked")
    world.make(session)
    sizes, took = [], 0.0
    for number in range(1, runs + 1):
        world.change(session)
        began = time.monotonic()
        world.run_auto(session)
        took += time.monotonic() - began
        if number % max(1, runs // LOOKS) == 0:
            sizes.append(look(session, world, warehouse))
            counted({("life", name, str(number), what): size for what, size in sizes[-1].items()})
            counted({("life", name, str(number), "milliseconds a run"): int(1000 * took / max(1, runs // LOOKS))})
            took = 0.0
    assert world.read(session).rows == world.wanted(session) or name == "remembered"
    assert not world.leftovers(session)
    before, kept = sizes[-1], world.read(session)
    invocation = world.invocation(session)
    would = maintain(session, [invocation], {}, vacuum=True, dry_run=True)
    assert "now" not in would and of_tables(look(session, world, warehouse)) == of_tables(before)
    said = maintain(session, [invocation], {}, vacuum=True, dry_run=False)
    after = look(session, world, warehouse)
    counted({("life", name, "maintained", what): size for what, size in after.items()})
    assert "vacuumed" in said and after["files of m"] <= before["files of m"]
    assert after["files of m"] <= 2 and after.get("files of ai_results", 1) <= 2, said
    now = world.read(session)
    assert (now.rows, now.kept) == (kept.rows, kept.kept)
    run = world.run_auto(session)
    assert run.plan.strategy == "NO_OP", run.plan.chosen  # what it did is nobody's change
    # a long-lived process forgets: its memory does not grow with the runs
    if len(sizes) > 4:
        assert sizes[-1]["MB of Python"] < sizes[len(sizes) // 2]["MB of Python"] + 100, sizes


def look(session: Gated, world: World, warehouse: Path) -> dict[str, int]:
    """Files and sizes of the model's tables, memory of the processes, and what is left in temporary folders."""
    found = {"tables": len(world.names(session))}
    for name in (n for n in ("m", "m__state", "ai_results") if n in world.names(session)):
        row = session.query(f"describe detail {world.schema}.{name}")[0]
        log = [
            file
            for file in (warehouse / "tables" / f"{world.schema}.db" / name / "_delta_log").rglob("*")
            if file.is_file()
        ]
        found |= {f"files of {name}": int(row["numFiles"]), f"bytes of {name}": int(row["sizeInBytes"])}
        found |= {
            f"files in the log of {name}": len(log),
            f"bytes of the log of {name}": sum(file.stat().st_size for file in log),
        }
    found["MB of Python"] = _megabytes(os.getpid())
    found["MB of Spark"] = _megabytes(int(session.spark._jvm.java.lang.ProcessHandle.current().pid()))
    return found


def of_tables(look: dict[str, int]) -> dict[str, int]:
    return {what: size for what, size in look.items() if not what.startswith("MB of")}


def _megabytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(found[1]) // 1024 if found else 0
