"""The steps that bring the state table up to date before the model's own table follows: draws of a random filter, or
remembered rows. A state that is not to be trusted is made again from what the model's table tells."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_mv.maintenance.columns import ColumnPlan, Role, StagedColumn, column_prints, plan_columns, same_type
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import Column, RunFacts, TargetFacts
from spark_mv.maintenance.plan import Step
from spark_mv.maintenance.record import KeptRecord
from spark_mv.maintenance.rewritten import BOUNDS, Rewritten
from spark_mv.maintenance.row_identity import row_identity
from spark_mv.maintenance.staged import When
from spark_mv.maintenance.state import Seed, Standing, StateFacts, StateRecord, draws_to_drop, stamp
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.rewrite.draw_texts import DRAW
from spark_mv.query.syntax.reserved import TRIAL, VALID_FROM, VALID_TO, relation
from spark_mv.query.syntax.select_tree import NotIncremental
from spark_mv.query.syntax.table_name import quoted

_DIED = "the last run died before it dropped the draws of rows that were gone"


@dataclass(frozen=True)
class StateSteps:
    """`record` is what the state's commits of this run say; `notes` is for the user."""

    steps: tuple[Step, ...]
    record: StateRecord
    notes: tuple[str, ...] = ()
    turn: int = 0


@dataclass(frozen=True)
class Known:
    """All that the steps are made from."""

    facts: RunFacts
    config: ModelConfig
    rewritten: Rewritten
    columns: ColumnPlan
    analysis: Analysis
    state: StateFacts
    standing: Standing
    seed: Seed = field(default_factory=Seed)
    kept_in: str = "target"  # the relation that has the table's rows as our runs left them

    @property
    def relation(self) -> str:
        """The trusted state in a statement."""
        at = self.standing.at_version
        return "state" if at is None else f"(SELECT * FROM {relation('state')} VERSION AS OF {at})"

    def problem(self, then: str) -> list[str]:
        table = f"{self.facts.model}__state"
        return [f"{table}: {self.standing.problem}; {then}"] if self.standing.problem else []

    def record(self, kept: Mapping[str, str], columns: Mapping[str, str]) -> StateRecord:
        old = self.state.record if self.standing.trusted else None
        text = f"{self.facts.model} {self.facts.invocation_id} {self.facts.started_at}"
        return StateRecord(
            id=old.id if old else hashlib.sha256(text.encode()).hexdigest()[:16],
            made_for=stamp(self.facts.target),
            kept=dict(kept),
            columns=dict(columns),
            keys=tuple(name.lower() for name in self.config.unique_key),
            forgotten=tuple(request.id for request in self.facts.target.forget),
            base_version=self.state.version,
        )


@dataclass(frozen=True)
class Touched:
    """The candidates that a change touches: `query` gives those that there are now, `anchors` (column of the state → column of the
    affected rows) tell which of the state they stand for."""

    query: str
    anchors: Mapping[str, str]


def drop_draws(columns: ColumnPlan) -> Step:
    """Drop the draws of candidates that are gone, once the table is published: until then they tell what left by the clock from
    what the source lost, and a run that fails has lost none."""
    args = {"relation": "state", "stage": "state_stage", "keys": columns.keys}
    return Step("delete_from", args, when=When.STATE_GONE)


