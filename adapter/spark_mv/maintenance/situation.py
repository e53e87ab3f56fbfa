"""All that a run knows when it decides, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from spark_mv.maintenance.ai_context import AiContext
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.state import Seed, StateFacts
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.rewrite.pin import Pins


@dataclass(frozen=True)
class Situation:
    """`state`: the state table, None for a model that has none; `seed` what the model's table tells of a lost one. `ai` is None
    for a model without AI calls. `notes`: what was noticed already and has to be said."""

    facts: RunFacts
    analysis: Analysis  # of the model's SELECT with all views seen through
    config: ModelConfig
    rewritten: Rewritten
    pins: Pins
    state: StateFacts | None = None
    seed: Seed = field(default_factory=Seed)
    ai: AiContext | None = None
    notes: tuple[str, ...] = ()

    @property
    def schemas(self) -> dict[str, dict[str, str]]:
        """Column types of each source."""
        return {s.name: {c.name: c.type for c in s.columns} for s in self.facts.sources}

    def holding(self, whole: bool) -> Situation:
        """The same where the run holds what it stages in memory. `whole`: see RunFacts."""
        return replace(self, facts=replace(self.facts, held=True, whole=whole))
