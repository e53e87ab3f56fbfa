"""The catalogue of the embedded session: where it is, and whether another process has it."""

from __future__ import annotations

import os
from pathlib import Path

from spark_mv.report.findings import Finding, ok, problem, warning
from spark_mv.spark.doctor.patient import Patient
from spark_mv.spark.serve.state import ENDS_IT, running
from spark_mv.spark.session import own_catalogue
from spark_mv.spark.session.derby_lock import LOCK, ONE_AT_A_TIME, UnknownHolder, holder


def database(patient: Patient) -> Path | None:
    """The folder of the Derby database, None where the catalogue is none."""
    return own_catalogue.database(patient.settings) if patient.embedded else None


def catalogue(patient: Patient) -> Finding:
    """Whether a run could open the catalogue now."""
    folder = database(patient)
    if folder is None:
        return ok("catalogue", "of the server" if not patient.embedded else "no database of this machine's own")
    if (server := running(patient.warehouse)) is not None:
        sentence = f"{folder}, open in the server of `spark-mv serve` (process {server.process}"
        if patient.serve == "auto":
            others = server.other_settings(patient.user)
            return ok("catalogue", f"{sentence}), which dbt uses") if not others else _other(sentence, others)
        return problem("catalogue", f"{sentence}), and the profile says `serve: off`", f"`serve: auto`, or {ENDS_IT}")
    try:
        process = holder(folder)
    except UnknownHolder as error:
        return ok("catalogue", f"{folder}; whether another process has it open cannot be told here ({error})")
    if process is not None:
        who = f"process {process}" if process > 0 else "a process of another container or machine"
        sentence = f"{who} has {folder} open, and the embedded session serves one process at a time"
        return problem("catalogue", sentence, ONE_AT_A_TIME)
    if (folder / LOCK).exists() and not os.access(folder / LOCK, os.W_OK):
        return problem("catalogue", f"{folder} belongs to another user", "give yourself the right to write in it")
    if folder.exists() and not (folder / "service.properties").is_file():
        return warning("catalogue", f"{folder} is no Derby database", "remove it if nothing of yours is in it")
    return ok("catalogue", f"{folder}, {'free' if folder.exists() else 'made by the first run'}")


def _other(sentence: str, others: list[str]) -> Finding:
    return warning(
        "catalogue", f"{sentence}), which was started with other settings: {', '.join(others)}",
        f"where they are not of a session, start it again: {ENDS_IT}, then `spark-mv serve`",
    )  # fmt: skip


def alone(patient: Patient) -> bool:
    """Whether surely no process has the catalogue open."""
    folder = database(patient)
    try:
        return folder is not None and holder(folder) is None
    except UnknownHolder:
        return False