def keep_draws(known: Known, touched: Touched | None = None) -> StateSteps:
    """Draw for the candidates of a random filter that have no draw yet; of all of them, or of those that are `touched`. Raises
    NotIncremental where the draws of others are at stake."""
    rewritten, state, seed = known.rewritten, known.state, known.seed
    before = _draws_before(known)
    wanted = {c.name.lower(): c.name for c in rewritten.draw_columns}
    there = {c.name.lower(): c.name for c in state.columns} if state.exists else {}
    former = (before.keys if before else ()) or [name for name in there if not name.startswith("__mv_")]
    prints, published = column_prints(known.analysis, rewritten.columns), known.facts.target.record
    prints_before = published.of_columns(known.analysis.fingerprint, prints).columns if published else {}
    identity = row_identity(known.config.unique_key, former, wanted, there, prints, prints_before)
    types = {c.name.lower(): c.type.lower() for c in state.columns} if state.exists else {}
    keys = {name.lower() for name in known.config.unique_key}
    now = {c.name.lower(): c.type.lower() for c in rewritten.draw_columns if c.name.lower() in keys}
    if any(types.get(name, kind) != kind for name, kind in now.items()):
        identity = identity.retyped()
    trusted = known.standing.trusted and bool(identity.pairs)
    # a run that drew for another filter has died before it published, and its SQL was taken back
    ahead = trusted and seed.trial_sql is not None and any(c.fresh for c in _draw_columns(known, before, True))
    trusted = trusted and not ahead
    steps: list[Step] = []
    existing: str | None = None
    if trusted:
        existing, then = known.relation, "its draws are read as they were before"
    elif seed.trial_sql and seed.accepted_sql:
        steps.append(Step("stage_query", {"into": "trials", "query": seed.trial_sql}))
        existing, then = (
            _picked(rewritten.draw_columns, seed.accepted_sql),
            "rows of the table stay, all others draw anew",
        )
    else:
        then = "all rows draw anew"
    notes = known.problem(then)
    left = trusted and seed.left_sql is not None
    if left:
        trusted_state = relation("state") if known.standing.at_version is None else known.relation
        existing = _left(rewritten.draw_columns, trusted_state, seed.left_sql or "")
        notes.append(f"{known.facts.model}__state: {_DIED}; they are dropped now")
    elif trusted and known.facts.target.record is not None and draws_to_drop(state, known.facts.target.record):
        notes.append(
            f"{known.facts.model}__state: {_DIED}, and which they are cannot be told (its SQL was another, or what it read is gone); a row that came back keeps its draw"
        )
    if ahead:
        notes.append(f"{known.facts.model}__state: its draws are those of another filter; {then}")
    elif not trusted and known.standing.trusted:
        notes.append(f"unique_key changed: the draws of the filter cannot be found by it; {then}")
    staged = _draw_columns(known, before if trusted else None, existing is not None)
    anew = [c for c in staged if c.fresh]
    if anew and trusted:
        notes.append("the draws of the filter changed: all rows draw anew")
    record = known.record(rewritten.draw_fingerprints, {})
    replaces = (
        not trusted
        or left
        or identity.rekeyed
        or known.standing.at_version is not None
        or state.record is None
        or _names(state.columns) != _names(rewritten.draw_columns)
        or any(c.stands_in for c in staged)
    )
    plan = ColumnPlan(staged, identity=identity)
    if touched is not None and (not trusted or replaces or anew or plan.found_by):
        raise NotIncremental("DRAWS_ANEW", "draws of the filter are not the ones that its state table has")
    stage: dict[str, Any] = {
        "into": "state_stage",
        "query": rewritten.draw_sql,
        "columns": staged,
        "target": existing,
        "all_rows": replaces,
        "keep_missing": False,
        "forget": (),
        "identity": plan.found_by if trusted else None,
    }
    if touched is not None:
        listed = [{"column": c, "affected": a, "test": "="} for c, a in touched.anchors.items()]
        stage |= {"query": touched.query, "affected": relation("affected"), "anchors": listed, "images": {}}
    steps.append(Step("stage_changes", stage))
    steps += _publish(known, staged, record, replaces, deletes=False)
    return StateSteps(tuple(steps), record, tuple(notes), state.turn)


def _draws_before(known: Known) -> KeptRecord | None:
    if known.state.record is not None:
        return known.state.record.of_columns
    record = known.facts.target.record
    return KeptRecord(record.kept, record.kept) if record else None


def _draw_columns(known: Known, before: KeptRecord | None, found: bool) -> tuple[StagedColumn, ...]:
    return tuple(_draw_column(c, known, before, found) for c in known.rewritten.draw_columns)


