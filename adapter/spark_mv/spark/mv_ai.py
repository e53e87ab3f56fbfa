"""The AI calls of one run: which settings, which result table, and one round of calls after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_mv.ai.job import count_ai_round, run_ai_round
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.results import create_sql, table_name
from spark_mv.ai.settings import AiSettings
from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.mv_rewrite import AiContext

if TYPE_CHECKING:
    from spark_mv.query.ai_calls import AiPlan


@dataclass
class AiRunner:
    """`context` is what the rewrite needs; `plan`, set after the rewrite, holds the rounds of calls."""

    adapter: Any
    model: str
    settings: AiSettings
    context: AiContext
    invocation_id: str
    as_of: datetime
    plan: AiPlan | None = None

    @property
    def identity_text(self) -> str:
        """What of the settings decides which answers are shown; part of the configuration's fingerprint."""
        return repr(self.context.identity)

    def run(self, number: int) -> AiOutcome:
        """Execute the calls of one round."""
        assert self.plan is not None
        return run_ai_round(
            self.adapter.mv_spark(),
            self.plan.rounds[number],
            settings=self.settings,
            results_table=self.context.results_table,
            invocation_id=self.invocation_id,
            as_of=self.as_of,
            on_progress=lambda progress: self.adapter.note(self.model, str(progress)),
        )

    def count(self, rounds: int) -> AiOutcome:
        """What the first `rounds` rounds would ask now, without asking. Later rounds count only what the answers that
        are there already let them ask."""
        assert self.plan is not None
        outcome = AiOutcome()
        for calls in self.plan.rounds[:rounds]:
            outcome += count_ai_round(
                self.adapter.mv_spark(), calls, settings=self.settings, results_table=self.context.results_table
            )
        return outcome


def ai_runner(
    adapter: Any,
    model: str,
    schema: str,
    invocation_id: str,
    as_of: datetime,
    profile: Mapping[str, Any],
    own: Mapping[str, Any],
) -> AiRunner:
    """The runner for one model; `own` are the model's AI settings, which win over the profile's.

    Creates the result table where it is missing, because Spark cannot describe the query without it. Raises
    AiConfigError (a ValueError) for wrong settings and RefusedError where no provider is configured.
    """
    settings = AiSettings.from_config(profile, own)
    if not settings.configured:
        raise RefusedError(
            f"model {model} calls AI functions, and no provider is configured. Add to the profile's target "
            "`ai: {provider: local}` (runs offline; pip install 'dbt-spark-mv[local]') or `ai: {provider: openai, "
            "model: …, api_key: \"{{ env_var('OPENAI_API_KEY') }}\"}`"
        )
    table = table_name(schema.strip("`"), settings.result_schema)
    adapter.query(create_sql(table))
    return AiRunner(
        adapter=adapter,
        model=model,
        settings=settings,
        context=AiContext(results_table=table, identity=settings.identity(), functions=settings.functions),
        invocation_id=invocation_id,
        as_of=as_of,
    )
