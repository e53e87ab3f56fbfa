"""The threshold of a cascade from a target: the lowest confidence from which on the small model says what the large one says often enough.
Plain counting, no Spark.

Trying many thresholds on one sample and taking the best would find one by chance. Hence fixed-sequence testing (Maurer, Hothorn and Lehmacher 1995;
for thresholds of a model: Angelopoulos and others, "Learn then Test", 2021): the thresholds and their order are settled by the confidences
alone, without a look at the answers; they are tested from the strictest downwards, each at the full level; and the first that fails ends it.
The first one accepts as many inputs as it takes to bear two disagreements, and a tenth of the sample: with fewer, some that came by chance
would end it at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.ai.evaluation import wilson
from spark_mv.query.syntax.nearest import did_you_mean

BORNE = 2
"""Disagreements that the first threshold bears."""
_STEPS = 20
"""Thresholds, at most, over a whole sample."""
MOST = 10_000
"""Inputs of a sample, whose answers dbt's process compares."""
_WORDS = ("data", "call", "agree_with_large", "sample", "ai")


@dataclass(frozen=True)
class Pair:
    """An input that both models answered: how sure the small one was (None: not known, or no answer of the type, so that the
    large one is always asked), whether they agree, what each cost."""

    confidence: float | None
    agree: bool
    small_cost: float = 0.0
    large_cost: float = 0.0


@dataclass(frozen=True)
class Line:
    """A threshold: inputs that it accepts, those of them with the large model's answer, and the cost of 1,000 inputs. `holds` is
    None for one that was not tested."""

    threshold: float
    accepted: int
    agreed: int
    cost: float
    holds: bool | None = None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.agreed, self.accepted)


@dataclass(frozen=True)
class Calibration:
    """The thresholds from the strictest on, and what the large model alone costs for 1,000 inputs."""

    n: int
    target: float
    lines: tuple[Line, ...]
    large_cost: float

    @property
    def chosen(self) -> Line | None:
        """The lowest threshold that holds."""
        return next((line for line in reversed(self.lines) if line.holds), None)


def least(target: float) -> int:
    """How many accepted inputs it takes to show the target, two disagreements among them.

    >>> least(0.9), least(0.95), least(0.99)
    (69, 142, 726)
    """
    n = BORNE + 1
    while wilson(n - BORNE, n)[0] < target:
        n += 1
    return n


def thresholds(confidences: Sequence[float], first: int) -> list[float]:
    """The thresholds to test, strictest first: that which accepts `first` inputs, and lower ones, each for a twentieth of them more.

    >>> thresholds([0.5, 0.75, 0.9, 0.99, 0.999], 2)
    [0.99, 0.9, 0.75, 0.5]
    """
    ordered = sorted(confidences, reverse=True)
    step = max(1, len(ordered) // _STEPS)
    ranks = [*range(first, len(ordered), step), len(ordered)] if len(ordered) >= first else []
    return list(dict.fromkeys(_below(ordered[rank - 1]) for rank in ranks))


def calibrated(pairs: Sequence[Pair], target: float) -> Calibration:
    """Tests the thresholds in their order until the first fails."""
    known = [pair.confidence for pair in pairs if pair.confidence is not None]
    lines, going = [], True
    for threshold in thresholds(known, max(least(target), len(pairs) // 10)):
        inside = [pair for pair in pairs if pair.confidence is not None and pair.confidence >= threshold]
        agreed, others = sum(pair.agree for pair in inside), sum(pair.large_cost for pair in pairs)
        cost = sum(pair.small_cost for pair in pairs) + others - sum(pair.large_cost for pair in inside)
        enough = wilson(agreed, len(inside))[0] >= target
        lines.append(Line(threshold, len(inside), agreed, 1000 * cost / len(pairs), enough if going else None))
        going = going and enough
    large = 1000 * sum(pair.large_cost for pair in pairs) / max(1, len(pairs))
    return Calibration(len(pairs), target, tuple(lines), large)


def _below(confidence: float) -> float:
    """The confidence rounded down, to three digits of what it lacks to 1, where confidences crowd.

    >>> _below(0.9512345), _below(0.99998765), _below(1.0), _below(0.95)
    (0.9512, 0.9999876, 1.0, 0.95)
    """
    lacks = 1.0 - confidence
    if lacks < 1e-12:
        return 1.0 if confidence >= 1.0 else confidence
    digits = 2 - math.floor(math.log10(lacks))
    unit = float(10**-digits)
    found = round(1.0 - math.ceil(round(lacks / unit, 6)) * unit, digits)
    return max(0.0, found if found <= confidence else round(found - unit, digits))


@dataclass(frozen=True)
class Asked:
    """What is calibrated: a call over the rows of `data`, by the cascade of the profile or of `ai`, words of a model's ai block."""

    data: str
    call: str
    target: float
    sample: int
    words: Mapping[str, Any]
    models: tuple[str, str]

    @classmethod
    def of(cls, values: Mapping[str, Any], profile: Mapping[str, Any]) -> Asked:
        """Raises ValueError saying what is missing or wrong."""
        for word in values:
            if word not in _WORDS:
                raise ValueError(f"unknown word {word!r}{did_you_mean(word, _WORDS)}")
        if not values.get("data") or not values.get("call"):
            raise ValueError(
                "say `data`, a model, seed or table with the inputs, and `call`, the SQL of the column, e.g. \"ai_classify(body, array('a', 'b'))\""
            )
        try:
            target, sample = float(str(values.get("agree_with_large"))), int(str(values.get("sample")))
        except ValueError:
            raise ValueError("agree_with_large and sample are numbers, e.g. 0.95 and 400") from None
        if not 0.5 <= target < 1.0:
            raise ValueError(
                f"agree_with_large is a share from 0.5 to below 1, not {target:g}: that all answers agree no sample can show"
            )
        if not least(target) <= sample <= MOST:
            more = f"say sample: {min(MOST, 2 * least(target))}, or a lower target" if sample < MOST else "say less"
            raise ValueError(
                f"sample is {sample:,}; for agree_with_large {target:g} it takes {least(target):,} accepted inputs at least, and it may be {MOST:,} at most: {more}"
            )
        words = values.get("ai") or {}
        if not isinstance(words, Mapping):
            raise ValueError(
                f"`ai` has words of the ai block, e.g. {{cascade: [{{model: small}}, {{model: large}}]}}, not {words!r}"
            )
        cascade = words.get("cascade", profile.get("cascade")) or ()
        models = [str(step.get("model") or "") for step in cascade if isinstance(step, Mapping)]
        if len(cascade) != 2 or len(models) != 2 or not all(models):
            raise ValueError(
                f"it takes a cascade of two models, of the profile or given as `ai: {{cascade: [{{model: small}}, {{model: large}}]}}`; there are {len(cascade)}. "
                "Of more than two, calibrate each with the last"
            )
        return cls(str(values["data"]), str(values["call"]), target, sample, words, (models[0], models[1]))
