"""An audit on its way: a run of its own behind the run that it audits, in the same turn of the materialization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from spark_mv.ai.outcome import AiOutcome
from spark_mv.maintenance.audit import Findings, unauditable
from spark_mv.maintenance.decide_audit import decide_audit
from spark_mv.maintenance.errors import RunFailed
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.second_reading import EXACT
from spark_mv.maintenance.situation import Situation
from spark_mv.maintenance.staged import Staged
from spark_mv.maintenance.state import StateFacts
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.run.current import StepView
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.look_up import target_facts
from spark_mv.spark.run.prepared import Prepared


@dataclass
class Auditor:
    """`run` is the audit while it is under way, `findings` what it found. `asked`: by the user; else it is a second reading."""

    adapter: Any
    prepared: Prepared
    asked: bool = True
    run: MvRun | None = None
    findings: Findings | None = None
    replaced: bool = False

    def steps(self, done: MvRun) -> Iterator[StepView]:
        """The audit's steps, once the run `done` has published."""
        if not (self.asked or done.plan.second_reading):
            return  # the plan that was to be read twice gave way to another one
        kinds = tuple(step.kind for step in done.plan.steps)
        blank = Findings(done.plan.strategy, kinds, second_reading=not self.asked)
        why = "a source was written to while the run read it" if done.moved else unauditable(self.prepared.facts)
        situation = None
        if not why:
            situation, why = self._situation(done)
        if situation is None:
            self._report(replace(blank, failed=why))
            return
        self.run = audit = _beside(done, decide_audit(situation), situation.state)
        try:
            yield from audit.steps()
        finally:
            self.run, self.replaced = None, audit.replaced
            done.statements += audit.statements
        if audit.broken:
            self._report(replace(blank, failed=audit.broken))
            return
        found, again = audit.staged, audit.plan.fallback is None and audit.replaced
        self._report(
            replace(
                blank,
                missing=found.inserted,
                different=found.updated,
                extra=found.deleted + (audit.found.get("repeated", 0) if again else 0),
                unordered=audit.found.get("unordered", 0),
                repaired=audit.verb != "NO_OP" and bool(found.changed or again),
                examples=tuple(audit.found.get("examples", ())),
            )
        )

    def execute(self, step: StepView, sql: str | None) -> None:
        """One step of the audit. What breaks it does not undo the run: it is said, and the next run that is due audits."""
        assert self.run is not None
        try:
            self.run.execute(step, sql)
            if step.kind == "audit_examples" and (why := self._unanswered()):
                self.adapter.warn(f"model {self.prepared.invocation.name}: {why}")
                self._broken(why)
            if self.run.moved:
                self.run.broken = "a source was written to while the audit read it"
        except RunFailed as error:
            if step.kind == "check_limit":
                raise RunFailed("AUDIT_FAILED", f"the run itself is done; of its audit: {error}") from error
            self._broken(str(error) or type(error).__name__)
        except Exception as error:
            self._broken(str(error) or type(error).__name__)

    def _broken(self, why: str) -> None:
        assert self.run is not None
        self.run.plan = replace(self.run.plan, fallback=None)
        self.run.broken = why.strip().splitlines()[0]

    def _unanswered(self) -> str:
        """Why rows that differ tell nothing of the table: an audit asks no AI, and an answer that `ai_results` has no more would be
        NULL in the recompute, where the table has kept it."""
        runner, rounds = self.prepared.runner, self.prepared.rewritten.ai_rounds
        counted = runner.count(rounds) if runner is not None and rounds else AiOutcome()
        missing = counted.calls + counted.left_for_later
        return (
            f"the table differs from a recompute, and {missing:,} AI inputs have no answer in {runner.context.results_table} that "
            "would tell which is right (were rows of it deleted?). Nothing was repaired; the answers in the table stay"
            if missing and runner is not None
            else ""
        )

    def _situation(self, done: MvRun) -> tuple[Situation | None, str]:
        seen = self.prepared
        query = Ask(self.adapter.query, self.adapter.mv_spark())
        target = target_facts(query, seen.invocation.target, True)
        mine = done.verb == "NO_OP" or (target.record is not None and target.record.invocation_id == done.invocation_id)
        if not target.intact or not mine or (done.verb == "NO_OP" and target.version != seen.facts.target.version):
            return None, "somebody else wrote to the table meanwhile"
        return seen.to_audit(query, replace(seen.facts, target=target, full_refresh=False)), ""

    def _report(self, found: Findings) -> None:
        self.findings = found
        model = self.prepared.invocation.name
        if found.failed and not found.second_reading:
            self.adapter.warn(f"model {model}: the run is done, its audit could not be: {found.failed}")
        if found.rows:
            keys = "; ".join(f"{e['key']} ({e['what']})" for e in found.examples)
            what = (
                "Repaired in one commit"
                if found.repaired
                else "Nothing was repaired: which rows there are is not determined"
            )
            again = found.repaired and found.strategy not in EXACT
            then = f", and {found.strategy} is not taken again until the query changes" if again else ""
            self.adapter.warn(
                f"model {model}: AUDIT: after {found.strategy} ({', '.join(found.steps) or 'no step'}), the table differed from "
                f"a complete recompute in {found.rows:,} rows: {found.missing:,} missing, {found.different:,} different, "
                f"{found.extra:,} too many, e.g. {keys}. {what}{then}. See mv_runs.audit, and please report it"
            )
        if found.unordered and not found.second_reading:
            self.adapter.warn(
                f"model {model}: audit: {found.unordered:,} rows differ from a recompute only in columns that depend on an order "
                "which the query leaves open, or in the last digits of sums. They are left as they are; a total order "
                "in the query makes them one value"
            )


def _beside(done: MvRun, plan: Plan, state: StateFacts | None) -> MvRun:
    """A run of this plan that shares nothing with the one that is done but its names."""
    names = {**done.relations, **done.in_files}
    beside = {name: f"{names[name].removesuffix('`')}_audit`" for name in ("stage", "state_stage")}
    fresh: dict[str, Any] = {
        "staged": Staged(),
        "found": {},
        "moved": set(),
        "looking": None,
        "asked": None,
        "counting": None,
    }
    return replace(
        done,
        plan=plan,
        relations={**names, **beside},
        in_files={},
        leftovers=(),
        in_the_way=None,
        ai=AiOutcome(),
        statements=0,
        verb="NO_OP",
        state_version=None,
        state_found=state.newest if state is not None else None,
        next_change_at=None,
        broken="",
        auditor=None,
        **fresh,
    )
