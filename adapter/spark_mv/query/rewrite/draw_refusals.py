"""What is said of draws that decide which rows there are, and that no unique_key can keep: place, reason and cure."""

from __future__ import annotations

from spark_mv.query.analysis.verdict import Analysis, Cause
from spark_mv.query.rewrite.filter_draws import CURE, FilterDraws


def unkept(split: FilterDraws, written: Analysis) -> str:
    """Why the draws that `split` has refused cannot be kept. The place is that of the draw also where the structure of the
    text is not understood."""
    place = (split.line, split.column)
    if not split.line and written.rows_draw is not None:
        place = _place(written.rows_draw, written)
    return f"line {place[0]}, column {place[1]}: {split.reason}"


def _place(cause: Cause, written: Analysis) -> tuple[int, int]:
    """Line and column of a draw in the text as written, which a view that is looked through has not."""
    places = [(line, column) for name, _, line, column in written.functions if name == cause.function]
    return (cause.line, cause.column) if (cause.line, cause.column) in places else next(iter(places), (0, 0))


def refused(rest: Analysis, written: Analysis) -> str:
    """Why the draw that still decides rows in `rest` cannot be kept, with its place in the text as written."""
    cause = rest.rows_draw
    if cause is None:
        return f"a draw decides which rows there are; {CURE}"
    place = _place(cause, written)
    if cause.function == "TABLESAMPLE":
        return (
            f"line {place[0]}, column {place[1]}: TABLESAMPLE of a share of the rows takes other rows at each read. Write the share as a "
            "filter, as in WHERE rand() < 0.1: the draws of that are kept, so that the sample stays; or give it a seed with REPEATABLE, and "
            "it is the same sample as long as the table's files are the same"
        )
    call = cause.function if cause.function.isupper() else f"{cause.function}()"
    through = f" through {', '.join(cause.path)}" if cause.path else ""
    return (
        f"line {place[0]}, column {place[1]}: {call} decides which rows there are{through}, and is not drawn once per row "
        f"of the result, so that no unique_key can keep it; {CURE}"
    )
