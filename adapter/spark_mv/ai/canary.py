"""A canary: some inputs that an older model has answered are asked of the new one first, and how often both say the same decides whether
the others are asked. What the config says of it, and the verdict; plain counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.ai.evaluation import wilson
from spark_mv.query.syntax.nearest import did_you_mean

OK, FAILED, WAITS = "ok", "failed", "waits"
"""Of an input of the sample: answered; asked in vain, so that asking again is of no use by itself; without an answer yet."""
_WORDS = ("inputs", "agreement")
_MOST = 10_000
"""Inputs of a sample, whose answers dbt's process compares."""


@dataclass(frozen=True)
class Canary:
    """So many inputs are compared, and this share of the answers has to be the same."""

    inputs: int
    agreement: float


def problem_of_canary(value: Any) -> str | None:
    """What is wrong with a canary in the config, None if nothing. An empty one is none.

    >>> problem_of_canary({"input": 200})
    "canary has an unknown word 'input' (did you mean 'inputs'?)"
    >>> problem_of_canary({"inputs": 100})
    'canary needs agreement, the share of answers that has to stay the same, e.g. {inputs: 200, agreement: 0.9}'
    """
    form = "{inputs: 200, agreement: 0.9}"
    if not isinstance(value, Mapping):
        return f"canary must be like {form}, not {value!r}"
    for word in value:
        if word not in _WORDS:
            known = did_you_mean(word, _WORDS, f"; it has {', '.join(_WORDS)}")
            return f"canary has an unknown word {word!r}{known}"
    if value and value.get("agreement") is None:
        return f"canary needs agreement, the share of answers that has to stay the same, e.g. {form}"
    try:
        inputs, agreement = int(str(value.get("inputs", 200))), float(str(value.get("agreement", 1)))
    except ValueError:
        return f"canary must have numbers, like {form}, not {dict(value)!r}"
    if not 1 <= inputs <= _MOST:
        return f"canary.inputs must be from 1 to {_MOST:,}, not {inputs}"
    return None if 0.0 < agreement <= 1.0 else f"canary.agreement is a share, above 0 and at most 1, not {agreement:g}"


def canary_of(value: Mapping[str, Any]) -> Canary | None:
    """The canary of the config, see problem_of_canary."""
    return Canary(int(str(value.get("inputs", 200))), float(str(value["agreement"]))) if value else None


@dataclass(frozen=True)
class Compared:
    """Of a sample: how many inputs are answered alike, how many have failed or wait, who answered before, and the pairs of answers
    that differ with how often they came, most often first."""

    n: int
    agreed: int
    failed: int
    waits: int
    before: tuple[str, ...] = ()
    pairs: tuple[tuple[str | None, str | None, int], ...] = ()

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Compared:
        """From rows of compared_sql: answer before, answer now, state, who answered before, number."""
        pairs: Counter[tuple[str | None, str | None]] = Counter()
        states: Counter[str] = Counter()
        for before, now, state, _, number in rows:
            states[state] += int(number)
            if state == OK:
                pairs[before, now] += int(number)
        agreed = sum(number for (before, now), number in pairs.items() if before == now)
        differ = tuple((*pair, number) for pair, number in pairs.most_common() if pair[0] != pair[1])
        who = tuple(sorted({str(row[3]) for row in rows}))
        return cls(sum(states.values()), agreed, states[FAILED], states[WAITS], who, differ)

    def enough(self, agreement: float) -> bool | None:
        """Whether so large a share is the same, whatever the answers will be that are still to come; None: that depends on them.

        >>> Compared(200, 185, 0, 0).enough(0.9), Compared(200, 150, 0, 10).enough(0.9), Compared(200, 175, 0, 10).enough(0.9)
        (True, False, None)
        """
        if self.agreed >= agreement * self.n:
            return True
        return False if self.agreed + self.waits < agreement * self.n else None

    def __str__(self) -> str:
        low, high = wilson(self.agreed, self.n)
        failed = f", {self.failed:,} had no usable answer" if self.failed else ""
        return (
            f"of {self.n:,} inputs that {', '.join(self.before)} had answered, {self.agreed:,} have the same answer "
            f"({self.agreed / self.n:.1%}, 95 % interval {low:.1%} to {high:.1%}{failed})"
        )
