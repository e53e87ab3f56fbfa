"""What `erase` tells: what went, and where traces remain, in the order in which they can be removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Erased:
    """`rows` of the table that a policy kept, `remembered` ones of its state. `bounds`: whether the bookkeeping held some. `tables` of the
    model, `named`: versions of these whose commits name a key. `answers`: what was said of the result table (empty: the model asks
    nothing). `followed`: whether other models read this one."""

    model: str
    rows: int
    remembered: int
    bounds: bool
    sources: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    named: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    followed: bool = False
    asks: bool = False
    answers: str = ""


def erased_text(found: Erased, dry_run: bool) -> str:
    """The report. It names no key and no value."""
    would = "would be " if dry_run else ""
    lines = [
        f"model {found.model}: {found.rows:,} rows of its table {would}erased, {found.remembered:,} of its state; bounds of keys in the "
        f"bookkeeping {would}dropped: {'yes' if found.bounds else 'there are none'}; in mv_runs, audits and errors of its runs {would}emptied",
        *found.answers.splitlines(),
        "",
        "Traces remain, to be removed in this order:",
    ]
    return "\n".join([*lines, *(f"{k}. {text}" for k, text in enumerate(_traces(found), 1))])


def _traces(found: Erased) -> list[str]:
    parts = []
    if found.followed:
        parts.append("models that read this one hold what they took from it: run them, and erase there")
    tables = (*found.sources, *found.tables)
    parts.append(
        f"old versions of the files of {', '.join(tables)}, until VACUUM removes those that are older than "
        "delta.deletedFileRetentionDuration (7 days): `VACUUM table`, for each, once that time has passed; before, with a shorter retention. Before "
        "it, of a source with deletion vectors, `REORG TABLE source APPLY (PURGE)`; of the model's tables that is done"
    )
    if found.named:
        listed = "; ".join(f"{table}: {', '.join(map(str, versions))}" for table, versions in found.named.items())
        parts.append(f"commits that name a key (versions of {listed}), until the log is cleaned up, as below")
    parts.append(
        "the logs of these tables: least and greatest value of each column in each file, until delta.logRetentionDuration (30 days) has "
        "passed and a checkpoint is written"
    )
    if found.asks:
        parts.append(
            "the provider of the AI functions: questions that were sent, and files of batches, as long as it keeps them; answers that other "
            "projects or models ask for stay in ai_results"
        )
    parts.append(
        "dbt's own files: logs/dbt.log (statements, at its level debug), target/ (compiled SQL and results of tests)"
    )
    parts.append("snapshots, clones and backups of these tables, and whatever else reads them")
    return parts
