"""All that is known of a run before it starts."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.spark.run.invocation import Invocation

if TYPE_CHECKING:  # loaded by models with AI calls only
    from spark_mv.query.ai_calls.plan import AiPlan
    from spark_mv.spark.run.ai import AiRunner


@dataclass(frozen=True)
class Prepared:
    """`explain_mv` prints it, `prepare` makes a run of it. `ai`: the model's calls,
    over the sources as they are whenever one looks. `looking`: what another thread does for the run meanwhile."""

    invocation: Invocation
    analysis: Analysis
    config: ModelConfig
    facts: RunFacts
    rewritten: Rewritten
    plan: Plan
    as_of: datetime
    runner: AiRunner | None
    ai: AiPlan | None = None
    looking: Future[Any] | None = None
