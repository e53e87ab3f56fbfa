"""Which failed inputs are asked again, and when: a refusal is final, an error of the moment waits longer each time."""

from __future__ import annotations

from dataclasses import dataclass

from spark_mv.query.ai_calls.keys import NEAR, RELEASED, SIMILAR, SUBMITTED

OK, ERROR, REFUSED, GIVEN_UP, STALE, USED = "ok", "error", "refused", "given_up", "stale", "used"
"""Status of a row of the result table. `refused` and `given_up` are final: only recompute_ai asks again. `stale` asks for
a new answer, `used` says that another project than the one that paid reads the answer. `submitted` says that a batch holds the
input, `released` that it does no more (spark_mv.ai.batches)."""
FAILED = (ERROR, REFUSED, GIVEN_UP)
UNDER_WAY = (SUBMITTED, RELEASED)
"""Rows about batches, which say nothing of an answer."""
MARKS = (STALE, USED, NEAR, SIMILAR, *UNDER_WAY)
"""Rows of which nobody was asked: neither an answer that was given nor an error."""

FINAL_CLASSES = frozenset({"refused"})
"""The endpoint will not answer this input: content policy, invalid input, too long."""
COUNTED_CLASSES = frozenset(
    {"rate_limit", "server", "timeout", "connection", "invalid_answer", "provider_bug", "batch"}
)
"""Errors that may pass. All others (a wrong key, a missing package, a used-up budget) are not the input's: the next run asks."""
PAID_CLASSES = frozenset({"invalid_answer"})
"""Errors that were paid for, so that even the first repetition waits."""


@dataclass(frozen=True)
class Retries:
    """How often an input is asked again by later runs, and `first` how long the second of these waits at least (seconds);
    each further one waits twice as long. The first is up to the next run: no other model of the same invocation asks."""

    times: int
    first: float

    def fate(self, error_class: str, failures: int, at: float) -> tuple[str, float | None]:
        """Status and instant of the next attempt (seconds since the epoch, None: never) of an input that failed `at` this
        time, and had failed so often before.

        >>> Retries(2, 3600).fate("server", 0, 0.0), Retries(2, 3600).fate("server", 1, 0.0)
        (('error', 0.0), ('error', 3600.0))
        >>> Retries(2, 3600).fate("server", 2, 0.0), Retries(2, 3600).fate("refused", 0, 0.0)
        (('given_up', None), ('refused', None))
        """
        if error_class in FINAL_CLASSES:
            return REFUSED, None
        if error_class not in COUNTED_CLASSES:
            return ERROR, at
        if failures >= self.times:
            return GIVEN_UP, None
        waits = failures + (error_class in PAID_CLASSES)
        return ERROR, at + (self.first * 2.0 ** (waits - 1) if waits else 0.0)
