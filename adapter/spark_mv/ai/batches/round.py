"""A round of AI calls by batches: takes in what has come, submits what is missing, waits where it is told to."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from spark_mv.ai.batches.collect import Collected, collect
from spark_mv.ai.batches.lines import path_of
from spark_mv.ai.batches.remote import BatchEndpoint
from spark_mv.ai.batches.rows import Terms
from spark_mv.ai.batches.state import Held, Room, Wanted
from spark_mv.ai.batches.store import Execute, SqlStore, batches_table, create_batches_sql
from spark_mv.ai.batches.submit import Group, submit
from spark_mv.ai.expected import expected_output
from spark_mv.ai.job import call_limit, failed_before
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.pending import counts_sql, pending_sql
from spark_mv.ai.protocol import Request
from spark_mv.ai.results import timestamp, used_columns
from spark_mv.ai.retry import Retries
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.shared import share_near
from spark_mv.ai.work import endpoint_lock, site_of
from spark_mv.maintenance.format_version import ask_format, check_rows
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import SUBMITTED
from spark_mv.query.ai_calls.signatures import VECTORS

_BYTES = 64 << 20
"""Of one batch's requests, which dbt's process holds at once; endpoints take 200 MB."""
_DEFAULT_ADDRESS = "the openai package's default"


@dataclass(frozen=True)
class Place:
    """Where answers and batches are kept, and who asks. `say` tells the user a line. `file_format` of a table that is made."""

    execute: Execute
    results_table: str
    settings: AiSettings
    invocation_id: str
    project: str = ""
    say: Callable[[str], None] = print
    now: Callable[[], float] = time.time
    file_format: str = "delta"
    create: Callable[[str, str], object] | None = None
    """Makes the table of that name by its CREATE TABLE IF NOT EXISTS, where more than sending it is needed."""

    @property
    def address(self) -> str:
        """The endpoint's address without what may be secret in it."""
        parts = urlsplit(self.settings.base_url or "")
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path.rstrip('/')}" if host else _DEFAULT_ADDRESS

    def make_table(self) -> None:
        """The table of batches is there from now on. Raises RefusedError for that of a later release."""
        statement, table = create_batches_sql(self.results_table, self.file_format), batches_table(self.results_table)
        if self.create is None:
            self.execute(statement)
        else:
            self.create(table, statement)
        check_rows(table, self.execute(ask_format(table)))

    def endpoint(self) -> BatchEndpoint:
        """The endpoint's files and batches."""
        return BatchEndpoint(self.settings.for_provider())

    def store(self, calls: Sequence[AiCall] = ()) -> SqlStore:
        """The tables."""
        return SqlStore(self.execute, self.results_table, self.settings, self.address, calls, self.now)

    def terms(self) -> Terms:
        """How answers are written down."""
        settings = self.settings
        return Terms(
            retries=Retries(settings.retry_errors_times, settings.retry_errors_after_hours * 3600),
            prices=lambda model: settings.price_of(model).in_batch(settings.batch_price_factor),
            clean=settings.for_provider().cleaned,
        )


def batchable(call: AiCall) -> bool:
    """Whether one request of a batch answers one input. A similarity takes two vectors and is asked directly; so is what no model gives a vector
    for, which says by its first inputs what is wrong with it."""
    return call.function != "ai_similarity" and (call.embedding or call.function not in VECTORS)


def collect_batches(place: Place, gone: Sequence[str] = ()) -> Collected:
    """Takes in what has come, of any model. The table of batches must be there. `gone`: see collect."""
    found = collect(place.store(), place.endpoint(), place.terms(), now=place.now, gone=gone)
    for note in found.notes:
        place.say(note)
    if found.batches:
        cost = f", {found.cost:,.4f} of cost" if found.cost else ""
        place.say(
            f"{found.answers:,} answers and {found.errors:,} errors taken in from {found.batches:,} batches{cost}"
        )
    return found