def _draw_column(column: Column, known: Known, before: KeptRecord | None, found: bool) -> StagedColumn:
    """A draw is the one that was kept if it is written as it was, wherever it stands among the others."""
    if column.name.lower() in {key.lower() for key in known.config.unique_key}:
        # a column that came to the key stands in trials, and not in a state of before
        there = found and (before is None or known.state.has(column.name))
        return StagedColumn(column.name, column.type, Role.KEY, in_target=there)
    if before is None:
        return StagedColumn(column.name, column.type, Role.KEPT, in_target=found)
    prints = known.rewritten.draw_fingerprints
    own, kept = prints.get(column.name), before.kept
    if kept.get(column.name.lower(), own) == own and known.state.has(column.name):
        return StagedColumn(column.name, column.type, Role.KEPT)
    free = [n for n, p in kept.items() if p == own and known.state.has(n) and prints.get(n) != own]
    if free:
        return StagedColumn(column.name, column.type, Role.KEPT, stands_in=free[0])
    there = known.state.has(column.name)
    comparable = any(c.name.lower() == column.name.lower() and same_type(c, column) for c in known.state.columns)
    return StagedColumn(column.name, column.type, Role.KEPT, in_target=comparable, fresh=there)


def _left(columns: Sequence[Column], state: str, candidates: str) -> str:
    """The draws of these candidates."""
    keys = [quoted(c.name) for c in columns if not c.name.startswith(DRAW)]
    same = " AND ".join(f"__mv_c.{key} = __mv_d.{key}" for key in keys)
    return f"(SELECT * FROM {state} AS __mv_d WHERE EXISTS (SELECT 1 FROM (\n{candidates}\n) AS __mv_c WHERE {same}))"


def _picked(columns: Sequence[Column], accepted: str) -> str:
    """One accepted trial for each key: the first, because a choice by value would not be a draw any more."""
    names = ", ".join(quoted(c.name) for c in columns)
    keys = ", ".join(quoted(c.name) for c in columns if not c.name.startswith(DRAW))
    return (
        f"(SELECT {names} FROM (SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY {TRIAL}) AS __mv_first FROM (\n"
        f"{accepted}\n)) WHERE __mv_first = 1)"
    )


def remember(known: Known) -> StateSteps:
    """Bring the table of remembered rows up to date: rows seen now are added or updated, none leaves because the source
    lost it. Committed before the target, so that a run that dies in between has lost nothing."""
    rewritten, state, target = known.rewritten, known.state, known.facts.target
    assert rewritten.unclocked_sql is not None
    bounded = (*rewritten.columns, *BOUNDS)
    prints = column_prints(known.analysis, rewritten.columns)
    of_target = target.record.of_columns(known.analysis.fingerprint, prints) if target.record else None
    trusted = known.standing.trusted
    done = state.record.forgotten if trusted and state.record else ()
    waiting = tuple(request for request in target.forget if request.id not in done)
    there = state.columns if trusted else (*target.columns, *BOUNDS)
    like = TargetFacts(exists=trusted or target.exists, columns=there, forget=waiting, uncastable=target.uncastable)
    before = state.record.of_columns if trusted and state.record else of_target
    config = replace(known.config, on_schema_change="sync_all_columns")
    plan = plan_columns(known.analysis, rewritten.columns, like, config, before)
    names = {c.name for c in plan.columns}
    bounds = [StagedColumn(c.name, c.type, Role.DATA, in_target=like.exists) for c in BOUNDS if c.name not in names]
    staged = (*(c for c in plan.columns if c.name not in (VALID_FROM, VALID_TO)), *bounds)
    record = known.record(plan.kept_prints, plan.prints)
    replaces = (
        not trusted
        or plan.identity.rekeyed
        or known.standing.at_version is not None
        or state.record is None
        or _names(state.columns) != _names(bounded)
    )
    query = f"SELECT * FROM (\n{rewritten.unclocked_sql}\n) WHERE {_stays(rewritten)}"
    if trusted and not plan.identity.rekeyed:
        query = _with_ended(known, [c.name for c in bounded])
    existing, then = (known.relation, "its rows are read as they were before") if trusted else _from_target(known)
    notes = known.problem(then)
    if not notes and not trusted and target.exists and known.seed.bounds is None:
        notes.append(then)
    stage = {
        "into": "state_stage",
        "query": query,
        "columns": staged,
        "target": existing if plan.identity.pairs else None,
        "all_rows": replaces,
        "keep_missing": trusted or known.seed.bounds is not None,
        "forget": flags(waiting),
        "identity": plan.found_by,
    }
    return StateSteps(
        (Step("stage_changes", stage), *_publish(known, staged, record, replaces)), record, tuple(notes), state.turn
    )


