"""A cascade: models that are asked one after the other, until one of them is sure enough of its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CONDITION = re.compile(r"\s*confidence\s*(>=|>)\s*(\d*\.?\d+(?:[eE][+-]?\d+)?)\s*")


@dataclass(frozen=True)
class Step:
    """One model of a cascade. Its answer counts where the confidence is at least (`above`: more than) `least`; without
    `least`, as the last one's, always."""

    model: str
    version: str
    least: float | None = None
    above: bool = False

    @classmethod
    def of(cls, model: str, version: str, condition: str | None) -> Step:
        """Raises ValueError where the condition is not one.

        >>> Step.of("small", "1", "confidence >= 0.9").condition
        'confidence >= 0.9'
        >>> Step.of("small", "1", "confidence > .95").accepts(0.95)
        False
        """
        if condition is None:
            return cls(model, version)
        found = _CONDITION.fullmatch(condition)
        if found is None:
            raise ValueError(f"{condition!r} is not of the form 'confidence >= 0.9' (or >)")
        least = float(found[2])
        if not 0.0 <= least <= 1.0:
            raise ValueError(f"a confidence is from 0 to 1, not {found[2]}")
        return cls(model, version, least, found[1] == ">")

    @property
    def condition(self) -> str | None:
        """The condition, one text for equal ones."""
        return None if self.least is None else f"confidence {'>' if self.above else '>='} {self.least!r}"

    def accepts(self, confidence: float | None) -> bool:
        """Whether an answer counts. One of unknown confidence does for the last model alone."""
        if self.least is None:
            return True
        if confidence is None:
            return False
        return confidence > self.least if self.above else confidence >= self.least


Steps = tuple[Step, ...]
