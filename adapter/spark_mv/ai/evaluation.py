"""How good answers are: counted against labels, with intervals; two ways to answer compared on the same rows. Plain counting, no Spark."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Answers = Mapping[str, str | None]  # by row
_95 = 1.959963984540054

EVALUATIONS: tuple[tuple[str, str, str], ...] = (
    ("evaluated_at", "TIMESTAMP", "when"),
    ("invocation_id", "STRING", "the dbt invocation: the rows of one evaluation have it in common"),
    ("variant", "STRING", "name of the way to answer"),
    ("call", "STRING", "the SQL that was evaluated"),
    ("model", "STRING", "models that could answer"),
    ("model_version", "STRING", "their declared versions"),
    ("identity_hash", "STRING", "of the answers in ai_results: models, versions, prompt, parameters, conditions"),
    ("judged_by", "STRING", "where the right answers are from: a column, or the variant that counts as right"),
    ("n", "BIGINT", "rows with a label"),
    ("correct", "BIGINT", "rows whose answer is the label"),
    ("accuracy", "DOUBLE", "correct / n; a row without an answer is not correct"),
    ("accuracy_low", "DOUBLE", "lower end of the 95 % interval (Wilson)"),
    ("accuracy_high", "DOUBLE", "upper end"),
    ("inputs", "BIGINT", "distinct inputs"),
    ("unanswered", "BIGINT", "of these, without an answer: an error, or left by a budget"),
    ("requests", "BIGINT", "requests to models that the answers took, whenever they were asked; retries apart"),
    ("input_tokens", "BIGINT", "of these"),
    ("output_tokens", "BIGINT", "of these"),
    ("cost", "DOUBLE", "of these"),
    ("asked_now", "BIGINT", "inputs asked by this evaluation; the others had an answer"),
    ("seconds", "DOUBLE", "that asking took; NULL: nothing was asked"),
)
CONFUSION: tuple[tuple[str, str, str], ...] = (
    ("evaluated_at", "TIMESTAMP", "when"),
    ("invocation_id", "STRING", "the dbt invocation"),
    ("variant", "STRING", "name of the way to answer"),
    ("expected", "STRING", "the label"),
    ("answer", "STRING", "the answer"),
    ("n", "BIGINT", "rows"),
)
AGREEMENT: tuple[tuple[str, str, str], ...] = (
    ("evaluated_at", "TIMESTAMP", "when"),
    ("invocation_id", "STRING", "the dbt invocation"),
    ("first", "STRING", "a variant"),
    ("second", "STRING", "another one"),
    ("n", "BIGINT", "rows"),
    ("agreed", "BIGINT", "rows with the same answer; a missing one is none"),
    ("agreement", "DOUBLE", "agreed / n"),
    ("agreement_low", "DOUBLE", "lower end of the 95 % interval (Wilson)"),
    ("agreement_high", "DOUBLE", "upper end"),
    ("only_first_correct", "BIGINT", "rows that the first has right and the second wrong"),
    ("only_second_correct", "BIGINT", "rows that the second has right and the first wrong"),
    ("p_value", "DOUBLE", "of such a difference by chance, were both equally good (McNemar, exact)"),
)


def wilson(part: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share.

    >>> [round(end, 4) for end in wilson(81, 100)], wilson(0, 0)
    ([0.7222, 0.8749], (0.0, 1.0))
    """
    if not of:
        return 0.0, 1.0
    share, z = part / of, _95 * _95
    middle = (share + z / (2 * of)) / (1 + z / of)
    half = _95 / (1 + z / of) * math.sqrt(share * (1 - share) / of + z / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def mcnemar(first: int, second: int) -> float:
    """The probability of a difference at least as large between rows that only one of two has right, were both equally good.

    >>> mcnemar(5, 5), round(mcnemar(1, 9), 5), mcnemar(0, 0)
    (1.0, 0.02148, 1.0)
    """
    many = first + second
    tail = sum(math.comb(many, k) for k in range(min(first, second) + 1))
    return float(min(1.0, 2 * tail / (1 << many))) if many else 1.0


@dataclass(frozen=True)
class Judged:
    """A variant's answers against the right ones."""

    n: int
    correct: int
    confusion: Mapping[tuple[str | None, str | None], int]

    @property
    def accuracy(self) -> float:
        return self.correct / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.correct, self.n)


def judged(expected: Answers, answers: Answers) -> Judged:
    """Rows without a label are none of `expected`, so that a missing answer is never right."""
    pairs = Counter((right, answers.get(row)) for row, right in expected.items())
    return Judged(len(expected), sum(n for (right, answer), n in pairs.items() if right == answer), pairs)


@dataclass(frozen=True)
class Agreement:
    """Two variants on the same rows."""

    n: int
    agreed: int
    only_first: int
    only_second: int

    def row(self) -> tuple[Any, ...]:
        """The values of AGREEMENT from `n` on."""
        share = self.agreed / self.n if self.n else 0.0
        low, high = wilson(self.agreed, self.n)
        p_value = mcnemar(self.only_first, self.only_second)
        return self.n, self.agreed, share, low, high, self.only_first, self.only_second, p_value


def agreement(expected: Answers, first: Answers, second: Answers) -> Agreement:
    """How often they say the same, and who is right where they do not. Two that say nothing do not say the same."""
    rows = [(right, first.get(row), second.get(row)) for row, right in expected.items()]
    return Agreement(
        len(rows),
        sum(a == b is not None for _, a, b in rows),
        sum(a == right != b for right, a, b in rows),
        sum(b == right != a for right, a, b in rows),
    )