def run_ai_round_in_batches(place: Place, calls: Sequence[AiCall], spent: AiOutcome | None = None) -> AiOutcome | None:
    """Collects, submits what is missing within the budgets, and waits up to `wait_minutes`. `calls` must be batchable.

    None where `mode` is auto and so few answers are missing that they are better asked directly.
    """
    settings, spent = place.settings, spent or AiOutcome()
    with endpoint_lock(settings):
        place.make_table()
        collected = collect_batches(place)
        counts, rows = _counts(place, calls)
        if any(row[4] for row in rows):
            pending = pending_sql(calls, place.results_table, settings, timestamp(place.now()), place.project)
            claims = ", ".join(used_columns(place.invocation_id, place.project))
            place.execute(f"INSERT INTO {place.results_table} SELECT {claims} FROM ({pending}) AS p WHERE unclaimed")
        missing = counts.get("missing", 0)
        if settings.mode == "auto" and missing < settings.batch_from:
            return None
        done = _submit_all(place, calls, missing, spent)
        if done.sent:
            place.say(f"{done.sent:,} inputs submitted in batches, to be collected by a later run or by collect_ai")
        if settings.wait_minutes and (done.held.inputs or collected.waiting):
            collected += _wait(place)
        counts, rows = _counts(place, calls)
        near = share_near(
            place.execute, counts, calls, settings, place.results_table, place.invocation_id, place.project, place.now()
        )
    left, held, failed = counts.get("missing", 0), done.held, done.failed
    found = AiOutcome(
        requested=sum(counts.values()),
        reused=counts.get("reused", 0),
        under_way=counts.get(SUBMITTED, 0),
        submitted=held.inputs,
        collected=collected.answers + collected.errors,
        left_for_later=left,
        input_tokens=held.tokens,
        output_tokens=held.output_tokens,
        cost=held.cost,
        message=done.message if left else "",
        **failed_before(counts, [row[3] for row in rows]),
    )
    # what failed just now was counted as having failed before
    blocked, refused = found.blocked - failed.errors, found.refused - failed.gave_up
    return near + replace(found, blocked=max(0, blocked), refused=max(0, refused)) + failed


def _counts(place: Place, calls: Sequence[AiCall]) -> tuple[dict[str, int], Sequence[Sequence[object]]]:
    now = timestamp(place.now())
    rows = place.execute(
        counts_sql(calls, place.results_table, place.settings, now, place.project, place.invocation_id)
    )
    return {str(row[0]): int(row[1]) for row in rows}, rows


@dataclass(frozen=True)
class _Done:
    """What a round holds in batches, `sent` inputs of it for sure, what failed, and why it ended before all was submitted."""

    held: Held = field(default_factory=Held)
    sent: int = 0
    failed: AiOutcome = field(default_factory=AiOutcome)
    message: str = ""

    @property
    def inputs(self) -> int:
        """As a budget of calls counts them."""
        return self.held.inputs + self.failed.calls


def _submit_all(place: Place, calls: Sequence[AiCall], missing: int, spent: AiOutcome) -> _Done:
    """Batch after batch, until nothing is missing or a budget is used up."""
    settings, store, endpoint = place.settings, place.store(calls), place.endpoint()
    done = _Done()
    budget = None if settings.max_ai_calls is None else max(0, settings.max_ai_calls - spent.charged_calls)
    most = missing if budget is None else budget
    for group in groups(calls):
        output = expected_output(place.execute, place.results_table, group.model, [calls[n] for n in group.sites])
        while done.inputs < min(missing, most):
            found = submit(
                store,
                endpoint,
                group,
                _room(settings, group, spent, done.held, output, most - done.inputs),
                lambda wanted: _request(calls, wanted),
                address=place.address,
                invocation_id=place.invocation_id,
                project=place.project,
                terms=place.terms(),
                now=place.now,
            )
            sent = 0 if found.error else found.held.inputs
            done = _Done(
                done.held + found.held, done.sent + sent, done.failed + found.failed, found.error or done.message
            )
            if found.error:
                place.say(found.error if found.held.inputs else f"batch of {group.model} not submitted: {found.error}")
                if not found.others:
                    return done
            if found.error or not found.inputs:
                break
    used_up = call_limit(missing, min(missing, most), settings) if done.inputs >= most else ""
    why = used_up or done.message or ("the budget of this run is used up" if done.inputs < missing else "")
    return replace(done, message=why)


def _room(settings: AiSettings, group: Group, spent: AiOutcome, done: Held, output: int, inputs: int) -> Room:
    tokens, cost = settings.max_ai_tokens, settings.max_ai_cost
    prices = settings.price_of(group.model).in_batch(settings.batch_price_factor)
    return Room(
        inputs=min(settings.batch_inputs, inputs),
        size=_BYTES,
        tokens=None if tokens is None else max(0, tokens - spent.tokens - done.tokens - done.output_tokens),
        cost=None if cost is None else max(0.0, cost - spent.cost - done.cost),
        input_price=prices[0],
        output_price=prices[1],
        output_tokens=output,
    )


def _wait(place: Place) -> Collected:
    until, done = time.monotonic() + place.settings.wait_minutes * 60.0, Collected()
    while time.monotonic() < until:
        time.sleep(min(place.settings.batch_poll_seconds, max(0.0, until - time.monotonic())))
        found = collect_batches(place)
        done += found
        if not found.waiting:
            break
    return done


def groups(calls: Sequence[AiCall]) -> list[Group]:
    """The calls of one model and one interface stand in one batch."""
    found: dict[tuple[str, str], list[int]] = {}
    for number, call in enumerate(calls):
        found.setdefault((path_of(call.embedding), call.model), []).append(number)
    return [Group(path, model, tuple(sites)) for (path, model), sites in found.items()]


def _request(calls: Sequence[AiCall], wanted: Wanted) -> Request:
    return site_of(calls[wanted.site]).request(wanted.text)
