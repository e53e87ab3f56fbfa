"""The sample of a canary as SQL over the result table: inputs that another model (or version, prompt, cascade) has answered."""

from __future__ import annotations

from collections.abc import Iterable

from spark_mv.ai.canary import FAILED as IN_VAIN
from spark_mv.ai.canary import OK as ANSWERED
from spark_mv.ai.canary import WAITS
from spark_mv.ai.retry import FAILED, GIVEN_UP, PAID_CLASSES, REFUSED
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.syntax.source_text import string_literal as quote

FREE_TEXT = frozenset(
    {"ai_gen", "ai_summarize", "ai_translate", "ai_fix_grammar", "ai_mask", "ai_agg", "ai_summarize_agg"}
)
CLOSED = frozenset({"ai_classify", "ai_analyze_sentiment", "ai_filter"})
"""Functions whose answers are labels, which an error may show."""


def comparable(call: AiCall) -> bool:
    """Whether equal answers are to be expected of models that agree: not of free text, nor of vectors."""
    text = call.function == "ai_query" and call.answer_type.upper() == "STRING" and not call.response_schema
    return not (call.embedding or text or call.function in FREE_TEXT)


def due_sql(call: AiCall, results_table: str) -> str:
    """How many of the call's inputs others have answered, and this model has neither answered nor failed for good."""
    asked = f"SELECT result_key FROM {results_table} WHERE {_mine(call)} AND status IN ({_listed((*call.answered, REFUSED, GIVEN_UP))})"
    return (
        f"SELECT count(*) FROM ({call.request_sql}) AS q JOIN ({_before(call, results_table)}) AS o ON o.hash = q.arguments_hash "
        f"LEFT ANTI JOIN ({asked}) AS m ON m.result_key = q.result_key"
    )


def sample_sql(call: AiCall, results_table: str, inputs: int) -> str:
    """The requests of the sample: by their keys, which are hashes, so that it is a random one and the next run's, too."""
    return (
        f"SELECT q.result_key, q.function, q.arguments_hash, q.request FROM ({call.request_sql}) AS q "
        f"JOIN ({_before(call, results_table)}) AS o ON o.hash = q.arguments_hash ORDER BY q.result_key LIMIT {inputs}"
    )


def compared_sql(call: AiCall, results_table: str, inputs: int) -> str:
    """Rows for Compared.of: answer before, answer now, state, who answered before, number."""
    mine = (
        f"SELECT result_key, max_by(struct(status, value, error_class), called_at) AS now FROM {results_table} "
        f"WHERE {_mine(call)} AND status IN ({_listed((*call.answered, *FAILED))}) GROUP BY 1"
    )
    in_vain = f"n.now.status IN ({_listed((REFUSED, GIVEN_UP))}) OR n.now.error_class IN ({_listed(PAID_CLASSES)})"
    state = f"CASE WHEN n.now.status IN ({_listed(call.answered)}) THEN '{ANSWERED}' WHEN {in_vain} THEN '{IN_VAIN}' ELSE '{WAITS}' END"
    return (
        f"SELECT o.answer.value AS before, n.now.value AS now, {state} AS state, o.answer.who AS who, count(*) AS number "
        f"FROM ({sample_sql(call, results_table, inputs)}) AS s "
        f"JOIN ({_before(call, results_table)}) AS o ON o.hash = s.arguments_hash "
        f"LEFT JOIN ({mine}) AS n ON n.result_key = s.result_key GROUP BY ALL"
    )


def _before(call: AiCall, results_table: str) -> str:
    who = "if(model_version = model, model, concat(model, ' (', model_version, ')'))"
    return (
        f"SELECT arguments_hash AS hash, max_by(struct(value, {who} AS who), called_at) AS answer FROM {results_table} "
        f"WHERE function = {quote(call.function)} AND status = 'ok' AND identity_hash <> {quote(call.identity_hash)} AND ({call.earlier}) GROUP BY 1"
    )


def _mine(call: AiCall) -> str:
    return f"function = {quote(call.function)} AND identity_hash = {quote(call.identity_hash)}"


def _listed(values: Iterable[str]) -> str:
    return ", ".join(quote(value) for value in sorted(values))
