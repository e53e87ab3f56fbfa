"""The folders that a run writes: whether it may, how much room there is, and what ended runs have left in them."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

from spark_mv.report.findings import Finding, ok, problem, warning
from spark_mv.spark.doctor.patient import Patient
from spark_mv.spark.run.stamps import STAGE, leftovers
from spark_mv.spark.session.jars import cache_folder

LITTLE_MB, TOO_LITTLE_MB = 2048, 200
"""Free room below which runs are at risk, and below which they will fail: Delta's jars take 20 MB, a class archive 250."""
ABANDONED = 3600
"""Seconds after which nobody works in a temporary folder of the cache: a fetch gives up after a quarter of that."""


def written(patient: Patient) -> dict[str, Path]:
    """The folders, by what they are for."""
    found = {"logs": patient.logs, "target": patient.project.target} if patient.project.exists else {}
    if not patient.embedded:
        return found
    return {**found, "warehouse": patient.warehouse, "temporary files": _temporary(patient), "cache": cache_folder()}


def _temporary(patient: Patient) -> Path:
    """Where Spark spills: SPARK_LOCAL_DIRS wins over the setting, of several folders the first is looked at."""
    named = os.environ.get("SPARK_LOCAL_DIRS") or patient.user.get("spark.local.dir") or tempfile.gettempdir()
    return Path(named.split(",")[0])


def permissions(folders: Mapping[str, Path]) -> Iterator[Finding]:
    """A problem for each folder in which nothing can be written, by writing; one line for the others."""
    good = []
    for what, folder in folders.items():
        there = _existing(folder)
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
            good.append(what)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            cure = "give yourself the right to write there, or name another folder"
            yield problem(f"folder {what}", f"{folder} cannot be written: {why}", cure)
    if good:
        yield ok("folders", f"can be written: {', '.join(good)}")


def room(folders: Mapping[str, Path]) -> Iterator[Finding]:
    """Free disk, once for each file system."""
    seen: dict[int, list[str]] = {}
    places: dict[int, Path] = {}
    for what, folder in folders.items():
        there = _existing(folder)
        device = there.stat().st_dev
        seen.setdefault(device, []).append(what)
        places.setdefault(device, there)
    for device, names in seen.items():
        yield said_of_room(", ".join(names), places[device], shutil.disk_usage(places[device]).free / 2**20)


def said_of_room(what: str, place: Path, free: float) -> Finding:
    """`free` in MB, of the file system at `place`."""
    sentence = f"{free / 1024:,.1f} GB free for {what}"
    if free < TOO_LITTLE_MB:
        return problem("disk", sentence, f"make room at {place}")
    return warning("disk", sentence, f"make room at {place}") if free < LITTLE_MB else ok("disk", sentence)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there: a run makes the rest."""
    return next((one for one in (folder, *folder.parents) if one.exists()), Path(folder.anchor or "."))


def staging(patient: Patient, alone: bool) -> Finding:
    """Staging tables of runs that have ended. `alone`: nobody has the catalogue open, so that all of them are such."""
    tables = Path(unquote(urlparse(patient.settings["spark.sql.warehouse.dir"]).path))
    found: dict[str, list[Path]] = {}
    for folder in (*tables.glob(f"*{STAGE}*"), *tables.glob(f"*.db/*{STAGE}*")):
        model = folder.name.lower().split(STAGE)[0]
        if leftovers([folder.name], model, alone):
            found.setdefault(model, []).append(folder)
    if not found:
        return ok("staging", "no tables of ended runs")
    number = sum(map(len, found.values()))
    size = sum(file.stat().st_size for folders in found.values() for one in folders for file in _files(one)) / 2**20
    return warning(
        "staging",
        f"{number} staging table{'s' * (number > 1)} of ended runs ({size:,.0f} MB), of {', '.join(sorted(found))}",
        "the next run of the model that has something to do drops them",
    )


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())


def unfinished(cache: Path, now: float | None = None) -> Finding:
    """Temporary folders of the cache in which nobody works any more."""
    at = time.time() if now is None else now
    kept = (*cache.glob("jars/.fetch-*"), *cache.glob("classes/.make-*"))
    old = [folder for folder in kept if at - folder.stat().st_mtime > ABANDONED]
    if old:
        names = ", ".join(str(folder) for folder in sorted(old))
        return warning("cache", f"{len(old)} unfinished download{'s' * (len(old) > 1)} in {cache}", f"remove {names}")
    return ok("cache", f"{cache}, no unfinished downloads")
