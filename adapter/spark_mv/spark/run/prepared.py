"""All that is known of a run before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.kept_answers import unkept
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.state import Seed
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.holding import HeldFeed
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import state_facts

if TYPE_CHECKING:  # loaded by models with AI calls only
    from spark_mv.query.ai_calls.ai_plan import AiCall, AiPlan
    from spark_mv.spark.run.ai import AiRunner


@dataclass(frozen=True)
class Prepared:
    """`explain_mv` prints it, `prepare` makes a run of it. `ai`: the model's calls,
    over the sources as they are whenever one looks. `looking`: what another thread does for the run meanwhile. `feeds`: of
    changes that the run holds in memory, by the relation in which they are staged. `functions`: what is declared of functions."""

    invocation: Invocation
    analysis: Analysis
    situation: Situation
    plan: Plan
    as_of: datetime
    runner: AiRunner | None
    ai: AiPlan | None = None
    looking: Future[Any] | None = None
    feeds: Mapping[str, HeldFeed] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> ModelConfig:
        return self.situation.config

    @property
    def facts(self) -> RunFacts:
        return self.situation.facts

    @property
    def rewritten(self) -> Rewritten:
        return self.situation.rewritten

    @property
    def ai_rounds(self) -> tuple[tuple[AiCall, ...], ...]:
        """The calls of the whole query, asked about rows whose answers a run would show."""
        return unkept(self.rewritten.ai_rounds, self.plan.columns, self.facts.target)

    def to_audit(self, query: Query, facts: RunFacts) -> Situation:
        """The situation in which the table is compared with a recompute, by these facts and the state table as it is now."""
        has_state = self.rewritten.draw_sql is not None or (
            self.config.on_source_delete == "keep" and self.rewritten.clock
        )
        state = state_facts(query, self.invocation.state_table) if has_state else None
        return replace(self.situation, facts=facts, state=state, seed=Seed(), notes=())
