"""Submitting what is missing: the intent is written down before anything is sent, the endpoint's id after.

Whatever step the process dies at, each input is in at most one batch that the endpoint runs: claims are kept before the
file goes out, a batch is created at most once per key, and where it is in doubt whether it was, `collect` looks for the key at
the endpoint before anything is given back.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from spark_mv.ai.asking import estimate_tokens
from spark_mv.ai.batches.lines import request_line
from spark_mv.ai.batches.remote import BatchEndpoint
from spark_mv.ai.batches.state import ABANDONED, CREATE_WITHIN, SENT, Batch, Room, Store, Wanted
from spark_mv.ai.protocol import ProviderError, Request

_IN_DOUBT = frozenset({"server", "timeout", "connection"})
"""After these, a batch may have been created all the same."""


@dataclass(frozen=True)
class Submitted:
    """What one batch holds: inputs, estimated tokens and cost; `error` where it was not submitted, or nobody knows."""

    inputs: int = 0
    tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    error: str = ""

    def __add__(self, other: Submitted) -> Submitted:
        return Submitted(
            self.inputs + other.inputs,
            self.tokens + other.tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )


@dataclass(frozen=True)
class Group:
    """Calls that may stand in one batch: of one model and one of the endpoint's interfaces. `sites` are their numbers."""

    path: str
    model: str
    sites: tuple[int, ...]


def submit(
    store: Store,
    endpoint: BatchEndpoint,
    group: Group,
    room: Room,
    requests: Callable[[Wanted], Request],
    *,
    address: str,
    invocation_id: str,
    project: str,
    clean: Callable[[str], str] = str,
    now: Callable[[], float] = time.time,
) -> Submitted:
    """One batch of the group's missing inputs, as far as there is room. Nothing of it raises ProviderError."""
    key = uuid.uuid4().hex
    batch = Batch(key, address, group.path, group.model, now(), invocation_id, project)
    store.intend(batch)
    wanted = store.claim(batch, group.sites, room)
    if not wanted:
        store.note(batch, ABANDONED)
        return Submitted()
    asked = {one.result_key: requests(one) for one in wanted}
    lines, unasked = _lines(asked)
    if not lines:
        return _given_up(store, batch, f"{len(unasked):,} requests cannot be made")
    if unasked:
        store.release(batch, list(lines))
    try:
        file = endpoint.upload(key, ("\n".join(lines.values()) + "\n").encode())
    except ProviderError as error:  # a file alone makes nothing run
        return _given_up(store, batch, clean(error.message))
    if now() - batch.intended_at > CREATE_WITHIN:
        return _given_up(store, batch, "the upload took too long")
    try:
        remote = endpoint.create(key, file, group.path)
    except ProviderError as error:
        said = clean(error.message)
        if error.kind in _IN_DOUBT:
            return Submitted(
                len(lines), error=f"whether the endpoint made the batch is not known ({said}); a later run looks"
            )
        return _given_up(store, batch, said)
    done = _sizes(asked, lines, room)
    store.note(replace(batch, remote_id=remote), SENT, done.inputs, done.tokens + done.output_tokens, done.cost)
    return done


def _lines(asked: Mapping[str, Request]) -> tuple[dict[str, str], Sequence[str]]:
    """The line of each request, and the keys of those that make none (a prompt that cannot be built)."""
    lines: dict[str, str] = {}
    unasked: list[str] = []
    for key, request in asked.items():
        try:
            lines[key] = request_line(key, request)
        except ProviderError:
            unasked.append(key)
    return lines, unasked


def _given_up(store: Store, batch: Batch, why: str) -> Submitted:
    store.release(batch)
    store.note(batch, ABANDONED)
    return Submitted(error=why)


def _sizes(asked: Mapping[str, Request], lines: Mapping[str, str], room: Room) -> Submitted:
    tokens = sum(estimate_tokens(asked[key]) for key in lines)
    output = room.output_tokens * len(lines)
    cost = (tokens * room.input_price + output * room.output_price) / 1000.0
    return Submitted(len(lines), tokens, output, cost)
