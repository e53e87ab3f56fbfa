"""What is known of a batch: the intent before it is submitted, the endpoint's id after, and which inputs it holds.

Two tables hold it, both only ever appended to. `ai_batches` has an event per state: `intended` (about to be submitted),
`submitted` (the endpoint's id is known), then `collected` or `abandoned` (it never reached the endpoint). The furthest
state counts, whatever clocks say. `ai_results` has a row `submitted` per input, written after the intent and before
anything is sent: from then on no run asks for the input, in whatever mode. Any other row with the same batch closes it: the
answer, the error, or `released`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spark_mv.ai.protocol import Request

INTENDED, SENT, COLLECTED, ABANDONED = "intended", "submitted", "collected", "abandoned"

CREATE_WITHIN = 600.0
"""Seconds after its intent within which a batch is created at the endpoint, or never."""
LOST_AFTER = 1800.0
"""Seconds after its intent when a batch that the endpoint does not list was never created: CREATE_WITHIN, the longest
time-out of a request, and a reserve for clocks that differ and for listings that lag."""
LEFT_OUT_FOR = 3600.0
"""Seconds for which a batch that has ended is asked again for answers that it counts and does not hand over."""
GONE_AFTER = 25 * 3600.0
"""Seconds after its intent when a batch that the endpoint does not know any more has ended in any case (its window is 24 h)."""


@dataclass(frozen=True)
class Batch:
    """`intended_at` in seconds since the epoch. `endpoint` is its address, `path` which of its interfaces is asked."""

    key: str
    endpoint: str
    path: str
    model: str
    intended_at: float
    invocation_id: str
    project: str
    remote_id: str | None = None


EXPECTED = "expected"


@dataclass(frozen=True)
class Expected:
    """What an answer is expected to take, as its claim says it (EXPECTED of its site): output tokens, and the prices per 1,000 tokens."""

    output_tokens: int = 0
    input_price: float = 0.0
    output_price: float = 0.0


@dataclass(frozen=True)
class Held:
    """What a batch holds: inputs, and by their claims' estimates the tokens of input and output, and their cost."""

    inputs: int = 0
    tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    @classmethod
    def of(cls, tokens: Iterable[int], each: Expected) -> Held:
        """Of inputs that take so many tokens.

        >>> Held.of([10, 30], Expected(5, 1.0, 2.0))
        Held(inputs=2, tokens=40, output_tokens=10, cost=0.06)
        """
        found = list(tokens)
        output = each.output_tokens * len(found)
        cost = (sum(found) * each.input_price + output * each.output_price) / 1000.0
        return cls(len(found), sum(found), output, cost)

    def __add__(self, other: Held) -> Held:
        a, b = vars(self), vars(other)
        return Held(**{name: a[name] + b[name] for name in a})


@dataclass(frozen=True)
class Claim:
    """An input of a batch, with what it takes to read its answer and to write it down. `failures`: how often it had failed; `tokens` of
    input, estimated."""

    result_key: str
    function: str
    arguments_hash: str
    model: str
    model_version: str
    identity_hash: str
    failures: int
    site: Mapping[str, Any]
    request: str | None = None  # with keep_requests
    tokens: int = 0

    @property
    def expected(self) -> Expected:
        """What its answer is expected to take; nothing in claims of earlier releases."""
        return Expected(**self.site.get(EXPECTED) or {})

    @property
    def prompts(self) -> str:
        """The prompt files that the question is from."""
        return str(self.site.get("prompts") or "")

    def question(self) -> Request:
        """The request without its row's arguments: enough to read a reply."""
        site = self.site
        return Request(
            function=self.function,
            row={},
            constant=site.get("constant") or {},
            answer_type=str(site.get("answer_type", "STRING")),
            model=self.model,
            response_schema=site.get("response_schema"),
            type_schema=site.get("type_schema"),
            kind=site.get("kind"),
            prompt=site.get("prompt"),
            embedding=bool(site.get("embedding")),
        )


@dataclass(frozen=True)
class Room:
    """What may still be submitted: inputs, their bytes, estimated tokens and estimated cost (None: no limit). Prices per 1,000
    tokens; `output_tokens` is what one answer is expected to take."""

    inputs: int
    size: int
    tokens: int | None = None
    cost: float | None = None
    input_price: float = 0.0
    output_price: float = 0.0
    output_tokens: int = 0

    @property
    def each(self) -> Expected:
        """What is expected of each input."""
        return Expected(self.output_tokens, self.input_price, self.output_price)


@dataclass(frozen=True)
class Wanted:
    """An input as it is asked: `text` is its canonical request, `site` the number of its call, `tokens` the estimate of its claim."""

    result_key: str
    text: str
    site: int
    tokens: int = 0


class Store(Protocol):
    """What the machine needs of the warehouse. Every method is one or two statements; each is kept once it returns."""

    def intend(self, batch: Batch) -> None:
        """Write down that the batch is about to be made."""

    def claim(self, batch: Batch, sites: Sequence[int], room: Room) -> list[Wanted]:
        """Mark inputs without answer as the batch's, as many as there is room for, and give those that are nobody else's."""

    def release(self, batch: Batch, kept: Sequence[str] | None = None) -> None:
        """Give back the inputs of the batch that are not answered, all of them or all but `kept` (result keys)."""

    def note(self, batch: Batch, state: str, inputs: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        """Write down the state of the batch, with its `remote_id`."""

    def open(self) -> list[Batch]:
        """The batches of this endpoint that are neither collected nor abandoned, oldest first."""

    def claims(self, batch: Batch) -> list[Claim]:
        """The inputs of the batch that nothing has closed yet."""

    def take_in(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Append rows to the result table."""
