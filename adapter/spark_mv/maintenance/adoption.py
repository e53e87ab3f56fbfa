"""The record of a table that another materialization made: what the next run may keep, and that it has to look at all rows."""

from __future__ import annotations

import uuid
from dataclasses import replace

from spark_mv.maintenance.record import RunRecord

ADOPTED = "ADOPTED"
"""In the place of a strategy, and the reason of the next run."""


def adoption_record(of_first_run: RunRecord, model: str, version: int, rows: int) -> RunRecord:
    """The record with which version `version` of the table, of `rows` rows, becomes a model's. `of_first_run` is that of a first run
    of the query: its columns' expressions are taken for those that gave the table's values. It is a record of incomplete sources, since
    what the table was made of is not known."""
    return replace(
        of_first_run,
        strategy=ADOPTED,
        partial=True,
        sources={},
        source_columns={},
        base_version=version,
        target_rows=rows,
        model=model,
        run_id=uuid.uuid4().hex,
        turn=version + 1,
        honoured=None,
        state="",
        state_version=None,
        next_change_at=None,
        ai_pending=0,
        ai_retry_at=None,
        unaudited=0,
    )
