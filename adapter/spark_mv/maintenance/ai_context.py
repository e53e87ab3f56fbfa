"""AI calls taken out of a SELECT: what that needs to know of the result table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_mv.query.syntax.query_error import QueryError

if TYPE_CHECKING:  # loaded by models with AI calls only
    from spark_mv.query.ai_calls.ai_plan import AiPlan
    from spark_mv.query.ai_calls.kept_answers import KeptAnswers


@dataclass(frozen=True)
class AiContext:
    """The result table and the identity (model, version…) of the answers; `functions` are the project's own."""

    results_table: str
    identity: Any
    functions: Any
    failing_keys: tuple[str, ...] = ()  # unique_key, under on_ai_error: keep_old
    kept: KeptAnswers | None = None  # where the model has frozen columns
    only_unanswered: bool = False
    """on_model_change: keep. A budget shows older answers as well, and asks for the new model's."""

    @property
    def identity_text(self) -> str:
        """What of the settings decides which answers are shown; part of the configuration's fingerprint."""
        steps = getattr(self.identity, "cascade", ())
        shared = "".join(f" {status}" for status in getattr(self.identity, "shared", ()))
        return (
            repr(self.identity)
            + (f" {steps!r}" if steps else "")
            + shared
            + (" keep_old" if self.failing_keys else "")
            + (" only_unanswered" if self.only_unanswered else "")
        )


def with_answers(
    sql: str, schemas: Mapping[str, Mapping[str, str]], ai: AiContext | None, whole: bool = False
) -> tuple[str, AiPlan | None, tuple[QueryError, ...]]:
    """The SELECT that reads answers where `sql` calls AI functions, the plan of these calls, and what keeps them from being
    taken out. Without a context, there are none. `whole`: it is the model's own SELECT, of which is asked what it may be asked."""
    if ai is None:
        return sql, None, ()
    from spark_mv.query.ai_calls.ai_plan import plan_ai

    plan = plan_ai(
        sql,
        results_table=ai.results_table,
        identity=ai.identity,
        schemas=schemas,
        functions=ai.functions,
        failing_keys=ai.failing_keys if whole else (),
        kept=ai.kept,
    )
    return plan.sql, plan, plan.errors
