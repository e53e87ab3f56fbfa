"""The kinds of step, all in one table. A step with a statement is rendered by the macro `mv_<kind>`; what Spark answers to a
question is taken in by the function of the same name in spark/run/."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Work(Enum):
    """What executing a step means for the run."""

    STAGE = "writes a staging table"
    ASK = "finds out what decides on later steps, or stops the run"
    PUBLISH = "commits to a table of the model, in a turn"
    CLEAN = "commits to the state table once the model's own table is published; there may be nothing to do"


@dataclass(frozen=True)
class StepKind:
    """`statement`: a macro renders it. `makes`: what the run says of a statement that makes the table anew. `on_state`: it may
    commit to the state table, too."""

    name: str
    work: Work
    statement: bool = True
    makes: str = ""
    on_state: bool = False

    @property
    def macro(self) -> str | None:
        return f"mv_{self.name}" if self.statement else None

    @property
    def publishes(self) -> bool:
        return self.work is Work.PUBLISH


_TABLE = (
    StepKind("stage_changes", Work.STAGE),
    StepKind("stage_query", Work.STAGE),
    StepKind("stage_source_changes", Work.STAGE),
    StepKind("ai_round", Work.ASK, statement=False),
    StepKind("ask_ahead", Work.ASK, statement=False),
    StepKind("next_change", Work.ASK, statement=False),
    StepKind("affected_range", Work.ASK),
    StepKind("key_range", Work.ASK),
    StepKind("check_stage", Work.ASK),
    StepKind("check_leaving", Work.ASK),
    StepKind("check_new", Work.ASK),
    StepKind("check_limit", Work.ASK, statement=False),
    StepKind("count_evicted", Work.ASK),
    StepKind("confirm_sources", Work.ASK, statement=False),
    StepKind("gone_keys", Work.ASK),
    StepKind("staged_keys", Work.ASK),
    StepKind("audit_keys", Work.ASK),
    StepKind("audit_examples", Work.ASK),
    StepKind("audit_watched", Work.ASK),
    StepKind("create_table", Work.PUBLISH, makes="CREATE", on_state=True),
    StepKind("replace_table", Work.PUBLISH, makes="REPLACE", on_state=True),
    StepKind("merge_into", Work.PUBLISH, on_state=True),
    StepKind("record_only", Work.PUBLISH, on_state=True),
    StepKind("append", Work.PUBLISH, on_state=True),
    StepKind("replace_where", Work.PUBLISH),
    StepKind("replace_using", Work.PUBLISH),
    StepKind("delete_where", Work.PUBLISH),
    StepKind("delete_from", Work.CLEAN, on_state=True),
    StepKind("forget_expired", Work.CLEAN, on_state=True),
)
KINDS = {kind.name: kind for kind in _TABLE}

RELATIONS = frozenset({"relation", "stage", "target", "into", "count_target"})
"""Arguments of steps that name a relation of the run."""
TEXTS = frozenset({"query", "next_change", "affected", "failing", "doubt"})
"""Arguments that are SQL, with places for relations of the run."""
