"""What `erase` tells: what went, and where traces remain, in the order in which they can be removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Erased:
    """`rows` of the table that a policy kept, `remembered` ones of its state. `bounds`: whether the bookkeeping held some. `tables` of the
    model and its `sources`, by name, each with its provider; `named`: versions of the model's own whose commits name a key. `answers`: what was said of
    the result table (empty: the model asks nothing). `followed`: whether other models read this one."""

    model: str
    rows: int
    remembered: int
    bounds: bool
    tables: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    followed: bool = False
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
    every = {**found.sources, **found.tables}
    delta = [name for name, provider in every.items() if provider == "delta"]
    snapshots = [name for name, provider in every.items() if provider == "iceberg"]
    others = [name for name, provider in every.items() if provider not in ("delta", "iceberg")]
    if delta:
        parts.append(
            f"old versions of the files of {', '.join(delta)}, until VACUUM removes those that are older than "
            "delta.deletedFileRetentionDuration (7 days): `VACUUM table`, for each, once that time has passed; before, with a shorter retention. "
            "Before it, of a source with deletion vectors, `REORG TABLE source APPLY (PURGE)`; of the model's tables that is done"
        )
    if snapshots:
        parts.append(
            f"old snapshots of {', '.join(snapshots)}, and files of deletes beside theirs: `rewrite_data_files`, then `expire_snapshots`; of a "
            "source that runs retain (`retain_sources`), after the next run"
        )
    if others:
        parts.append(f"whatever {', '.join(others)} keeps of former rows")
    if found.named:
        listed = "; ".join(f"{table}: {', '.join(map(str, versions))}" for table, versions in found.named.items())
        parts.append(f"commits that name a key (versions of {listed}), until the log is cleaned up, as below")
    parts.append(
        "the logs of these tables: least and greatest value of each column in each file, bounds of keys and conditions in earlier commits, "
        "until delta.logRetentionDuration (30 days) has passed and a checkpoint is written"
    )
    if found.answers:
        parts.append(
            "answers of batches that are under way: `collect_ai`, then erase again; the provider of the AI functions: questions that were sent, and "
            "files of batches, as long as it keeps them; answers that other projects or models ask for stay in ai_results"
        )
    parts.append(
        "dbt's own files: logs/dbt.log (statements, at its level debug), target/ (compiled SQL and results of tests)"
    )
    parts.append("snapshots, clones and backups of these tables, and whatever else reads them")
    return parts
