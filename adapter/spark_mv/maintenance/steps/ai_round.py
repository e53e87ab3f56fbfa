"""The steps that ask for AI answers, round after round, before the statement that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spark_mv.maintenance.plan import Step

if TYPE_CHECKING:  # loaded by models with AI calls only
    from spark_mv.query.ai_calls.ai_plan import AiCall


def ai_steps(rounds: Sequence[tuple[AiCall, ...]]) -> list[Step]:
    """A later round reads answers of earlier ones."""
    return [Step("ai_round", {"calls": calls}) for calls in rounds]