def _stays(rewritten: Rewritten) -> str:
    """Whether a row has its window still, or ahead."""
    return f"({VALID_TO} IS NULL OR {VALID_TO} > {rewritten.as_of_literal})"


def _with_ended(known: Known, columns: Sequence[str]) -> str:
    """The rows that have their windows still or ahead, and one of each other key that is remembered: its window ends now, because the source
    says so, which is another thing than a row that the source has lost."""
    keys = [quoted(name) for name in known.config.unique_key]
    listed, same = ", ".join(keys), " AND ".join(f"__mv_s.{key} = __mv_q.{key}" for key in keys)
    # not an older row of the key, which had ended before the remembered one began
    same += f" AND (__mv_s.{VALID_FROM} IS NULL OR __mv_q.{VALID_TO} > __mv_s.{VALID_FROM})"
    seen = relation("state") if known.relation == "state" else known.relation
    return f"""SELECT {", ".join(map(quoted, columns))} FROM (
SELECT *, bool_or(__mv_stays) OVER (PARTITION BY {listed}) AS __mv_any,
row_number() OVER (PARTITION BY {listed} ORDER BY {VALID_TO} DESC) AS __mv_last FROM (
SELECT *, {_stays(known.rewritten)} AS __mv_stays FROM (
{known.rewritten.unclocked_sql}
)
) AS __mv_q WHERE __mv_stays OR EXISTS (SELECT 1 FROM {seen} AS __mv_s WHERE {same})
) WHERE __mv_stays OR (NOT __mv_any AND __mv_last = 1)"""


def _from_target(known: Known) -> tuple[str | None, str]:
    """The rows of the model's table as remembered ones, and what to say of it."""
    if not known.facts.target.exists:
        return None, "remembered are the rows that the source has now"
    start, end = known.seed.bounds or ("CAST(NULL AS TIMESTAMP)",) * 2
    then = "rows of the table are remembered with the values they have"
    if known.seed.bounds is None:
        then += ", but not those that the source has lost: no column of the table tells when they leave their window"
    return f"(SELECT *, {start} AS {VALID_FROM}, {end} AS {VALID_TO} FROM {relation(known.kept_in)})", then


def flags(requests: Sequence[Any]) -> tuple[dict[str, str], ...]:
    """Markers of the rows whose kept values are to be forgotten: name and condition over the table's columns."""
    return tuple({"name": r.flag, "where": f"(\n{r.where}\n)" if r.where else "true"} for r in requests)


def _publish(
    known: Known, staged: tuple[StagedColumn, ...], record: StateRecord, replaces: bool, deletes: bool = True
) -> list[Step]:
    args: dict[str, Any] = {"relation": "state", "stage": "state_stage", "columns": staged}
    check_args: dict[str, Any] = {"stage": "state_stage", "keys": known.columns.keys, "into": "state"}
    if any(column.name == VALID_FROM for column in staged):
        check_args["of_all_instants"] = True
    check = Step("check_stage", check_args)
    if replaces:
        return [check, Step("replace_table" if known.state.exists else "create_table", args)]
    if deletes:
        steps = [check, Step("merge_into", args, when=When.STATE_CHANGED)]
    else:  # draws, which only another text of theirs changes
        merge = Step("merge_into", {**args, "deletes": False}, when=When.STATE_UPDATED)
        steps = [check, Step("append", args, when=When.STATE_NEW), merge]
    old = known.state.record
    if (
        old is None
        or (old.kept, old.columns, old.keys) != (record.kept, record.columns, record.keys)
        or record.forgotten
    ):
        steps.append(Step("record_only", {"relation": "state"}, when=When.STATE_UNCHANGED))
    return steps


def _names(columns: Sequence[Column]) -> set[tuple[str, str]]:
    return {(c.name.lower(), c.type.lower()) for c in columns}
