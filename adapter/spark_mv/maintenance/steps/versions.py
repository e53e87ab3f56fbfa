"""A complete recompute reads every source at the version that its bookkeeping will name, whatever is written meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_mv.maintenance.facts import SourceFacts
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.query.delta.texts import TableRef, with_tables
from spark_mv.query.syntax.select_tree import NotIncremental
from spark_mv.query.syntax.table_name import table_key

if TYPE_CHECKING:  # loaded by models with AI calls only
    from spark_mv.query.ai_calls.ai_plan import AiCall

MOVED = -1
"""Version in the bookkeeping of a source that was written to while a run read it: no version that ever was."""


def at_versions(sql: str, sources: Sequence[SourceFacts]) -> str | None:
    """The text with each source that keeps versions read at its version. None where that cannot be said of all: a view
    stands in between, or the text was not understood."""
    known = {table_key(source.name): source for source in sources}

    def pinned(ref: TableRef) -> str:
        source = known.get(table_key(ref.name))
        if source is None or (source.version is None and source.view_text is None):
            return ref.text  # the run's own tables, and what keeps no versions
        if source.version is None:
            raise NotIncremental("SOURCE_IS_VIEW", f"{ref.name} is a view")
        if not source.pinnable:
            return ref.text
        return f"{ref.text} VERSION AS OF {source.version.version}"

    try:
        return with_tables(sql, pinned)
    except NotIncremental:
        return None


def rounds_at_versions(
    rounds: Sequence[tuple[AiCall, ...]], sources: Sequence[SourceFacts]
) -> tuple[tuple[AiCall, ...], ...]:
    """The requests for answers, reading the sources as the query does."""
    return tuple(
        tuple(
            replace(
                call,
                request_sql=at_versions(call.request_sql, sources) or call.request_sql,
                unkept_sql=(at_versions(call.unkept_sql, sources) or call.unkept_sql) if call.unkept_sql else "",
            )
            for call in calls
        )
        for calls in rounds
    )


def rewritten_at_versions(rewritten: Rewritten, sources: Sequence[SourceFacts]) -> tuple[Rewritten, tuple[Step, ...]]:
    """All texts of a run at the versions of its sources. Where that is not possible, the texts as they are and a step
    that looks, before anything is published, whether a source moved meanwhile."""
    texts = {
        name: text
        for name in ("sql", "draw_sql", "unclocked_sql", "next_change_sql", "near_change_sql", "failing_sql")
        if (text := getattr(rewritten, name)) is not None
    }
    pinned = {name: at_versions(text, sources) for name, text in texts.items()}
    through = None in pinned.values()
    versions = {
        source.name: source.version.version
        for source in sources
        if source.version is not None and (through or not source.pinnable)
    }
    confirm = (Step("confirm_sources", {"versions": versions}),) if versions else ()
    return (rewritten, confirm) if through else (replace(rewritten, **pinned), confirm)  # type: ignore[arg-type]
