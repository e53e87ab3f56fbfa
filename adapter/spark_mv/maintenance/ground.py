"""What every decision stands on: the columns of the table, whether its state table is to be trusted, what has to be said.
What must stop a run whatever its strategy stops it here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_mv.maintenance.columns import ColumnPlan, Role, column_prints, plan_columns
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.errors import ConfigError, NotOurs, RefusedError, refused
from spark_mv.maintenance.facts import RunFacts, TargetFacts
from spark_mv.maintenance.frozen_rows import frozen_rows, staying, with_frozen_bounds
from spark_mv.maintenance.kept_answers import unkept
from spark_mv.maintenance.layout import layout_changed, layout_problems
from spark_mv.maintenance.notes import forget_notes, kept_notes
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.state import Standing, standing
from spark_mv.query.analysis.verdict import Analysis


@dataclass(frozen=True)
class Ground:
    """`situation` knows of the model's table only what is ours. `layout_changed`: the table is to be partitioned or clustered
    in another way."""

    situation: Situation
    columns: ColumnPlan
    standing: Standing
    notes: tuple[str, ...]
    layout_changed: bool = False

    @property
    def renewed(self) -> ColumnPlan:
        """The columns of the table that this run leaves."""
        return replace(self.columns, replace=True) if self.layout_changed else self.columns


def ground(situation: Situation) -> Ground:
    """Raises RefusedError when the target is not ours or the analysis found errors, ConfigError when settings do not fit
    the query."""
    refuse(situation.facts, situation.analysis)
    if not situation.facts.target.ours:
        there = situation.facts.target
        facts = replace(situation.facts, target=TargetFacts(version=there.version, name_is_taken=there.exists))
        situation = replace(situation, facts=facts)
    target = situation.facts.target
    frozen = frozen_rows(situation)
    columns = staying(_columns(situation, frozen.problems), frozen)
    rewritten = with_frozen_bounds(situation.rewritten, frozen)
    rewritten = replace(rewritten, ai_rounds=unkept(rewritten.ai_rounds, columns.columns, target))
    situation = replace(situation, rewritten=rewritten)
    return Ground(
        situation,
        columns,
        _standing(situation),
        (*situation.notes, *forget_notes(columns, target), *kept_notes(situation.facts.model, columns, target)),
        layout_changed(situation.rewritten.columns, situation.config, target),
    )


def refuse(facts: RunFacts, analysis: Analysis) -> None:
    """Raises RefusedError for what must stop a run whatever its strategy."""
    if analysis.errors:
        raise refused(analysis.errors)
    refuse_foreign(facts.model, facts.target, facts.full_refresh)


def refuse_foreign(model: str, target: TargetFacts, full_refresh: bool) -> None:
    """Raises NotOurs where something of the model's name is in the way."""
    if target.exists and not target.ours and not full_refresh:
        kind = "table" if target.is_table else "view"
        was = ""
        if target.record_version is not None:
            was = f" (version {target.record_version} is the model's own: restore it, and its kept values are there again)"
        if target.owner:
            raise NotOurs(
                "NOT_OURS",
                f"model {model}: the table of this name was made by {target.owner}, another model of this project, and the values that are kept in "
                f"it are that model's. It is never overwritten by accident: rename it to what that model is called now (ALTER TABLE … RENAME TO …), "
                "or give one of the two another alias; a run with --full-refresh replaces it (unless the model's config says `full_refresh: false`)",
            )
        adoptable = target.is_table and target.provider == "delta"
        adopt = f"`spark-mv adopt {model}` takes it over with the values that it has; a" if adoptable else "A"
        raise NotOurs(
            "NOT_OURS",
            f"model {model}: a {kind} of this name exists that nondeterministic_mv did not make{was}, and it is never "
            f"overwritten by accident. {adopt} run with --full-refresh replaces it (unless the model's config says `full_refresh: false`); or give the model another alias",
        )


