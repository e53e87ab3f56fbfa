"""Submitting what is missing: the intent is written down before anything is sent, the endpoint's id after.

Whatever step the process dies at, each input is in at most one batch that the endpoint runs: claims are kept before the
file goes out, a batch is created at most once per key, and where it is in doubt whether it was, `collect` looks for the key at
the endpoint before anything is given back.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spark_mv.ai.asking import LONGEST_MESSAGE, Outcome
from spark_mv.ai.batches.lines import request_line
from spark_mv.ai.batches.remote import BatchEndpoint
from spark_mv.ai.batches.rows import ROWS, Terms, row_of
from spark_mv.ai.batches.state import ABANDONED, CREATE_WITHIN, SENT, Batch, Held, Room, Store, Wanted
from spark_mv.ai.here import counted
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.protocol import ProviderError, Request

_IN_DOUBT = frozenset({"server", "timeout", "connection"})
"""After these, a batch may have been created all the same."""


_OF_THE_GROUP = frozenset({"refused", "unsupported"})
"""After these, the endpoint makes no batch of this model or interface; of others it may."""


@dataclass(frozen=True)
class Submitted:
    """`held` is what one batch holds, of which a budget is charged; `failed` inputs of which no request could be made: they have their errors
    by now. `error` where nothing was submitted, or nobody knows whether it was; `others` may be submitted all the same."""

    held: Held = field(default_factory=Held)
    failed: AiOutcome = field(default_factory=AiOutcome)
    error: str = ""
    others: bool = False

    @property
    def inputs(self) -> int:
        """All that a budget of calls is charged for."""
        return self.held.inputs + self.failed.calls


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
    terms: Terms,
    now: Callable[[], float] = time.time,
) -> Submitted:
    """One batch of the group's missing inputs, as far as there is room. Nothing of it raises ProviderError."""
    key = uuid.uuid4().hex
    batch = Batch(key, address, group.path, group.model, now(), invocation_id, project)
    store.intend(batch)
    wanted = store.claim(batch, group.sites, room)
    lines, unmade = _lines(wanted, requests)
    failed = _close(store, batch, unmade, terms, now())
    if not lines:
        store.note(batch, ABANDONED)
        return Submitted(failed=failed)
    held = Held.of([one.tokens for one in wanted if one.result_key in lines], room.each)
    try:
        file = endpoint.upload(key, b"".join(line + b"\n" for line in lines.values()))
    except ProviderError as error:  # a file alone makes nothing run
        return _given_up(store, batch, terms.clean(error.message), failed)
    if now() - batch.intended_at > CREATE_WITHIN:
        return _given_up(store, batch, "the upload took too long", failed)
    try:
        remote = endpoint.create(key, file, group.path)
    except ProviderError as error:
        said = terms.clean(error.message)
        if error.kind in _IN_DOUBT:
            return Submitted(
                held, failed, f"whether the endpoint made the batch is not known ({said}); a later run looks"
            )
        return _given_up(store, batch, said, failed, others=error.kind in _OF_THE_GROUP)
    store.note(replace(batch, remote_id=remote), SENT, held.inputs, held.tokens + held.output_tokens, held.cost)
    return Submitted(held, failed)


def _lines(
    wanted: Sequence[Wanted], requests: Callable[[Wanted], Request]
) -> tuple[dict[str, bytes], dict[str, ProviderError]]:
    """By result key, the line of each input, or why there is none."""
    lines: dict[str, bytes] = {}
    unmade: dict[str, ProviderError] = {}
    for one in wanted:
        try:
            lines[one.result_key] = request_line(one.result_key, requests(one))
        except ProviderError as error:
            unmade[one.result_key] = error
    return lines, unmade


def _close(store: Store, batch: Batch, unmade: Mapping[str, ProviderError], terms: Terms, at: float) -> AiOutcome:
    """Writes down why these inputs cannot be asked, as asking them directly does: else each run would claim them again."""
    failed, rows = AiOutcome(), []
    for claim in store.claims(batch) if unmade else ():
        if error := unmade.get(claim.result_key):
            said = terms.clean(error.message)[:LONGEST_MESSAGE]
            outcome = Outcome(None, error.kind, said, 1, 0, 0, at)
            rows.append(row_of(batch, claim, outcome, terms))
            failed += counted(outcome, rows[-1])
    for first in range(0, len(rows), ROWS):
        store.take_in(rows[first : first + ROWS])
    return failed


def _given_up(store: Store, batch: Batch, why: str, failed: AiOutcome, others: bool = False) -> Submitted:
    store.release(batch)
    store.note(batch, ABANDONED)
    return Submitted(failed=failed, error=why, others=others)
