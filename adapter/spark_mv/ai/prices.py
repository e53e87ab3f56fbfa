"""What tokens cost: one table of prices by model, of the user's own, asked directly, cached or in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

Rates = tuple[float, ...]
"""Per 1,000 input and output tokens and, third, tokens of input that were cached; without the third, they cost as any input."""


def cost_of(rates: Rates, input_tokens: float, output_tokens: float, cached_tokens: float = 0) -> float:
    """What so many tokens cost; `cached_tokens` are those of the input that were cached.

    >>> cost_of((2.0, 8.0, 1.0), 1000, 500, 400), cost_of((2.0, 8.0), 1000, 500, 400)
    (5.6, 6.0)
    """
    cached = rates[2] if len(rates) > 2 else rates[0]
    return ((input_tokens - cached_tokens) * rates[0] + cached_tokens * cached + output_tokens * rates[1]) / 1000.0


@dataclass(frozen=True)
class Price:
    """Per 1,000 tokens, in the user's currency. `cached_input` is that of input which the endpoint has seen shortly before
    (None: as input); `batch_input` and `batch_output` those of a batch (None: `batch_price_factor` of the direct ones)."""

    input: float = 0.0
    output: float = 0.0
    cached_input: float | None = None
    batch_input: float | None = None
    batch_output: float | None = None

    @property
    def direct(self) -> Rates:
        """Of input, output and cached input tokens, asked directly."""
        return self.input, self.output, self.input if self.cached_input is None else self.cached_input

    def in_batch(self, factor: float) -> Rates:
        """Of input and output tokens in a batch.

        >>> Price(2.0, 8.0, batch_output=1.0).in_batch(0.5)
        (1.0, 1.0)
        """
        return (
            self.input * factor if self.batch_input is None else self.batch_input,
            self.output * factor if self.batch_output is None else self.batch_output,
        )


WORDS = tuple(f.name for f in fields(Price))


def problem_of(value: Any) -> str | None:
    """What is wrong with the table of prices in the config, None if nothing.

    >>> problem_of({"small": {"input": 0.1, "ouput": 0.2}})
    "prices.small has an unknown word 'ouput'; it has input, output, cached_input, batch_input, batch_output"
    >>> problem_of({"small": {"input": -1}})
    'prices.small.input must be a number of 0 or more, not -1'
    """
    if not isinstance(value, Mapping):
        return "prices must map each model's name to its prices"
    for model, block in value.items():
        if not isinstance(block, Mapping):
            return f"prices.{model} must have {', '.join(WORDS)}, not {block!r}"
        for word, price in block.items():
            if word not in WORDS:
                return f"prices.{model} has an unknown word {word!r}; it has {', '.join(WORDS)}"
            try:
                number = float(str(price))
            except ValueError:
                number = -1.0
            if not number >= 0:
                return f"prices.{model}.{word} must be a number of 0 or more, not {price!r}"
    return None


def prices_of(value: Mapping[str, Mapping[str, Any]]) -> dict[str, Price]:
    """The table from the config, see problem_of."""
    return {
        str(model): Price(**{word: float(str(price)) for word, price in block.items()})
        for model, block in value.items()
    }
