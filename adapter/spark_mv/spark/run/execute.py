"""One run of one model: hands the plan's steps to the materialization one by one and executes what its macros render.

No decision is taken here that the plan has not named: a step is skipped only by its `when`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Protocol

from dbt.adapters.events.logging import AdapterLogger

from spark_mv.ai.outcome import AiOutcome
from spark_mv.maintenance.audit import Findings
from spark_mv.maintenance.errors import NotFollowed, RunFailed, first_line
from spark_mv.maintenance.key_range import KeyRange
from spark_mv.maintenance.pace import Pace
from spark_mv.maintenance.plan import Plan, Reason, Step
from spark_mv.maintenance.staged import Staged
from spark_mv.maintenance.steps.kinds import KINDS, Work
from spark_mv.spark.formats.turn import tagged
from spark_mv.spark.run.checks import HANDLERS
from spark_mv.spark.run.current import CurrentRun, KeyTexts, StepView
from spark_mv.spark.run.failures import ROWS_REFUSED, explained, not_tidied, rows_refused
from spark_mv.spark.run.planning import planned_once
from spark_mv.spark.run.publish import PREDICATE, drop, publish
from spark_mv.spark.run.publish_state import publish_state
from spark_mv.spark.run.response import MvResponse, message
from spark_mv.spark.run.session_pace import ended as ended_in
from spark_mv.spark.run.shared_changes import from_shared
from spark_mv.spark.run.stamps import ASIDE, begun, ended
from spark_mv.spark.run.step_args import step_args
from spark_mv.spark.session.ended import spark_has_ended

logger = AdapterLogger("Spark")


class Behind(Protocol):
    """What comes behind a run that has published, in the same turn of the materialization: its audit. `run` is the audit
    while it is under way, `replaced` whether it made the table anew."""

    run: MvRun | None
    findings: Findings | None
    replaced: bool

    def steps(self, done: MvRun) -> Iterator[StepView]: ...
    def execute(self, step: StepView, sql: str | None) -> None: ...


@dataclass
class MvRun(CurrentRun):
    """The steps of the plan, executed."""

    auditor: Behind | None = None
    _set: ExitStack = field(default_factory=ExitStack)

    @property
    def replaced(self) -> bool:
        """Whether the run made the table anew, so that comments, grants and constraints have to be set again."""
        return self.verb in ("CREATE", "REPLACE") or (self.auditor is not None and self.auditor.replaced)

    def want(self, checks: Sequence[Mapping[str, str]], described: Mapping[str, str], about: str = "") -> None:
        """Take in the model's contract and descriptions, those of columns and its own."""
        self.amend.want(checks, described, about)

    @property
    def undescribed(self) -> bool:
        return self.amend.undescribed

    def amendments(self) -> list[str]:
        """Statements that give the table what it lacks beside its rows."""
        return self.amend.after(self.replaced)

    def steps(self) -> Iterator[StepView]:
        """The steps to execute, in order. What a step finds out decides whether later ones with a `when` are due."""
        waiting = [relation for relation in self.leftovers if relation.endswith(f"_{ASIDE}`")]
        self._tell(self.plan.notes)
        begun(self.stamp)
        try:
            self._set.enter_context(tagged(self.session, self.settings))
            for relation in self.leftovers:
                if relation not in waiting:
                    self.statement(f"drop table if exists {relation}{self.with_files}")
            yield from self._due()
            straight = not self.broken
            while self.broken and self.plan.fallback is not None:
                self._drop_stages()
                self._wait()
                self.relations, self.in_files = {**self.relations, **self.in_files}, {}
                calls = AiOutcome(calls=self.ai.calls)  # made and paid, whatever became of the plan
                self._tell(note for note in self.plan.fallback.notes if note not in self.plan.notes)
                self.plan, self.ai, self.broken = self.plan.fallback, calls, ""
                yield from self._due()
            for relation in waiting:
                drop(self, relation)
            if straight and self.plan.steps and self.plan.record is not None:
                took = (datetime.now(timezone.utc) - self.started_at).total_seconds()
                ended_in(self.session, self.plan.chosen, Pace.of(self.plan.record.pace), took)
            if self.auditor is not None:
                yield from self.auditor.steps(self)
        finally:
            self._end()

    def _due(self) -> Iterator[StepView]:
        self.staged, self.key_texts = Staged(keys=KeyRange.of(self.plan.record)), KeyTexts()
        for step in self.plan.steps:
            if self.broken:
                return
            if self.staged.holds(step.when):
                for part in self._parts(step):
                    yield self._view(part)

    def _parts(self, step: Step) -> Iterable[Step]:
        """A step as the statements that the table's format has for it, or those that take from what another model has read."""
        if step.kind == "stage_source_changes":
            return from_shared(self, step)
        if step.kind != "replace_where" or self.format.replaces_by_key:
            return (step,)
        gone = {name: step.args[name] for name in ("relation", "predicate")}
        return (
            Step("delete_where", {**gone, "part": True}),
            Step("append", {k: v for k, v in step.args.items() if k != "predicate"}),
        )

    def execute(self, step: StepView, sql: str | None) -> None:
        """Execute one rendered step and take in what it says."""
        if self.auditor is not None and self.auditor.run is not None:
            self.auditor.execute(step, sql)
            return
        once = (self.plan.few or self.held) and not step.of.publishes
        try:
            with tagged(self.session, planned_once(self.session.mv_spark()) if once else {}):
                self._execute(step, sql)
        except Exception as error:
            if self.sharing and not spark_has_ended(error):
                logger.debug(f"model {self.plan.model}: changes are not shared: {first_line(error)}")
                self.sharing = False
                return
            if step.of.work is Work.CLEAN and not spark_has_ended(error):
                self.session.warn(not_tidied(self, error))
                return
            self._drop_stages()
            final = (isinstance(error, RunFailed) and not isinstance(error, NotFollowed)) or spark_has_ended(error)
            refused = step.kind == "create_table" and "inline" in step.args and rows_refused(error)
            if self.plan.fallback is None or final or (step.of.publishes and not refused):
                self._end()
                said = explained(self, step, error)
                if said is not error:
                    raise said from error
                raise
            # nothing is published yet: the whole query is asked instead, and says so itself if it is at fault
            self.broken = f"{step.kind}: {first_line(error)}"
            if refused:
                return  # the plan that stages rows says which, and why
            if isinstance(error, NotFollowed):
                self.plan = replace(self.plan, fallback=_without(self.plan.strategy, error, self.plan.fallback))
            else:
                whole = self.plan.fallback is not None and self.plan.fallback.strategy == "COMPLETE_RECOMPUTE"
                then = "recomputing completely" if whole else "trying by affected rows"
                self.session.warn(f"model {self.plan.model}: {self.plan.strategy} stopped at {self.broken}; {then}")
        except BaseException:
            self._end()
            raise

    def _execute(self, step: StepView, sql: str | None) -> None:
        if step.kind in HANDLERS:
            HANDLERS[step.kind](self, step, sql)
        elif step.of.publishes and step.of_model:
            publish(self, step, sql or "")
        elif step.of_state:
            publish_state(self, step, sql or "")
        else:
            self.statement(sql or "")

    def response(self) -> MvResponse:
        """The response for dbt: counts as fields, and as one line."""
        found = self.staged
        response = MvResponse(
            _message="",
            code=self.verb,
            rows_affected=found.rows,
            strategy=self.plan.strategy,
            rows_inserted=found.inserted,
            rows_updated=found.updated,
            rows_deleted=found.deleted,
            rows_evicted=found.evicted,
            values_kept=found.kept or 0,
            ai_calls=self.ai.calls,
            ai_reused=self.ai.reused,
            ai_errors=self.ai.errors + self.ai.blocked,
            ai_pending=self.ai.left_for_later,
            ai_under_way=self.ai.under_way,
            ai_collected=self.ai.collected,
            as_of=self.as_of,
            next_change_at=self.next_change_at,
            statements=self.statements,
            notes=list(self.plan.notes),
        )
        findings = self.auditor.findings if self.auditor is not None else None
        if findings is not None:
            response.audit_differences = None if findings.failed else findings.rows
            response.audit = findings.to_json()
        why = self.plan.reasons[0].sentence if self.plan.strategy == "NO_OP" and self.plan.reasons else ""
        response._message = message(response, self.verb, why, findings.short() if findings else "", self.plan.remark)
        return response

    # --- plumbing

    def _tell(self, notes: Iterable[str]) -> None:
        for note in notes:
            self.session.warn(f"model {self.plan.model}: {note}")

    def _wait(self) -> None:
        """For the statements that are sent beside those of the steps."""
        wait([sent for sent in (self.looking, self.asked) if sent is not None])
        self.looking = self.asked = None

    def _end(self) -> None:
        self._drop_stages()
        self._wait()
        self._set.close()
        ended(self.stamp)

    def _drop_stages(self) -> None:
        self.settle()  # it reads them
        made = {step.args.get("into") for step in self.plan.steps if KINDS[step.kind].work is Work.STAGE}
        for name in self.relations:
            if name in made and name != "state":
                try:
                    with_files = "" if self.in_memory(name) else self.with_files
                    self.session.query(f"drop table if exists {self.relations[name]}{with_files}")
                except Exception as error:  # a leftover is dropped by the next run; the first error matters more
                    if spark_has_ended(error):
                        return
                    self.session.warn(
                        f"{self.relations[name]} stays for now ({first_line(error)}); the next run drops it"
                    )

    def _view(self, step: Step) -> StepView:
        if step.args.get("failing") and not (self.plan.audit or self.ai.errors or self.ai.blocked):
            step = replace(step, args={**step.args, "failing": None, "failing_columns": ()})  # no answer is failing
        args = step_args(step, self.relations)
        kind, of_model = KINDS[step.kind], step.args.get("relation") == "target"
        of_state = kind.on_state and step.args.get("relation") == "state"
        written = self.state_format if of_state else self.format
        if kind.work is Work.STAGE:
            args["held"] = self.in_memory(step.args["into"])
        if kind.makes:
            names = [column.name for column in step.args["columns"]]
            args["properties"] = self.amend.properties(names, of_model, written.properties())
            args["using"] = written.name
            if of_model:
                args["layout"] = self.amend.layout
            args["relation"] = written.made_as(self.session.mv_spark(), args["relation"])
        elif (of_model and kind.publishes) or of_state:
            args["relation"] = written.written_as(args["relation"], self.stamp)
        if not self.shows_keys:
            args.pop("bound", None)
        if step.kind in ("check_stage", "create_table"):
            args["checks"] = [] if step.args.get("into") else list(self.amend.checks.values())
        if step.kind == "create_table":
            args["refused"] = ROWS_REFUSED
        if step.kind == "replace_where":
            args.setdefault("predicate", PREDICATE)
        if step.kind == "merge_into" and step.args["relation"] == "target":
            args["inserts"] = self.staged.inserts
            args["range"] = self.staged.keys.range(step.args["keys"][0])
        if self.asked is not None:
            args.pop("next_change", None)
        if step.kind == "stage_changes" and step.args.get("affected"):
            args["range"] = self.key_texts.affected
        return StepView(step.kind, args, of_model, of_state)


def _without(strategy: str, why: NotFollowed, fallback: Plan) -> Plan:
    """The plan that takes over, which says why the data kept the strategy from applying."""
    if fallback.strategy == strategy:
        return fallback
    reason = Reason(why.code, first_line(why).removeprefix(f"[{why.code}] "))
    said = tuple(
        replace(c, applies=False, reasons=(reason,)) if c.strategy == strategy else c for c in fallback.candidates
    )
    return replace(fallback, candidates=said)
