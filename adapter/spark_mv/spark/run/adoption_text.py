"""What `adopt` tells: of the table, of what is kept, of what the next run will do."""

from __future__ import annotations

from collections.abc import Iterator

from spark_mv.query.functions.level import Level
from spark_mv.spark.run.adopting import Adoption, AnswerCounts


def adoption_text(found: Adoption, applied: bool) -> str:
    """One paragraph a subject, for the console."""
    seen = found.seen
    head = "adopted" if applied else "can be adopted; nothing was changed (--apply does it)"
    lines = [
        f"model {seen.invocation.name}: {seen.invocation.target.replace('`', '')} {head}",
        f"  rows      {found.rows:,}; {', '.join(seen.config.unique_key)} is unique and never NULL",
        *(f"  kept      {line}" for line in _kept(found)),
        *(f"  AI        {line}" for line in _ai(found)),
        *(f"  next run  {line}" for line in _differences(found)),
        *(f"  note      {note}" for note in found.plan.notes),
    ]
    return "\n".join(lines)


def _kept(found: Adoption) -> Iterator[str]:
    kept = [c for c in found.plan.columns if c.role.value == "kept"]
    there = [c.name for c in kept if c.in_target and not c.fresh]
    if there:
        yield f"{', '.join(there)}: the table's values stay, row by row"
    drawn = [c.name for c in kept if not c.in_target or c.fresh]
    if drawn:
        yield f"{', '.join(drawn)}: the table has no such column, so that the next run draws it for all rows"
    if not kept:
        yield "no column: nothing in this query is drawn or frozen"


def _ai(found: Adoption) -> Iterator[str]:
    by_name = {counts.column.lower(): counts for counts in found.answers}
    for name in found.ai_columns:
        counts = by_name.get(name.lower())
        if counts is None:
            yield f"{name}: which answers its values are cannot be told, so that they are asked for anew"
        else:
            yield f"{name}: {', '.join(_answers(counts))}"
    if found.asked is not None:
        yield f"{found.asked:,} call{'' if found.asked == 1 else 's'} left for the next run"


def _answers(counts: AnswerCounts) -> Iterator[str]:
    known = f" ({counts.known:,} known already)" if counts.known else ""
    yield f"{counts.answers:,} answers{known} from {counts.taken:,} rows, which nobody pays again"
    if counts.edited:
        yield f"none from {counts.edited:,} rows that were edited since"
    if counts.empty:
        yield f"{counts.empty:,} rows without a value"
    if counts.others:
        yield f"{counts.others:,} rows will show the answer that most rows with the same question have"
    if counts.overruled:
        yield f"{counts.overruled:,} rows will show the answer that ai_results has to their question already, and not the table's own"


def _differences(found: Adoption) -> Iterator[str]:
    if found.uncompared:
        yield f"not compared with the query: {found.uncompared}"
    elif found.new is not None and found.gone is not None and found.differing is not None:
        stays = found.seen.config.on_source_delete == "keep" and Level.COMMAND not in found.seen.analysis.levels
        parts = [
            f"+{found.new:,} new" if found.new else "",
            f"~{found.differing:,} that differ today ({_listed(found)})" if found.differing else "",
            f"-{found.gone:,} that only the table has" if found.gone and not stays else "",
            f"{found.gone:,} that only the table has stay" if found.gone and stays else "",
        ]
        said = ", ".join(part for part in parts if part)
        # what becomes of AI columns stands above
        aside = f"; not compared: {', '.join(found.ai_columns)}" if found.ai_columns else ""
        yield (said or "no row differs from what the query gives today") + aside
    named = {c.name.lower() for c in found.plan.columns}
    there = {c.name.lower() for c in found.table.columns}
    if new := [c.name for c in found.plan.columns if c.name.lower() not in there]:
        yield f"new columns: {', '.join(new)}"
    if gone := [c.name for c in found.table.columns if c.name.lower() not in named]:
        yield f"columns that the query does not give are removed: {', '.join(gone)}"


def _listed(found: Adoption) -> str:
    counts = sorted((found.by_column or {}).items(), key=lambda one: -one[1])
    return ", ".join(f"{name} {number:,}" for name, number in counts)
