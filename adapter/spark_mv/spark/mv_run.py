"""One run of one model: hands the plan's steps to the materialization one by one and executes what its macros render.

No decision is taken here that the plan has not named: a step is skipped only by its `when`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Protocol

from spark_mv.maintenance.changes import filled
from spark_mv.maintenance.columns import Role, StagedColumn
from spark_mv.maintenance.errors import NotFollowed, RunFailed
from spark_mv.maintenance.key_bound import bound_text
from spark_mv.maintenance.plan import Plan, Step
from spark_mv.maintenance.publish import FEW_KEYS, LARGE
from spark_mv.maintenance.record import SourceVersion
from spark_mv.maintenance.versions import MOVED
from spark_mv.spark.as_of import utc_text
from spark_mv.spark.commits import Ask
from spark_mv.spark.delta import USER_METADATA, latest_version, quoted
from spark_mv.spark.mv_keys import Keys
from spark_mv.spark.mv_publish import PREDICATE, between, in_list, published_by, tagged
from spark_mv.spark.mv_response import MvResponse, message
from spark_mv.spark.replace_using import can_replace_using, replace_using

PUBLISHES = frozenset(
    {"merge_into", "replace_table", "record_only", "append", "replace_where", "replace_using", "delete_where"}
)
SILENT = frozenset({"append", "replace_where", "replace_using"})
"""Statements whose result does not say whether Delta made them."""
TXN_APP = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
CHECK_WRITTEN = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
"""Delta's test of every written row against the predicate, compiled with all its keys. Here the predicate is made of the
keys of the very rows that are written."""


class Session(Protocol):
    """What a run needs of the adapter."""

    def query(self, sql: str) -> list[dict[str, Any]]: ...
    def warn(self, text: str) -> None: ...
    def mv_spark(self) -> Any: ...


@dataclass(frozen=True)
class StepView:
    """A step as the macros see it: its kind, and its arguments with relation names filled in."""

    kind: str
    args: Mapping[str, Any]


@dataclass
class MvRun:
    """`query_sql` is the model's SELECT as Spark evaluates it. `relations` gives the rendered name of each symbolic relation: target, stage, state, state_stage. `ai_round`
    executes the AI calls of one round and returns their outcome."""

    session: Session
    plan: Plan
    relations: Mapping[str, str]
    query_sql: str
    app_id: str
    as_of: str
    schema: str = ""
    model_id: str = ""
    invocation_id: str = ""
    started_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    leftovers: tuple[str, ...] = ()
    must_drop: bool = False
    ai_round: Callable[[int], Any] | None = None
    on_ai_error: str = "null"
    counts: dict[str, int] = field(default_factory=dict)
    statements: int = 0
    verb: str = "NO_OP"
    next_change_at: str | None = None
    ai: dict[str, int] = field(default_factory=dict)
    broken: str = ""
    moved: set[str] = field(default_factory=set)  # sources written to while this run read them
    predicate: str = ""
    affected_range: str = ""  # literals between which the affected anchors, and the staged keys, lie
    staged_range: str = ""
    keys: Keys = field(default_factory=Keys)

    @property
    def replaced(self) -> bool:
        """Whether the run made the table anew, so that comments, grants and constraints have to be set again."""
        return self.verb in ("CREATE", "REPLACE")

    def steps(self) -> Iterator[StepView]:
        """The steps to execute, in order. What a step finds out decides whether later ones with a `when` are due."""
        for relation in self.leftovers:
            self._statement(f"drop table if exists {relation}")
        try:
            yield from self._due()
            while self.broken and self.plan.fallback is not None:
                self._drop_stages()
                calls = {"calls": self.ai.get("calls", 0)}  # made and paid, whatever became of the plan
                self.plan, self.counts, self.ai, self.broken = self.plan.fallback, {}, calls, ""
                yield from self._due()
        finally:
            self._drop_stages()

    def _due(self) -> Iterator[StepView]:
        for step in self.plan.steps:
            if self.broken:
                return
            if step.when is None or self.counts.get(step.when, 0):
                yield self._view(step)

    def execute(self, step: StepView, sql: str | None) -> None:
        """Execute one rendered step and take in what it says."""
        try:
            handler = getattr(self, f"_do_{step.kind}", None)
            if handler is not None:
                handler(step, sql)
            elif step.kind in PUBLISHES and step.args["relation"] == self.relations["target"]:
                self._publish(step, sql or "")
            else:
                self._statement(sql or "")
        except Exception as error:
            self._drop_stages()
            final = isinstance(error, RunFailed) and not isinstance(error, NotFollowed)
            if self.plan.fallback is None or final or step.kind in PUBLISHES:
                raise
            # nothing is published yet: the whole query is asked instead, and says so itself if it is at fault
            self.broken = f"{step.kind}: {str(error).strip().splitlines()[0]}"
            if not isinstance(error, NotFollowed):
                whole = self.plan.fallback.strategy == "COMPLETE_RECOMPUTE"
                then = "recomputing completely" if whole else "trying by affected rows"
                self.session.warn(f"model {self.plan.model}: {self.plan.strategy} stopped at {self.broken}; {then}")
        except BaseException:
            self._drop_stages()
            raise

    def response(self) -> MvResponse:
        """The response for dbt: counts as fields, and as one line."""
        counts = self.counts
        response = MvResponse(
            _message="",
            code=self.verb,
            rows_affected=sum(counts.get(k, 0) for k in ("inserted", "updated", "deleted")),
            strategy=self.plan.strategy,
            rows_inserted=counts.get("inserted", 0),
            rows_updated=counts.get("updated", 0),
            rows_deleted=counts.get("deleted", 0),
            rows_evicted=counts.get("evicted", 0),
            values_kept=counts.get("kept", 0),
            ai_calls=self.ai.get("calls", 0),
            ai_reused=self.ai.get("reused", 0),
            ai_errors=self.ai.get("errors", 0) + self.ai.get("blocked", 0),
            ai_pending=self.ai.get("left_for_later", 0),
            as_of=self.as_of,
            next_change_at=self.next_change_at,
            statements=self.statements,
        )
        why = self.plan.reasons[0].sentence if self.plan.strategy == "NO_OP" and self.plan.reasons else ""
        response._message = message(response, self.verb, why)
        return response

    # --- what single kinds of step do beyond running their statement

    def _do_ai_round(self, step: StepView, sql: str | None) -> None:
        assert self.ai_round is not None
        outcome = self.ai_round(int(step.args["round"]))
        for name in ("calls", "reused", "errors", "blocked", "left_for_later"):
            self.ai[name] = self.ai.get(name, 0) + int(getattr(outcome, name))
        failed = outcome.errors + outcome.blocked
        if failed and self.on_ai_error == "fail":
            raise RunFailed(
                f"model {self.plan.model}: {failed:,} AI calls failed and on_ai_error is fail, so nothing was "
                "changed. Answers that came are kept and will not be paid again; see the errors in the result table, "
                "and run again once their cause is gone"
            )
        if failed:
            self.session.warn(
                f"model {self.plan.model}: {failed:,} AI calls failed; their values are NULL until a later run "
                "gets an answer (see status and error in the result table)"
            )

    def _do_check_stage(self, step: StepView, sql: str | None) -> None:
        row = self._statement(sql or "")[0]
        if row.get("unsure"):
            raise NotFollowed(f"model {self.plan.model}: {row['unsure']:,} groups have to be recomputed")
        if not row.get("typed", True):
            raise NotFollowed(
                f"model {self.plan.model}: a window compares a column with a value of another type. The table was not "
                "touched. Cast the value to the type of the column, or run once with refresh: auto"
            )
        if row["duplicate_keys"] or row["null_keys"]:
            found = []
            if row["duplicate_keys"]:
                found.append(
                    f"{row['duplicate_keys']:,} rows share a key with another, e.g. {row['duplicate_example']}"
                )
            if row["null_keys"]:
                found.append(f"{row['null_keys']:,} rows have a NULL in it, e.g. {row['null_example']}")
            raise self._wrong_keys(step, "; ".join(found))
        violated = {name[9:]: n for name, n in row.items() if name.startswith("violates ") and n}
        if violated:
            broken = "; ".join(f"{n:,} rows violate {name}" for name, n in violated.items())
            raise RunFailed(
                f"model {self.plan.model}: the contract does not hold: {broken}. The table was not touched. Correct the "
                "query or its sources, or change the constraint"
            )
        if step.args.get("into") == "state":
            self.counts["state_changed"] = int(row["inserted"] + row["updated"])
            return
        for name in ("inserted", "updated", "deleted", "remaining"):
            self.counts[name] = int(row[name])
        staged = sum(self.counts[name] for name in ("inserted", "updated", "deleted"))
        rewritten = staged > self.counts["inserted"]
        if row.get("of_the_table") is not None:
            table = json.loads(row["of_the_table"])
            bounds = [found for found in (row["next_change"], table.get("next_change")) if found is not None]
            row = {**row, "leaving": table["leaving"], "next_change": min(bounds, default=None)}
        self._count_leaving(int(row.get("leaving") or 0))
        self.counts["only_new"] = int(self.counts["changed"] == self.counts["inserted"] > 0)
        self._count_target(row.get("target_rows", step.args["target_rows"]), step.args["keeps"])
        self._found_next(row)
        self.keys = Keys.of(self.plan.record)
        self.keys.staged(row)
        self.staged_range = self.keys.range(step.args["keys"][0])
        self._choose_rewrite(rewritten, row["deleted"] == 0, step.args["keys"])
        self.counts["no_bound"] = int(self.keys.need_bound)
        self._prove_new()

    def _do_check_leaving(self, step: StepView, sql: str | None) -> None:
        self.counts.update(inserted=0, updated=0, deleted=0)
        row = self._statement(sql or "")[0]
        self._count_leaving(int(row["leaving"]))
        self._found_next(row)
        self._count_target(step.args["target_rows"], step.args["keeps"])
        self.keys = Keys.of(self.plan.record)

    def _count_leaving(self, leaving: int) -> None:
        """Rows of the table that go without being staged."""
        counts = self.counts
        counts["deleted"] += leaving
        if leaving:
            counts["evicted"] = leaving
        counts["changed"] = sum(counts[name] for name in ("inserted", "updated", "deleted"))
        counts["unchanged"] = int(counts["changed"] == 0)
        counts["only_leave"] = int(counts["changed"] == leaving > 0)
        counts["come_and_leave"] = int(counts["changed"] > leaving > 0)

    def _count_target(self, before: int | None, keeps: bool) -> None:
        """Rows of the table after this run, from those `before` it, and how many of them kept their values."""
        if before is not None:
            self.counts["target_rows"] = int(before) + self.counts["inserted"] - self.counts["deleted"]
            if keeps and self.plan.record and self.plan.record.base_version is not None:
                self.counts["kept"] = int(before) - self.counts["deleted"]

    def _do_affected_range(self, step: StepView, sql: str | None) -> None:
        row = self._statement(sql or "")[0]
        names = [anchor["column"] for anchor in step.args["anchors"] if not row[f"nulls {anchor['column']}"]]
        self.keys = Keys.of(self.plan.record)
        keys = [column.name for column in self.plan.columns if column.role is Role.KEY]
        ends = {name: (row[f"low {name}"], row[f"high {name}"]) for name in names}
        ranges = [
            between(n, low, high, "r.")
            for n, (low, high) in ends.items()
            if [n] != keys or not self.keys.far(low, high)
        ]
        self.affected_range = " AND ".join(text for text in ranges if text is not None)

    def _do_key_range(self, step: StepView, sql: str | None) -> None:
        row = self._statement(sql or "")[0]
        self.keys.bound, self.keys.floor = bound_text(row["highest"]), bound_text(row["lowest"])
        self._prove_new()

    def _choose_rewrite(self, rewritten: bool, only_replaced: bool, keys: Sequence[str]) -> None:
        """By which statement rows of the table are written anew. A join finds them quickest, and a list of keys where it
        spares most of a large table."""
        rows = self.counts.get("target_rows", 0)
        small = rows < LARGE or self.counts["changed"] > FEW_KEYS
        join = (
            rewritten
            and only_replaced
            and (small or not self.staged_range or self.keys.spread)
            and can_replace_using(self.session.mv_spark(), keys)
        )
        self.counts["by_join"] = int(join)
        self.counts["by_list"] = self.counts["many_keys"] = int(rewritten and not join)

    def _prove_new(self) -> None:
        self.counts["unproven"] = int(self.counts["inserted"] > 0 and not self.keys.proven_new)

    def _do_check_new(self, step: StepView, sql: str | None) -> None:
        row = self._statement(sql or "")[0]
        if row["duplicate_keys"]:
            raise self._wrong_keys(
                step, f"{row['duplicate_keys']:,} rows share a key with another, e.g. {row['duplicate_example']}"
            )
        if row["returned_keys"]:
            raise NotFollowed(
                f"model {self.plan.model}: {row['returned_keys']:,} new rows have the key of a row that leaves its window "
                "in this run, whose kept values they take over. The table was not touched. Run once with refresh: auto"
            )

    def _do_staged_keys(self, step: StepView, sql: str | None) -> None:
        if len(step.args["keys"]) == 1 and self.counts["changed"] < int(step.args["limit"]):
            key = step.args["keys"][0]
            self.predicate = in_list(key, [row[key] for row in self._statement(sql or "")]) or ""
        self.counts["few_keys"] = int(bool(self.predicate))
        self.counts["many_keys"] = int(not self.predicate)

    def _do_replace_where(self, step: StepView, sql: str | None) -> None:
        self._publish(step, (sql or "").replace(PREDICATE, self.predicate))

    def _do_replace_using(self, step: StepView, sql: str | None) -> None:
        self._publish(step, sql or "")

    def _wrong_keys(self, step: StepView, found: str) -> RunFailed:
        return RunFailed(
            f"model {self.plan.model}: unique_key ({', '.join(step.args['keys'])}) does not identify the rows of the "
            f"query: {found}. The table was not touched. Remove the repeats in the query (for example with "
            "row_number() = 1 per key), or name the columns that do identify a row"
        )

    def _do_count_evicted(self, step: StepView, sql: str | None) -> None:
        self.counts["evicted"] = int(self._statement(sql or "")[0]["evicted"])

    def _do_next_change(self, step: StepView, sql: str | None) -> None:
        micros = None
        for query in (step.args.get("near"), sql):
            if query and micros is None:
                micros = self._statement(f"select unix_micros((\n{query}\n)) as next_change")[0]["next_change"]
        self._changes_next(micros)

    def _found_next(self, row: Mapping[str, Any]) -> None:
        """What a check says of the next bound, if it was asked."""
        if "next_change" in row:
            self._changes_next(row["next_change"])
            self.counts["far"] = int(row["next_change"] is None)

    def _changes_next(self, micros: int | None) -> None:
        """As a number: rows carry timestamps in the local time of this process, whatever the session's zone is."""
        instant = None if micros is None else datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=micros)
        self.next_change_at = utc_text(instant) if instant else None

    def _do_confirm_sources(self, step: StepView, sql: str | None) -> None:
        for name, version in step.args["versions"].items():
            latest = latest_version(self._ask, quoted(name))
            if latest is None or latest.version != version:
                self.moved.add(name)

    # --- publishing

    def _publish(self, step: StepView, sql: str) -> None:
        assert self.plan.record is not None
        base = self.plan.record.base_version
        sources = self.plan.record.sources
        bound, floor = self.keys.after(replaced=step.kind == "replace_table")
        record = replace(
            self.plan.record,
            sources={n: SourceVersion(MOVED, "") if n in self.moved else v for n, v in sources.items()},
            next_change_at=self.next_change_at,
            ai_pending=sum(self.ai.get(name, 0) for name in ("errors", "blocked", "left_for_later")),
            target_rows=self.counts.get("remaining" if step.kind == "replace_table" else "target_rows"),
            key_bound=bound,
            key_floor=floor,
        )
        settings = {USER_METADATA: record.to_json(), **self._turn(base)}
        if step.kind == "replace_where":
            settings[CHECK_WRITTEN] = "false"
        with tagged(self.session, settings):
            rows = self._replace_using(step, sql) if step.kind == "replace_using" else self._statement(sql)
        published = bool(rows)
        if step.kind in SILENT:
            published = published_by(self._ask, step.args["relation"], record)
        elif step.kind not in ("merge_into", "delete_where"):
            published = base is None or self._newer_than(base, step.args["relation"])
        if not published:
            raise RunFailed(
                f"model {self.plan.model}: another run published a new version of the table while this one was working, "
                "so this one changed nothing. Run it again: it continues from the new state and pays no AI answer twice"
            )
        # which statement does a merge best (MERGE, INSERT, REPLACE WHERE, DELETE) is not the reader's concern
        anew = "CREATE" if base is None else "REPLACE"
        self.verb = anew if step.kind == "replace_table" else "MERGE"

    def _replace_using(self, step: StepView, rows: str) -> list[dict[str, Any]]:
        self.statements += 1
        replace_using(self.session.mv_spark(), rows, step.args["relation"], step.args["keys"])
        return []

    def _turn(self, base: int | None) -> dict[str, str]:
        """Delta skips a write whose (application, version) is not above the last one: of two runs that started from the
        same version of the table, only the first can publish."""
        return {} if base is None else {TXN_APP: self.app_id, TXN_VERSION: str(base + 1)}

    def _newer_than(self, base: int, relation: str) -> bool:
        latest = latest_version(self._ask, relation)
        return latest is not None and latest.version > base

    # --- plumbing

    @property
    def _ask(self) -> Ask:
        return Ask(self._statement, self.session.mv_spark())

    def _statement(self, sql: str) -> list[dict[str, Any]]:
        self.statements += 1
        return self.session.query(sql)

    def _drop_stages(self) -> None:
        made = {step.args.get("into") for step in self.plan.steps if step.kind.startswith("stage_")}
        for name in self.relations:
            if name in made and name != "state":
                try:
                    self.session.query(f"drop table if exists {self.relations[name]}")
                except Exception as error:  # a leftover is dropped by the next run; the first error matters more
                    self.session.warn(f"could not drop {self.relations[name]}: {error}")

    def _args(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments with the names of the run's relations in their places."""
        args: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, str) and value in self.relations:
                args[name] = self.relations[value]
            elif name in ("query", "near", "next_change") and isinstance(value, str):
                args[name] = filled(value.replace("{state}", self.relations["state"]), self.relations)
            elif name == "inline":
                args[name] = self._args(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], StagedColumn):
                args[name] = [{**asdict(column), "role": column.role.value} for column in value]
            else:
                args[name] = value
        return args

    def _view(self, step: Step) -> StepView:
        args = self._args(step.args)
        if step.args.get("into") == "state":
            args["into"] = "state"
        if step.kind == "replace_where":
            args.setdefault("predicate", PREDICATE)
        if step.kind == "merge_into" and step.args["relation"] == "target":
            args["inserts"] = self.counts.get("inserted", 1) > 0
            args["range"] = self.staged_range
        if step.kind == "stage_changes" and step.args.get("affected"):
            args["range"] = self.affected_range
        return StepView(step.kind, args)
