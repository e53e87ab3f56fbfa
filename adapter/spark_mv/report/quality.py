"""How good AI answers were found to be, for the page: a line for each variant of an evaluation, what it had wrong, how variants compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_mv.report.facts import Evaluation
from spark_mv.report.words import NOTHING, count, cut, money, plain

MOST_PAIRS = 30
"""Of a label and another answer; all of them are in ai_evaluations_confusion."""


@dataclass(frozen=True)
class QualityView:
    """A variant in an evaluation. `best`: none of the same evaluation has more right; `wrong`: label, answer, rows."""

    at: float
    variant: str
    call: str
    model: str
    judged_by: str
    accuracy: str
    interval: str
    rows: str
    unanswered: str
    cost: str
    per_thousand: str
    best: bool
    wrong: tuple[tuple[str, str, str], ...]
    compared: tuple[str, ...]


def quality(found: Sequence[Evaluation]) -> tuple[QualityView, ...]:
    """Newest first; in an evaluation, by the share that is right."""
    most: dict[str, int] = {}
    for one in found:
        most[one.invocation_id] = max(most.get(one.invocation_id, 0), one.correct)
    ordered = sorted(found, key=lambda one: (-one.evaluated_at, -one.accuracy, one.variant))
    return tuple(_view(one, one.correct == most[one.invocation_id]) for one in ordered)


def _view(one: Evaluation, best: bool) -> QualityView:
    version = f" ({one.model_version})" if one.model_version not in ("", one.model) else ""
    wrong = sorted(one.wrong, key=lambda pair: -pair[2])[:MOST_PAIRS]
    return QualityView(
        at=one.evaluated_at,
        variant=plain(one.variant),
        call=cut(one.call, 400),
        model=plain(one.model + version),
        judged_by=plain(one.judged_by),
        accuracy=f"{one.accuracy:.1%}",
        interval=f"{one.accuracy_low:.1%} to {one.accuracy_high:.1%}",
        rows=count(one.n),
        unanswered=count(one.unanswered) if one.unanswered else "",
        cost=money(one.cost),
        per_thousand=money(1000 * one.cost / one.inputs) if one.inputs else NOTHING,
        best=best,
        wrong=tuple(
            (cut(label, 100), NOTHING if said is None else cut(said, 100), count(n)) for label, said, n in wrong
        ),
        compared=tuple(
            f"{plain(other)}: the same answer for {same:.1%} of the rows; {count(mine)} only this one has right, {count(theirs)} only the "
            f"other (p = {chance:.3f})"
            for other, same, mine, theirs, chance in one.compared
        ),
    )
