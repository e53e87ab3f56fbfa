"""A Spark Connect server that is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc")

PROGRAM = """
from pathlib import Path
from spark_mv.spark.session.session import SessionError, open_session
try:
    open_session({"spark.remote": "sc://127.0.0.1:9/;token=t0p"}, Path("."), Path("spark.log"), 1)
except SessionError as error:
    print(error)
"""


def test_it_is_said_soon_and_python_ends(tmp_path: Path) -> None:
    """In a process of its own: a client that was left open kept Python from ending for ten minutes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False
    )
    assert "No Spark Connect server answers at sc://127.0.0.1:9/ within 1 seconds" in done.stdout, done.stderr
    assert "t0p" not in done.stdout + done.stderr
