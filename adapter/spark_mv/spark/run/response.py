"""What `dbt run` says of a run: one line on the console, the same as fields in run_results.json."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt.adapters.contracts.connection import AdapterResponse


@dataclass
class MvResponse(AdapterResponse):
    """Rows and values of one run. `rows_affected` counts rows written or removed; `values_kept` rows whose kept values
    were read back instead of drawn. `next_change_at` (UTC) is when the next row enters or leaves by its window.
    `audit_differences` counts rows that differed from a complete recompute (None: no audit), `audit` is JSON about them.
    `notes` are the warnings about kept values."""

    strategy: str = ""
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_evicted: int = 0
    values_kept: int = 0
    ai_calls: int = 0
    ai_reused: int = 0
    ai_errors: int = 0
    ai_pending: int = 0
    ai_under_way: int = 0
    ai_collected: int = 0
    as_of: str = ""
    next_change_at: str | None = None
    statements: int = 0
    audit_differences: int | None = None
    audit: str = ""
    notes: list[str] = field(default_factory=list)


def message(response: MvResponse, verb: str, why: str = "", audit: str = "", remark: str = "") -> str:
    """The console line, e.g. `MERGE +120 ~4 -31 (29 evicted), 118 AI calls, 4,210 kept`."""
    parts = []
    if verb == "NO_OP":
        parts.append(f"NO_OP {why}".strip())
    else:
        counts = [
            f"{sign}{count:,}"
            for sign, count in (
                ("+", response.rows_inserted),
                ("~", response.rows_updated),
                ("-", response.rows_deleted),
            )
            if count
        ]
        evicted = f" ({response.rows_evicted:,} evicted)" if response.rows_evicted else ""
        parts.append(f"{verb} {' '.join(counts) or 'no row changed'}{evicted}")
    if response.ai_calls:
        parts.append(f"{response.ai_calls:,} AI call{'s' if response.ai_calls != 1 else ''}")
    if response.ai_errors:
        parts.append(f"{response.ai_errors:,} AI error{'s' if response.ai_errors != 1 else ''}")
    if response.ai_collected:
        parts.append(f"{response.ai_collected:,} collected from batches")
    if response.ai_under_way:
        parts.append(f"{response.ai_under_way:,} under way in batches")
    if response.ai_pending:
        parts.append(f"{response.ai_pending:,} AI calls left for later runs")
    if response.values_kept:
        parts.append(f"{response.values_kept:,} kept")
    if audit:
        parts.append(audit)
    if remark:
        parts.append(remark)
    return ", ".join(parts)
