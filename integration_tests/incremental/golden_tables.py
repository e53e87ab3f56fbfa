"""Tables as a release left them, in one small file: a later release has to go on with them.

`python integration_tests/incremental/golden_tables.py` makes those of this release: models of changing_models.py after two runs, with a change of
their source and a request to forget values that wait. Run it when a release is tagged, and keep the files of all releases.
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
MODELS = "models.json"
CHOSEN = ("by row", "by group", "windowed", "evicted", "remembered", "asked")


def make(spark: Any, warehouse: Path, folder: Path, target: Path) -> None:
    """The models, in the file `target`, by way of an empty folder."""
    from changing_models import CASES, FORMAT, World
    from gates import new_session

    from spark_mv.maintenance.forget import ForgetRequest, request_text
    from spark_mv.spark.formats.registry import FORMATS

    assert FORMAT == "delta", FORMAT
    models = []
    for case in (CASES[name] for name in CHOSEN):
        session = new_session(spark)
        world = World(case, f"golden_{case.name.replace(' ', '_')}", folder / f"asked {case.name}")
        world.make(session)
        world.run(session)
        world.change(session)
        run = world.run(session)
        assert run.plan.strategy == case.strategy, run.plan.candidates
        world.change(session)
        if case.name == "by row":
            request = ForgetRequest("golden", ("drawn",), "id < 3")
            FORMATS["delta"].say(session, session.query, world.table, request.id, request_text(request))
        about = {"schema": world.schema, "changed": world.changes, "tables": world.names(session)}
        models.append({**asdict(case), **about})
    (folder / MODELS).write_text(json.dumps({"spark": spark.version, "models": models}, indent=1), encoding="utf-8")
    schemas = [warehouse / "tables" / f"{model['schema']}.db" for model in models]
    pack([folder / MODELS, *schemas], target)


def pack(places: list[Path], target: Path) -> None:
    """Delta's files without checksums, which it makes again; a version's time is the time of its file."""

    def slim(found: tarfile.TarInfo) -> tarfile.TarInfo | None:
        found.uname = found.gname = ""
        found.uid = found.gid = 0
        return None if found.name.endswith(".crc") else found

    with tarfile.open(target, "w:gz", format=tarfile.PAX_FORMAT) as file:
        for place in places:
            file.add(place, place.name, filter=slim)


def unpack(file: Path, folder: Path) -> dict[str, Any]:
    """What is said of the models; their tables are in folders of the names of their schemas."""
    with tarfile.open(file) as packed:
        packed.extractall(folder, filter="data")
        for member in packed.getmembers():
            millis = int(member.mtime * 1000 + 0.0005)  # a float holds none exactly
            nanos = millis * 1_000_000 + 500_000
            os.utime(folder / member.name, ns=(nanos, nanos))
    found: dict[str, Any] = json.loads((folder / MODELS).read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parents[1])]
    from spark_mv import __version__
    from spark_mv.spark.session.session import open_session

    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "1"}
        started = open_session(settings, home / "warehouse", home / "spark.log")
        make(started, home / "warehouse", home, GOLDEN / f"{__version__}.tar.gz")
        started.stop()
