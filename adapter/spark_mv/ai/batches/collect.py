"""Taking in what batches have answered, and finding those again whose process died."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from spark_mv.ai.asking import Outcome
from spark_mv.ai.batches.lines import outcome_of, replies
from spark_mv.ai.batches.remote import BatchEndpoint, RemoteBatch
from spark_mv.ai.batches.rows import ROWS, Terms, row_of
from spark_mv.ai.batches.state import (
    ABANDONED,
    COLLECTED,
    GONE_AFTER,
    LEFT_OUT_FOR,
    LOST_AFTER,
    SENT,
    Batch,
    Claim,
    Held,
    Store,
)
from spark_mv.ai.protocol import ProviderError


@dataclass(frozen=True)
class Collected:
    """`answers` and `errors` were taken in, from `batches` batches that ended; `waiting` batches are under way. Tokens and cost are
    what the endpoint counted. `notes` say what a user should know, `seen` are the endpoint's ids of the batches that were open."""

    batches: int = 0
    waiting: int = 0
    answers: int = 0
    errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    notes: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()

    def __add__(self, other: Collected) -> Collected:
        a, b = vars(self), vars(other)
        return Collected(**{name: a[name] + b[name] for name in a})


def collect(
    store: Store,
    endpoint: BatchEndpoint,
    terms: Terms,
    *,
    now: Callable[[], float] = time.time,
    gone: Sequence[str] = (),
) -> Collected:
    """Takes in every batch of the endpoint that has ended. May be called at any time, by any process, twice at a time: a
    second call finds nothing left, or appends the same rows, of which one counts. `gone`: ids of batches of which a user says that the
    endpoint will not know them any more; one that it does know is taken in as ever."""
    done = Collected()
    for batch in store.open():
        try:
            found = _known(store, endpoint, batch, now())
            done += Collected(seen=(found.remote_id,) if found and found.remote_id else ())
            if found is not None:
                done += _collect(store, endpoint, found, terms, now(), given_up=found.remote_id in gone)
            else:
                done += Collected(waiting=int(now() - batch.intended_at <= LOST_AFTER))
        except ProviderError as error:  # of this batch, now; the others may go on
            done += Collected(waiting=1, notes=(f"batch {batch.remote_id or batch.key}: {terms.clean(error.message)}",))
    return done


def _known(store: Store, endpoint: BatchEndpoint, batch: Batch, at: float) -> Batch | None:
    """The batch with the endpoint's id, None where there is none (yet). What was surely never created is given back."""
    if batch.remote_id is not None:
        return batch
    remote = endpoint.find(batch.key, batch.intended_at - LOST_AFTER)
    if remote is not None:
        batch = replace(batch, remote_id=remote.id)
        claims = store.claims(batch)  # all are expected to take the same
        held = Held.of((claim.tokens for claim in claims), claims[0].expected) if claims else Held()
        store.note(batch, SENT, held.inputs, held.tokens + held.output_tokens, held.cost)
        return batch
    if at - batch.intended_at > LOST_AFTER:
        store.release(batch)
        store.note(batch, ABANDONED)
    return None


def _collect(
    store: Store, endpoint: BatchEndpoint, batch: Batch, terms: Terms, at: float, given_up: bool = False
) -> Collected:
    remote = endpoint.look(batch.remote_id or "")
    if remote is None:
        until = batch.intended_at + GONE_AFTER
        if at <= until and not given_up:
            note = (
                f"batch {batch.remote_id} is not known at {batch.endpoint}. If it is another account's, collect with that account's key; if it is "
                f"gone, its inputs are free from {datetime.fromtimestamp(until, timezone.utc):%Y-%m-%d %H:%M} UTC on, or now by dbt run-operation "
                f"collect_ai --args '{{gone: {batch.remote_id}}}'"
            )
            return Collected(waiting=1, notes=(note,))
        remote = RemoteBatch(batch.remote_id or "", "gone")
    elif not remote.ended:
        return Collected(waiting=1)
    texts = [endpoint.read(file) for file in (remote.output_file, remote.error_file) if file]
    lines = replies(texts)
    ended_at = remote.ended_at or at
    waits = _left_out(remote, lines) and at - ended_at < LEFT_OUT_FOR
    otherwise = f"the batch ended as {remote.status} without an answer to this input"
    otherwise += f" ({terms.clean(remote.error)})" if remote.error else ""
    done = Collected()
    rows: list[tuple[Any, ...]] = []
    claims = [claim for claim in store.claims(batch) if not waits or claim.result_key in lines]
    for claim, outcome in _outcomes(claims, lines, otherwise, ended_at):
        said = replace(outcome, error=terms.clean(outcome.error)) if outcome.error else outcome
        row = row_of(batch, claim, said, terms)
        done += _counted(said, float(row[13]))
        rows.append(row)
        if len(rows) >= ROWS:
            store.take_in(rows)
            rows = []
    if rows:
        store.take_in(rows)
    if waits:
        note = f"batch {remote.id} counts {remote.answered:,} answers and hands over fewer; it is read again later"
        return done + Collected(batches=int(bool(claims)), waiting=1, notes=(note,))
    done += Collected(batches=1)
    store.note(batch, COLLECTED)
    for file in (remote.input_file, remote.output_file, remote.error_file):
        _clear(endpoint, file)
    if remote.status != "completed":
        done += Collected(
            notes=(
                f"batch {remote.id} ended as {remote.status}{f': {terms.clean(remote.error)}' if remote.error else ''}",
            )
        )
    return done


def _outcomes(
    claims: Sequence[Claim], lines: dict[str, list[Any]], otherwise: str, at: float
) -> Iterator[tuple[Claim, Outcome]]:
    for claim in claims:
        yield claim, outcome_of(claim.question(), lines.get(claim.result_key, ()), otherwise, at)


def _left_out(remote: RemoteBatch, lines: dict[str, list[Any]]) -> bool:
    """Whether the endpoint has answered more than its files hold now: these answers were paid."""
    answered = sum(any(isinstance(line.get("response"), dict) for line in found) for found in lines.values())
    return remote.answered > answered


def _counted(outcome: Outcome, cost: float) -> Collected:
    bad = outcome.error_class is not None
    return Collected(
        answers=int(not bad),
        errors=int(bad),
        input_tokens=outcome.input_tokens,
        output_tokens=outcome.output_tokens,
        cost=cost,
    )


def _clear(endpoint: BatchEndpoint, file: str | None) -> None:
    """The texts of rows do not stay at the endpoint once their answers are kept."""
    try:
        if file:
            endpoint.delete(file)
    except ProviderError:
        pass  # the endpoint removes it in its time
