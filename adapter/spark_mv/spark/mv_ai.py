"""The AI calls of one run: which settings, which result table, and one round of calls after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_mv.maintenance.config import ModelConfig
from spark_mv.spark.mv_rewrite import AiContext

if TYPE_CHECKING:
    from spark_mv.query.ai_calls import AiPlan


@dataclass
class AiRunner:
    """`context` is what the rewrite needs; `plan`, set after the rewrite, holds the rounds of calls."""

    adapter: Any
    model: str
    settings: Any
    context: AiContext
    identity_text: str
    invocation_id: str
    as_of: datetime
    plan: AiPlan | None = None

    def run(self, number: int) -> Any:
        """Execute the calls of one round; returns the outcome (calls, reused, errors, left_for_later, …)."""
        from spark_mv.ai.job import run_ai_round

        assert self.plan is not None
        return run_ai_round(
            self.adapter.mv_spark(),
            self.plan.rounds[number],
            settings=self.settings,
            results_table=self.context.results_table,
            invocation_id=self.invocation_id,
            as_of=self.as_of,
            on_progress=self._progress,
        )

    def _progress(self, progress: Any) -> None:
        self.adapter.say(f"model {self.model}: AI calls {progress}")


def ai_runner(
    adapter: Any,
    schema: str,
    model: str,
    invocation_id: str,
    config: ModelConfig,
    profile: Mapping[str, Any],
    functions: Mapping[str, Mapping[str, Any]],
    as_of: datetime,
) -> AiRunner:
    """The runner for one model. Creates the result table where it is missing, because the query cannot be understood
    without it. Raises AiConfigError (a ValueError) for wrong settings."""
    from spark_mv.ai.results import create_results_sql, results_table_name
    from spark_mv.ai.settings import AiSettings

    settings = AiSettings.from_config(dict(profile.get("ai") or {}), dict(config.ai))
    table = results_table_name(settings, schema)
    adapter.query(create_results_sql(table))
    identity = settings.identity
    return AiRunner(
        adapter=adapter,
        model=model,
        settings=settings,
        context=AiContext(results_table=table, identity=identity, functions=functions),
        identity_text=str(identity),
        invocation_id=invocation_id,
        as_of=as_of,
    )
