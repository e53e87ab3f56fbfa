"""Near duplicates by meaning: of texts whose vectors are nearer than a threshold, one is asked.

Vectors are those of ai_embed by the provider `local`, kept in the result table like any answer. Which text is asked for which other one is
written down before anything is asked: a row `linked` that gives the input the near_key of the other one (see dedupe).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.pending import pending_sql
from spark_mv.ai.results import COLUMNS, insert_rows, timestamp
from spark_mv.ai.settings import AiSettings
from spark_mv.query.ai_calls.ai_plan import AiCall, plan_ai
from spark_mv.query.ai_calls.keys import LINKED

COMPARED = frozenset({"ai_classify", "ai_analyze_sentiment", "ai_filter"})
"""Functions whose answer is a label: two orders that differ in their number alone are near, and one's fields are not the other's."""
MOST_BYTES = 1000
"""Of a text that is compared: the model reads 256 word pieces, and what differs behind them would be equal."""
MOST_INPUTS = 20_000
"""Of one call, whose vectors dbt's process holds."""
_INSERT = 500
_TEXTS = "__mv_texts"

Execute = Callable[[str], Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class Input:
    """An input of a call with its vector of length 1. `fixed`: it is answered or under way, so that others may follow it but it follows none."""

    key: str
    near_key: str
    fixed: bool
    vector: Sequence[float]


@dataclass(frozen=True)
class Link:
    """`key` gets the answer to `leader`, whose near_key it takes."""

    key: str
    leader: str
    near_key: str
    similarity: float


def links_of(inputs: Iterable[Input], threshold: float) -> list[Link]:
    """Who follows whom: in the order of the keys, each input follows the nearest one before it (those that are fixed come first) that
    follows nobody itself, if their cosine reaches the threshold. So no two that are linked are less near than that."""
    import numpy as np

    ordered = sorted(inputs, key=lambda one: (not one.fixed, one.key))
    if not ordered:
        return []
    vectors = np.asarray([one.vector for one in ordered], dtype=np.float32)
    leading = np.zeros(len(ordered), dtype=bool)
    found = []
    for number, one in enumerate(ordered):
        if not one.fixed and leading[:number].any():
            scores = np.where(leading[:number], vectors[:number] @ vectors[number], -2.0)
            best = int(scores.argmax())
            if scores[best] >= threshold:
                found.append(Link(one.key, ordered[best].key, ordered[best].near_key, round(float(scores[best]), 6)))
                continue
        leading[number] = True
    return found


def link(
    execute: Execute,
    ask: Callable[[Sequence[AiCall]], AiOutcome],
    calls: Sequence[AiCall],
    settings: AiSettings,
    local: AiSettings,
    results_table: str,
    invocation_id: str,
    project: str,
) -> tuple[int, list[str]]:
    """Links the missing inputs of these calls to near ones: how many, and what the user is to be told. `ask` asks for the vectors, by
    the settings `local`."""
    sites = [n for n, call in enumerate(calls) if call.function in COMPARED and list(call.row_arguments) == ["content"]]
    if settings.dedupe is None or settings.dedupe.semantic is None or not sites:
        return 0, []
    pending = pending_sql(calls, results_table, settings, timestamp(time.time()))
    counted = execute(
        f"SELECT site, count(*), count_if(state = 'missing') FROM ({pending}) AS p WHERE state IN ('missing', 'reused', 'submitted') GROUP BY site"
    )
    sizes = {int(site): (int(number), int(missing)) for site, number, missing in counted}
    due = [n for n in sites if sizes.get(n, (0, 0))[1] and sizes[n][0] > 1]
    said = [
        f"dedupe: {calls[n].function} (line {calls[n].line}) has {sizes[n][0]:,} inputs, more than the {MOST_INPUTS:,} that are compared by meaning"
        for n in due
        if sizes[n][0] > MOST_INPUTS
    ]
    number = 0
    for site in due:
        if sizes[site][0] > MOST_INPUTS:
            continue
        rows, outcome = _vectors(execute, ask, pending, site, local, results_table)
        if outcome.errors:
            said.append(
                f"dedupe: {outcome.errors:,} texts have no vector, so they are compared with none ({outcome.error_example})"
            )
        hashes = {str(row[0]): str(row[3]) for row in rows}
        inputs = [Input(str(r[0]), str(r[1]), r[2] != "missing", json.loads(r[4])) for r in rows if r[4]]
        found = links_of(inputs, settings.dedupe.semantic)
        _keep(execute, calls[site], found, hashes, results_table, invocation_id, project)
        number += len(found)
    return number, said


def _vectors(
    execute: Execute,
    ask: Callable[[Sequence[AiCall]], AiOutcome],
    pending: str,
    site: int,
    local: AiSettings,
    results_table: str,
) -> tuple[Sequence[Sequence[Any]], AiOutcome]:
    """Rows of result_key, near_key, state, arguments_hash and vector (JSON) of a call's inputs."""
    texts = (
        "(SELECT result_key, near_key, state, sha2(request, 256) AS arguments_hash, get_json_object(request, '$.row[0].content') AS body "
        f"FROM ({pending}) AS p WHERE site = {site} AND state IN ('missing', 'reused', 'submitted'))"
    )
    plan = plan_ai(
        f"SELECT result_key, near_key, state, arguments_hash, ai_embed(body) AS vector FROM {_TEXTS} AS t WHERE octet_length(body) <= {MOST_BYTES}",
        results_table=results_table,
        identity=local.identity(),
    )
    outcome = AiOutcome()
    for calls in plan.rounds:
        outcome += ask([_over(call, texts) for call in calls])
    rows = execute(
        f"SELECT result_key, near_key, state, arguments_hash, to_json(vector) FROM ({plan.sql.replace(_TEXTS, texts)}) AS v"
    )
    return rows, outcome


def _over(call: AiCall, texts: str) -> AiCall:
    return replace(call, request_sql=call.request_sql.replace(_TEXTS, texts))


def _keep(
    execute: Execute,
    call: AiCall,
    links: Sequence[Link],
    hashes: dict[str, str],
    results_table: str,
    invocation_id: str,
    project: str,
) -> None:
    rows = []
    for one in links:
        given = {
            "result_key": one.key,
            "function": call.function,
            "arguments_hash": hashes[one.key],
            "model": call.model,
            "model_version": call.model_version,
            "identity_hash": call.identity_hash,
            "status": LINKED,
            "value": repr(one.similarity),
            "attempts": 0,
            "called_at": time.time(),
            "invocation_id": invocation_id,
            "project": project or None,
            "near_key": one.near_key,
            "answered_by": one.leader,
        }
        rows.append(tuple(given.get(name) for name, _, _ in COLUMNS))
    for start in range(0, len(rows), _INSERT):
        execute(insert_rows(results_table, COLUMNS, rows[start : start + _INSERT]))
