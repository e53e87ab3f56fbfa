"""Asking in dbt's own process: the requests of a page, their answers kept as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from spark_mv.ai.asking import Outcome
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.results import COLUMN_NAMES
from spark_mv.ai.worker import PartitionJob

Row = tuple[Any, ...]
"""Of the result table, in the order of its columns."""
Page = Iterable[Sequence[Any]]
"""Of each the ASKED_COLUMNS and, under dedupe, near_key."""
_ROWS = 500  # of one write
_BYTES = 4 << 20


def ask_page(
    page: Page,
    job: PartitionJob,
    chunk_seconds: float,
    keep: Callable[[Sequence[Row]], object],
    told: Callable[[AiOutcome], object] = lambda _: None,
) -> AiOutcome:
    """Asks within the first share of the job. `keep` writes rows: when they are many, large, or `chunk_seconds` old, so that what is paid
    is soon kept; `told` hears each time what has been done so far."""
    asker = job.asker(job.shares[0])
    found = list(page)
    pending = [(str(key), str(request), int(site), int(failures)) for key, request, site, failures, *_ in found]
    beside = {str(key): more for key, _, _, _, *more in found}
    done, rows = AiOutcome(), _Rows(keep, chunk_seconds)
    try:
        for key, site, request, failures, outcome in job.answer_all(pending, asker):
            if not outcome.attempts:
                done += AiOutcome(left_for_later=1, message=outcome.error or "")
                continue
            row = job.row(key, site, request, failures, outcome, *beside[key])
            done += counted(outcome, row)
            if rows.add(row):
                told(done)
    finally:  # what was paid is kept, whatever ends this
        rows.flush()
    return done


def counted(outcome: Outcome, row: Row) -> AiOutcome:
    """What one asked input, of which the result table gets this row, adds to the round."""
    cost = float(row[COLUMN_NAMES.index("cost")])
    spent = AiOutcome(input_tokens=outcome.input_tokens, output_tokens=outcome.output_tokens, cost=cost)
    steps = len(outcome.steps)
    if outcome.error_class and steps and outcome.steps[-1].declined:
        repeated, why = outcome.attempts - steps, outcome.error or ""
        return replace(spent, left_for_later=1, message=why, further=steps, repeated=repeated)
    failed, retry = outcome.error_class is not None, row[COLUMN_NAMES.index("next_retry_at")]
    return replace(
        spent,
        calls=1,
        ok=int(not failed),
        errors=int(failed),
        null_answers=int(not failed and outcome.value is None),
        error_classes={outcome.error_class: 1} if outcome.error_class else {},
        error_example=f"{outcome.error_class}: {outcome.error}" if failed else "",
        gave_up=int(failed and retry is None),
        retry_at=retry.timestamp() if retry is not None else None,
        further=max(0, steps - 1),
        repeated=outcome.attempts - (steps or 1),
    )


class _Rows:
    """Rows until they are written."""

    def __init__(self, keep: Callable[[Sequence[Row]], object], seconds: float) -> None:
        self.keep, self.seconds = keep, seconds
        self.rows: list[Row] = []
        self.size = 0
        self.since = time.monotonic()

    def add(self, row: Row) -> bool:
        """Whether that was the one to write them all."""
        self.rows.append(row)
        self.size += sum(len(value) for value in row if isinstance(value, str))
        late = time.monotonic() - self.since > self.seconds
        if full := late or len(self.rows) >= _ROWS or self.size >= _BYTES:
            self.flush()
        return full

    def flush(self) -> None:
        rows, self.rows, self.size = self.rows, [], 0  # whatever comes of it: they are not written twice
        if rows:
            self.keep(rows)
        self.since = time.monotonic()
