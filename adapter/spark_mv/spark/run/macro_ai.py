"""AI functions in the macro-only mode: the statements with which the engine answers what the result table lacks (provider: native)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spark_mv.maintenance.macro_only import MARK, NeedsAdapter

if TYPE_CHECKING:  # loaded by models with AI calls only
    from spark_mv.ai.settings import AiSettings
    from spark_mv.query.ai_calls.ai_plan import AiCall
    from spark_mv.spark.run.ai import AiRunner

INVOCATION = f"{MARK}invocation__"
ASKED_AT = f"{MARK}asked_at__"
"""What a run puts into the statements: its invocation's id, and when it asks (a timestamp literal's text)."""


def native_settings(profile: Mapping[str, Any], own: Mapping[str, Any]) -> AiSettings:
    """The settings of a model that calls AI functions. Raises NeedsAdapter where SQL alone cannot follow them, and AiConfigError
    where they are wrong. Without a provider they are left for the run's own error."""
    from spark_mv.ai.settings import PERIODS, AiSettings

    settings = AiSettings.from_config(profile.get("ai") or {}, own)
    if settings.configured and settings.provider != "native":
        raise NeedsAdapter(
            f"it calls AI functions, and provider {settings.provider} is asked by Python; with `provider: native` the engine's own "
            "functions answer, or SQL functions that you name"
        )
    budgets = {f"max_ai_{what}": getattr(settings, f"max_ai_{what}") for what in ("calls", "tokens", "cost")}
    for period in PERIODS:
        budgets |= {f"max_ai_{what}_per_{period}": most for what, most in settings.of_period(period).items()}
    said = [name for name, most in budgets.items() if most is not None]
    said += [name for name in ("canary", "dedupe", "salt_table") if getattr(settings, name) is not None]
    if said:
        raise NeedsAdapter(f"macros do not follow {', '.join(said)}")
    return settings


def round_args(calls: Sequence[AiCall], runner: AiRunner) -> dict[str, Any]:
    """The statements of one round: what there is to ask (`counts`, one row), the INSERT that says which answers the project
    uses, and an INSERT … SELECT for each call site."""
    from spark_mv.ai.native import insert_columns, insert_sql
    from spark_mv.ai.pending import pending_sql
    from spark_mv.ai.results import COLUMN_NAMES, used_columns

    table, settings, project = runner.context.results_table, runner.settings, runner.project
    pending = pending_sql(calls, table, settings, ASKED_AT, project)
    missing = ", ".join(f"count_if(state = 'missing' AND site = {k}) AS missing_{k}" for k, _ in enumerate(calls))
    counts = (
        f"SELECT {missing}, count_if(state NOT IN ('missing', 'reused')) AS waiting, count_if(unclaimed) AS unclaimed "
        f"FROM ({pending}) AS p"
    )
    claims = ", ".join(used_columns(INVOCATION, project))
    columns = [insert_columns(call, INVOCATION, settings, project) for call in calls]
    return {
        "counts": counts,
        "claims": f"INSERT INTO {table} ({', '.join(COLUMN_NAMES)})\nSELECT {claims}\nFROM (\n{pending}\n) AS p WHERE unclaimed",
        "inserts": [insert_sql(number, texts, pending, table) for number, texts in enumerate(columns)],
    }


def result_table_of(runner: AiRunner) -> dict[str, Any]:
    """The result table, which a run makes where it is missing."""
    from spark_mv.ai.results import COLUMN_NAMES, create_sql

    table = runner.context.results_table
    return {"table": table, "create": create_sql(table), "columns": list(COLUMN_NAMES)}