def _columns(situation: Situation, refused: tuple[str, ...]) -> ColumnPlan:
    facts, analysis, config = situation.facts, situation.analysis, situation.config
    rewritten, record = situation.rewritten, situation.facts.target.record
    prints = column_prints(analysis, rewritten.columns)
    before = record.of_columns(analysis.fingerprint, prints) if record else None
    policy = replace(config, on_schema_change="sync_all_columns") if facts.full_refresh else config
    columns = plan_columns(analysis, rewritten.columns, facts.target, policy, before, facts.full_refresh)
    _refuse_gone(situation, columns)
    problems = [
        *columns.problems,
        *refused,
        *_window_problems(config, rewritten),
        *layout_problems(rewritten.columns, config),
    ]
    if problems:
        raise ConfigError(facts.model, problems)
    return columns


def _refuse_gone(situation: Situation, columns: ColumnPlan) -> None:
    """Kept values whose column somebody else renamed or dropped since the last run, and those of rows that are found by such a column, are in earlier
    versions of the table, and drawing others is the user's to say. That need not show in the table's history: on Iceberg another schema is no snapshot."""
    facts, config = situation.facts, situation.config
    target = facts.target
    if target.record is None or facts.full_refresh or not target.exists:
        return
    kept = {name.lower() for name in target.record.kept}
    what = "whose values are kept"
    gone = [
        c.name for c in columns.columns if c.role is Role.KEPT and c.name.lower() in kept and not target.has(c.name)
    ]
    if not gone and (columns.kept or situation.state or config.freeze_where or config.on_source_delete == "keep"):
        what = "by which its rows, and what is kept of them, are found again"
        gone = [key for key in target.record.keys if not target.has(key)]
    if gone:
        raise RefusedError(
            "KEPT_COLUMN_GONE",
            f"model {facts.model}: the table has lost {', '.join(gone)}, {what} ({target.foreign_operation or 'something else'}). "
            f"The table was not touched. Give the column its name back, or add it again where it was dropped: the next run reads its values from version "
            f"{target.record_version}. Or restore the table to that version, where that brings columns back (not on Iceberg); a run with --full-refresh draws them anew",
        )


def _standing(situation: Situation) -> Standing:
    state = situation.state
    if state is None:
        return Standing(True)
    stands = standing(state, situation.facts.target)
    if state.exists and not (state.ours or state.record or stands.trusted):
        model = situation.facts.model
        raise NotOurs(
            "STATE_NOT_OURS",
            f"model {model}: the table {model}__state exists and nondeterministic_mv did not make it, so it is not "
            "overwritten. The model needs a table of that name beside its own: drop it, or give the model another alias",
        )
    return stands


def state_lost(situation: Situation) -> bool:
    """Whether a table of ours has rows that its state table does not tell of: it is not to be trusted, or has other draws."""
    target, state = situation.facts.target, situation.state
    if state is None or not (target.exists and target.ours):
        return False
    keys = {name.lower() for name in situation.config.unique_key}
    rekeyed = target.record is not None and {*target.record.keys} != keys
    drawn = situation.rewritten.draw_fingerprints
    other = bool(drawn) and state.record is not None and {**state.record.kept} != {**drawn}
    return rekeyed or other or not standing(state, target).trusted


def same_filter(situation: Situation) -> bool:
    """Whether the rows of the table have passed the random filter that the query has now. Without a record they are taken for such, as their
    values are for kept ones."""
    record = situation.facts.target.record
    if record is None:
        return True
    if record.filter_print:
        return record.filter_print == situation.rewritten.filter_print
    return record.query == situation.analysis.fingerprint


def _window_problems(config: ModelConfig, rewritten: Rewritten) -> list[str]:
    if config.on_source_delete == "keep" and rewritten.clock and rewritten.draw_sql:
        return [
            "on_source_delete: keep does not go with both a window and a random filter: which rows would have been "
            "candidates cannot be told once the source has lost them. Give the draw its own nondeterministic_mv"
        ]
    if config.on_source_delete == "keep" and rewritten.clock and not rewritten.unclocked_sql:
        return [
            "on_source_delete: keep needs clock predicates from which each row's time of leaving follows, because a row "
            f"that the source has lost stays until its window evicts it; here {rewritten.unclocked_reason}. Write the "
            "window as comparisons of a column with the clock in the outermost WHERE, or use on_source_delete: delete"
        ]
    return []
