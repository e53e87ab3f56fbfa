"""NO_OP: nothing changed and no row crossed a bound of its window, so the table is already what it should be."""

from __future__ import annotations

from collections.abc import Collection

from spark_mv.maintenance.adoption import ADOPTED
from spark_mv.maintenance.facts import RunFacts
from spark_mv.maintenance.plan import Candidate, Reason
from spark_mv.maintenance.record import RunRecord, differing
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.clock_words import pin_level


def no_op(
    facts: RunFacts,
    query: str,
    config: str,
    clock_elsewhere: bool,
    refresh: str = "auto",
    kept: Collection[str] | None = None,
    state_problem: str = "",
) -> Candidate:
    """Whether the run may end here. `query` and `config` are fingerprints; `clock_elsewhere` says that the clock stands
    outside solved predicates, so that the result moves whenever its literal does. `refresh`: the model's setting. `kept`: the kept columns, where known.
    `state_problem`: what is wrong with the state table."""
    record = facts.target.record
    if facts.full_refresh:
        reasons = [Reason("FULL_REFRESH", "--full-refresh asks for a rebuild")]
    elif not facts.target.exists:
        reasons = [Reason("FIRST_RUN", "the table does not exist yet")]
    elif record is None:
        reasons = [Reason("NO_BOOKKEEPING", "the table's history holds no record of an earlier run")]
    else:
        reasons = _changes(facts, record, query, config, clock_elsewhere)
        if refresh == "full":
            reasons.append(Reason("REFRESH_FULL", "refresh: full asks for a complete recompute"))
        if state_problem:
            reasons.append(Reason("STATE_CHANGED", f"the state table: {state_problem}"))
        if kept is not None and {*kept} != {name for name in record.kept if not name.startswith("__mv_")}:
            reasons.append(
                Reason("KEPT_CHANGED", "other columns are kept than before: a function has another level now")
            )
    if not reasons:
        return Candidate("NO_OP", True, (Reason("NOTHING_CHANGED", _next(record, clock_elsewhere)),), 0.0)
    return Candidate("NO_OP", False, tuple(reasons))


def ai_due(facts: RunFacts, record: RunRecord) -> bool:
    """Whether answers are to come that this run may ask for."""
    return bool(record.ai_pending) and (record.ai_retry_at is None or facts.started_at >= record.ai_retry_at)


def moved(facts: RunFacts) -> bool:
    """Whether it is certain, before the query is looked at, that the run has something to follow since the last one."""
    record = facts.target.record
    if record is None or not facts.target.intact:
        return False
    due = record.next_change_at is not None and facts.as_of >= record.next_change_at
    return due or bool(_source_changes(facts, record))


def _changes(facts: RunFacts, record: RunRecord, query: str, config: str, clock_elsewhere: bool) -> list[Reason]:
    reasons = []
    if not facts.target.intact:
        what = f" ({facts.target.foreign_operation})" if facts.target.foreign_operation else ""
        reasons.append(Reason("TARGET_CHANGED", f"something else wrote to the table since the last run{what}"))
    if record.strategy == ADOPTED:
        reasons.append(Reason("ADOPTED", "the table was adopted: it is compared with the query, and keeps its values"))
    elif record.partial:
        reasons.append(Reason("PARTIAL_RUN", "the last run saw only part of its sources (--empty or --sample)"))
    if record.query != query:
        reasons.append(Reason("QUERY_CHANGED", "the model's SQL changed"))
    if record.config != config:
        reasons.append(Reason("CONFIG_CHANGED", "settings that change rows were edited"))
    if redefined := differing(record.functions, facts.functions):
        listed = ", ".join(redefined)
        reasons.append(Reason("FUNCTION_CHANGED", f"{listed} was redefined since the last run, or not known to it"))
    if ai_due(facts, record):
        reasons.append(Reason("AI_PENDING", f"{record.ai_pending:,} AI answers are still to come or to be retried"))
    if facts.target.forget:
        asked = "; ".join(
            f"{', '.join(r.columns)}{f' where {r.where}' if r.where else ''}" for r in facts.target.forget
        )
        reasons.append(Reason("FORGET_REQUESTED", f"forget_values asked for new values of {asked}"))
    if facts.target.ask_again and facts.target.ask_again != record.ask_again:
        reasons.append(Reason("ASK_AGAIN", "recompute_ai asked for new AI answers"))
    reasons += _source_changes(facts, record)
    reasons += setting_changes(facts, record)
    reasons += _pin_changes(facts, record, clock_elsewhere)
    return reasons


def _source_changes(facts: RunFacts, record: RunRecord) -> list[Reason]:
    reasons = []
    for source in facts.sources:
        before = record.sources.get(source.name)
        if source.view_text is not None:
            continue
        if source.version is None:
            reasons.append(
                Reason(
                    "SOURCE_UNVERSIONED",
                    f"{source.without_version}, so it is read at every run",
                )
            )
        elif before is None:
            reasons.append(Reason("SOURCE_NEW", f"{source.name} was not read by the last run"))
        elif before != source.version:
            reasons.append(
                Reason(
                    "SOURCE_CHANGED", f"{source.name} went from version {before.version} to {source.version.version}"
                )
            )
    return reasons


def setting_changes(facts: RunFacts, record: RunRecord) -> list[Reason]:
    """Whether the session would give other values of the same rows: another Spark, time zone or rule of arithmetic."""
    before = {"time zone": record.time_zone, **record.settings}
    now = {"time zone": facts.time_zone, **facts.settings}
    differ = differing(before, now)
    if not differ:
        return []
    listed = ", ".join(f"{name} was {before.get(name, 'not set')} and is {now.get(name, 'not set')}" for name in differ)
    return [Reason("SESSION_CHANGED", listed)]


def _pin_changes(facts: RunFacts, record: RunRecord, clock_elsewhere: bool) -> list[Reason]:
    moved = differing(record.pins, facts.pins)
    others = [name for name in moved if pin_level(name) != Level.COMMAND]
    if others:
        return [Reason("SESSION_CHANGED", f"{', '.join(others)} differs from the last run")]
    if not moved:
        return []
    if clock_elsewhere or not record.clock_solved:
        return [Reason("CLOCK_MOVED", f"the result follows {', '.join(moved)}, which moved since the last run")]
    if facts.as_of < record.as_of:
        return [Reason("CLOCK_BACK", f"the as-of instant went back from {record.as_of} to {facts.as_of}")]
    if record.next_change_at is not None and facts.as_of >= record.next_change_at:
        return [Reason("BOUND_CROSSED", f"rows enter or leave their window since {record.next_change_at}")]
    return []


def _next(record: RunRecord | None, clock_elsewhere: bool) -> str:
    waits = (
        f"; {record.ai_pending:,} AI answers that failed are asked for again from {record.ai_retry_at} UTC on"
        if record and record.ai_pending
        else ""
    )
    return _next_row(record, clock_elsewhere) + waits


def _next_row(record: RunRecord | None, clock_elsewhere: bool) -> str:
    clock = sorted(name for name in record.pins if pin_level(name) == Level.COMMAND) if record is not None else []
    if record is None or not clock:
        return "no source changed"
    if clock_elsewhere or not record.clock_solved:
        return f"no source changed, nor did {', '.join(clock)}, which the result follows"
    if record.next_change_at is None:
        return "no source changed and no row will enter or leave by the clock"
    return f"no source changed; the next row enters or leaves at {record.next_change_at} UTC"
