"""The disk of the warehouse is full at some step of a run; once there is room again, the next run, in another process, puts the table right. The disk is a
small one in memory that only these processes see (`unshare`, for which Linux has to allow user namespaces)."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from integration_tests.counting import counted, wrong_counts
from integration_tests.servers.test_killed_dbt import PROGRAM, SEED

ROUNDS = 6
SIZE = "48m"
OWN_DISK = ["unshare", "--map-root-user", "--mount"]


def may_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*OWN_DISK, "mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a disk")
@wrong_counts("full disks")
def test_full_disks(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    if not may_mount(warehouse):
        pytest.skip("this user may not mount a disk of its own")
    draw = random.Random(SEED)
    # the first run, then runs that find so much room, from none to nearly what they take
    rooms = ["100000", *(str(int(draw.uniform(4, 30) * k)) for k in range(ROUNDS)), "last"]
    program = f'mount -t tmpfs -o size={SIZE} tmpfs "$1" || exit; shift; for room in "$@"; do "$PY" "$RUN" "$FOLDER" "$room" || exit; done'
    done = subprocess.run(
        [*OWN_DISK, "sh", "-c", program, "sh", str(warehouse), *rooms],
        env={"PY": sys.executable, "RUN": str(PROGRAM), "FOLDER": str(tmp_path), **os.environ},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:]
    said = [line.split() for line in done.stdout.splitlines() if line.split()[:1] in (["FULL"], ["DONE"], ["RIGHT"])]
    ended = [words[0] for words in said if words[0] != "RIGHT"]
    right = [words for words in said if words[0] == "RIGHT"]
    assert len(ended) == len(right) == ROUNDS + 1 and "FULL" in ended, done.stdout[-8000:]
    for end, (_, after, _) in zip(ended, right, strict=True):
        counted({("full disk", end, after): 1})
