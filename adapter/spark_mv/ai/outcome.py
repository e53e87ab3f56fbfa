"""What a round of AI calls did, or would do."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class AiOutcome:
    """Counts of distinct inputs. `requested` = `reused` + `calls` + `blocked` + `left_for_later` + `under_way`; `calls` = `ok` + `errors`.

    `reused` had an answer before, `blocked` failed before and may not be tried again yet (or, `refused` of them, never by
    itself), `left_for_later` found the budget or the time used up (`message` says which). `gave_up` of the errors are final.
    `retry_at` is when the first of the others, and of those blocked, may be asked again (seconds since the epoch).
    `under_way` inputs are in batches that are not collected yet, `submitted` of them by this run: tokens and cost have an estimate of
    these. `further` requests went to further models of a cascade, `repeated` ones to a model about an input of which it had been asked. `collected` answers and errors, of any model, were taken in from batches that had been paid by then.
    `near` of the reused got the answer to a near duplicate by this run, or will (see dedupe).
    Cost in the profile's currency. `error_classes` counts the errors, `error_example` is one of their texts.
    """

    requested: int = 0
    reused: int = 0
    calls: int = 0
    ok: int = 0
    null_answers: int = 0
    errors: int = 0
    blocked: int = 0
    left_for_later: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    error_classes: dict[str, int] = field(default_factory=dict)
    message: str = ""
    error_example: str = ""
    refused: int = 0
    gave_up: int = 0
    retry_at: float | None = None
    under_way: int = 0
    submitted: int = 0
    collected: int = 0
    further: int = 0
    repeated: int = 0
    near: int = 0

    @property
    def pending(self) -> int:
        """Inputs that a later run asks for by itself."""
        return self.errors - self.gave_up + self.blocked - self.refused + self.left_for_later + self.under_way

    @property
    def due_at(self) -> float | None:
        """When a run may ask for the first of the pending inputs; None: the next run."""
        return None if self.left_for_later or self.under_way else self.retry_at

    @property
    def charged_calls(self) -> int:
        """What of a budget of calls is used up."""
        return self.calls + self.submitted + self.further + self.repeated

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: AiOutcome) -> AiOutcome:
        values: dict[str, Any] = {}
        for f in fields(self):
            a, b = getattr(self, f.name), getattr(other, f.name)
            if f.name == "error_classes":
                values[f.name] = {k: a.get(k, 0) + b.get(k, 0) for k in {**a, **b}}
            elif f.name == "message":
                values[f.name] = "; ".join(dict.fromkeys(m for m in (a, b) if m))
            elif f.name == "retry_at":
                values[f.name] = min((at for at in (a, b) if at is not None), default=None)
            elif f.name == "error_example":
                values[f.name] = a or b
            else:
                values[f.name] = a + b
        return AiOutcome(**values)
