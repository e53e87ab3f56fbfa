"""A round's work cut to measure: how many partitions, which limits and budget for each, what they are sent."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from spark_mv.ai.limits import Share, interval, part
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.providers.registry import provider_class
from spark_mv.ai.retry import Retries
from spark_mv.ai.schemas import json_schema_of, value_kind
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.worker import PartitionJob, Site
from spark_mv.query.ai_calls.ai_plan import AiCall

_GUARD = threading.Lock()
_LOCKS: dict[tuple[str, str | None], threading.RLock] = {}
_LAST_USED: dict[tuple[str, str | None], float] = {}


def endpoint_lock(settings: AiSettings) -> threading.RLock:
    """One round at a time per endpoint in this process: dbt's threads share its limits and budgets, and never pay a text twice."""
    with _GUARD:
        return _LOCKS.setdefault((settings.provider, settings.base_url), threading.RLock())


def note_use(settings: AiSettings) -> None:
    """Remembers that the endpoint was used until now, for the pace of what comes next."""
    _LAST_USED[settings.provider, settings.base_url] = time.time()


def build_job(calls: Sequence[AiCall], settings: AiSettings, invocation_id: str, project: str = "") -> PartitionJob:
    """The job without its shares. Raises AiConfigError when the provider cannot be loaded."""
    return PartitionJob(
        provider=provider_class(settings.provider),
        provider_settings=settings.for_provider(),
        sites=tuple(site_of(c) for c in calls),
        shares=(),
        invocation_id=invocation_id,
        project=project,
        max_attempts=settings.max_attempts,
        retries=Retries(settings.retry_errors_times, settings.retry_errors_after_hours * 3600),
        keep_requests=settings.keep_requests,
        split_bytes=settings.split_bytes,
        prices={model: settings.price_of(model).direct for call in calls for model in call.models},
    )


def with_shares(
    job: PartitionJob,
    settings: AiSettings,
    partitions: int,
    spent: AiOutcome,
    deadline: float | None,
    planned: int = 0,
    not_before: float = 0.0,
) -> PartitionJob:
    """The job with limits and what is left of the budget divided among the partitions. `planned` inputs are to be asked, each at least once: what
    the budget of calls has beyond them is for asking again. The first request is sent no sooner than `not_before`, in seconds since the epoch."""
    last = _LAST_USED.get((settings.provider, settings.base_url), 0.0)
    tokens = settings.max_ai_tokens
    if tokens is not None:
        tokens = max(0, tokens - spent.input_tokens - spent.output_tokens)
    cost = None if settings.max_ai_cost is None else max(0.0, settings.max_ai_cost - spent.cost)
    calls = repeats = None
    if settings.max_ai_calls is not None:
        left = max(0, settings.max_ai_calls - spent.charged_calls)
        if any(site.cascade for site in job.sites):
            calls = left
        else:
            repeats = max(0, left - planned)
    shares = []
    for number in range(partitions):
        rpm = part(settings.requests_per_minute, number, partitions)
        shares.append(
            Share(
                requests_per_minute=rpm,
                tokens_per_minute=part(settings.tokens_per_minute, number, partitions),
                concurrency=part(settings.concurrency, number, partitions) or 1,
                # two intervals after the last request of all: the window over both chunks keeps the limit, too
                start_after=max(not_before, last + 2 * interval(rpm) if last else 0.0),
                tokens=part(tokens, number, partitions),
                cost=None if cost is None else cost / partitions,
                input_price=max((p[0] for p in job.prices.values()), default=0.0),
                output_price=max((p[1] for p in job.prices.values()), default=0.0),
                prices=dict(job.prices),
                calls=part(calls, number, partitions),
                repeats=part(repeats, number, partitions),
            )
        )
    return replace(job, shares=tuple(shares), deadline=deadline)


def partitions(cores: int, settings: AiSettings, requests: int) -> int:
    """As many as there are cores to run them, requests to fill them, and units of each limit to share."""
    limits = (settings.requests_per_minute, settings.tokens_per_minute)
    if settings.cascade and settings.max_ai_calls:  # the share of each takes an input through all models
        requests = min(requests, settings.max_ai_calls // len(settings.cascade))
    return max(1, min(cores, settings.concurrency, requests, *(n for n in limits if n)))


def ship_by_value(settings: AiSettings) -> None:
    """Workers need no installed spark_mv: pyspark's pickler sends the code itself (a user's provider, too)."""
    from pyspark import cloudpickle

    names = ["spark_mv"]
    if "." in settings.provider:
        names.append(settings.provider.split(".")[0])
    for name in names:
        cloudpickle.register_pickle_by_value(importlib.import_module(name))


def site_of(call: AiCall) -> Site:
    """What the job must know of a call."""
    written = call.response_schema or ""
    ddl = written if written.strip().upper().startswith("STRUCT") else call.answer_type
    typed = call.function in ("ai_query", "ai_filter") or call.prompt is not None
    typed = typed and ddl.upper() != "STRING" and not call.embedding
    return Site(
        function=call.function,
        answer_type=call.answer_type,
        model=call.model,
        model_version=call.model_version,
        identity_hash=call.identity_hash,
        parameters=dict(call.parameters),
        response_schema=call.response_schema,
        type_schema=json_schema_of(ddl) if typed else None,
        kind=value_kind(ddl) if typed else None,
        prompt=call.prompt,
        embedding=call.embedding,
        constant=dict(call.constant),
        cascade=call.cascade,
        prompts=call.prompts,
    )
