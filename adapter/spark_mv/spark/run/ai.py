"""The AI calls of one run: which settings, which result table, and one round of calls after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spark_mv.ai.batches.round import Place, batchable, collect_batches, run_ai_round_in_batches
from spark_mv.ai.canary import Canary
from spark_mv.ai.driver_job import count_ai_round_on_driver, run_ai_round_on_driver
from spark_mv.ai.engine_python import WorkersCannot
from spark_mv.ai.expected import UNKNOWN
from spark_mv.ai.forecast import CallForecast, forecast
from spark_mv.ai.job import count_ai_round, run_ai_round
from spark_mv.ai.outcome import AiOutcome
from spark_mv.ai.project_budget import Spent, spent_so_far, within_periods
from spark_mv.ai.protocol import ProviderError
from spark_mv.ai.results import COLUMNS, Columns, add_columns_sql, create_sql, table_name
from spark_mv.ai.salt import check_salt, check_unsalted, create_salt_sql, mark_sql, properties_of, set_sql
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.similar_table import SIMILAR_COLUMNS, create_similar_sql, similar_table
from spark_mv.ai.work import endpoint_lock
from spark_mv.maintenance.ai_context import AiContext
from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.format_version import check_table
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.describe import read_description
from spark_mv.spark.formats.own_tables import made_by_another, make_table, own_format
from spark_mv.spark.run.canary import Asked, CanaryRun
from spark_mv.spark.run.look_up import describe

if TYPE_CHECKING:
    from spark_mv.query.ai_calls.ai_plan import AiCall
    from spark_mv.query.ai_calls.kept_answers import KeptAnswers

_CREATING = threading.Lock()
_COMPLETE: set[tuple[str, str]] = set()
"""Result tables, and the dbt invocation that found that they are of this release and have all columns."""


@dataclass
class AiRunner:
    """`context` is what the rewrite of calls needs."""

    adapter: Any
    model: str
    settings: AiSettings
    context: AiContext
    invocation_id: str
    as_of: datetime
    project: str = ""
    file_format: str | None = None  # the profile's default one
    configured: AiSettings | None = None  # while `settings` have what is left of the project's day and month
    spent: AiOutcome = field(default_factory=AiOutcome)  # by the rounds so far: budgets are those of a run

    def run(self, calls: Sequence[AiCall]) -> AiOutcome:
        """Execute the calls of one round: in batches where the settings say so, else directly. What was spent of a day is looked up when the round has
        its turn: the rounds that it waited for have spent, too."""
        with endpoint_lock(self.settings):
            self._keep_to_the_periods()
            self.settings.check_prices({model for call in calls for model in call.models})
            self._find_similar(calls)
            if self.settings.canary is None or self.settings.on_model_change == "keep":
                return self._run(calls)
            first = self._canaries(calls, self.settings.canary)
            return first.and_then(self._run(first.go_on))

    def _find_similar(self, calls: Sequence[AiCall]) -> None:
        """Before anything is asked: which inputs mean the same, where the settings want that."""
        if self.settings.dedupe is None or self.settings.dedupe.semantic is None:
            return
        from spark_mv.ai.providers.local import LocalProvider
        from spark_mv.ai.similar import find_similar

        embed = LocalProvider(None).vectors
        say = lambda line: self.adapter.note(self.model, line)  # noqa: E731
        try:
            find_similar(self._rows, calls, self.settings, self.context.results_table, self.project, embed, say)
        except ProviderError as error:
            raise RefusedError(
                "AI_SIMILAR",
                f"model {self.model}: dedupe.semantic compares texts by a model on the machine that runs dbt: {error}. Nothing was asked. "
                "Install it there, or take `semantic` away",
            ) from error

    def _run(self, calls: Sequence[AiCall]) -> AiOutcome:
        outcome, left = AiOutcome(), list(calls)
        if self.settings.mode != "direct":
            in_batches = [call for call in calls if batchable(call)]
            found = run_ai_round_in_batches(self.batches(), in_batches, self.spent) if in_batches else None
            if found is not None:
                self._tell(found)
                self.spent += found
                outcome, left = found, [call for call in calls if not batchable(call)]
        if not left:
            return outcome
        found = self._directly(left)
        if found.under_way and self.settings.mode == "direct" and self.settings.provider == "openai":
            found = self._after_batches(left, found)
        self._tell(found)
        self.spent += found
        return outcome + found

    def _canaries(self, calls: Sequence[AiCall], canary: Canary) -> Asked:
        """Asks the samples of calls whose model is a new one. A sample is no larger than the budget of a run."""
        most = (self.configured or self.settings).max_ai_calls
        canary = replace(canary, inputs=min(canary.inputs, most)) if most else canary
        run = CanaryRun(self.model, canary, self.context, self._rows, self._sampled, self.adapter.say)
        return run.ask(calls)

    def _sampled(self, call: AiCall) -> AiOutcome:
        found = self._directly([call])
        self.spent += found
        return found

    def _keep_to_the_periods(self) -> None:
        if self.configured is None:
            self.configured = self.settings
        table = self.context.results_table
        self.settings = within_periods(self._rows, self.configured, table, self.project, UNKNOWN, self.spent)

    def room(self) -> int | None:
        """How many calls the budgets of the run, and of the project's day and month, still allow; None: any number."""
        self._keep_to_the_periods()
        most = self.settings.max_ai_calls
        return None if most is None else max(0, most - self.spent.charged_calls)

    def _after_batches(self, calls: Sequence[AiCall], found: AiOutcome) -> AiOutcome:
        """The mode was another one before: what has come since is taken in, and what came back without an answer asked."""
        collected = collect_batches(self.batches())
        if not collected.batches:
            return found
        spent, self.spent = self.spent, self.spent + found
        again = self._directly(calls)
        self.spent = spent
        return replace(
            found + again,
            requested=again.requested,
            reused=again.reused - found.ok,
            blocked=max(0, again.blocked - found.errors),
            refused=max(0, again.refused - found.gave_up),
            under_way=again.under_way,
            left_for_later=again.left_for_later,
            collected=collected.answers + collected.errors,
        )

    def batches(self) -> Place:
        """Where batches of this endpoint are kept."""
        return Place(
            self._rows,
            self.context.results_table,
            self.settings,
            self.invocation_id,
            self.project,
            lambda line: self.adapter.say(f"model {self.model}: {line}"),
            file_format=_format(self.adapter, self.file_format),
            create=lambda table, statement: make_table(self.adapter.query, table, statement),
        )

    def _directly(self, calls: Sequence[AiCall]) -> AiOutcome:
        """On the executors, or here where no Python can run on the engine."""
        spark = self.adapter.mv_spark()
        more: dict[str, Any] = {
            "settings": self.settings,
            "results_table": self.context.results_table,
            "invocation_id": self.invocation_id,
            "project": self.project,
            "spent": self.spent,
            "on_progress": lambda progress: self.adapter.note(self.model, str(progress)),
        }
        if spark is None or self.settings.ask_from == "driver":
            return run_ai_round_on_driver(self._rows, calls, **more)
        try:
            return run_ai_round(spark, calls, as_of=self.as_of, **more)
        except WorkersCannot as found:
            self.adapter.warn(
                f"model {self.model}: {found}. dbt's own process asks instead; to have the executors ask, install what "
                "is missing there (see docs/ai.md); to silence this, set ask_from: driver in the profile's ai block"
            )
            more["spent"] = self.spent + found.done
            rest = run_ai_round_on_driver(self._rows, calls, **more)
            # what the executors have asked is neither a reuse of an earlier run's answer nor its error
            done, waiting = found.done, rest.blocked - rest.refused
            refused = rest.refused - done.gave_up
            waiting -= min(waiting, done.errors - done.gave_up)
            return done + replace(rest, reused=rest.reused - done.ok, blocked=waiting + refused, refused=refused)

    def _tell(self, outcome: AiOutcome) -> None:
        if outcome.error_example:
            self.adapter.say(f"model {self.model}: an AI call failed with {outcome.error_example}")
        if outcome.further:
            asked = outcome.calls + outcome.further
            self.adapter.say(
                f"model {self.model}: {outcome.calls:,} AI calls took {asked:,} requests to the models of the cascade"
            )
        if outcome.left_for_later:
            why = f": {outcome.message}" if outcome.message else ""
            self.adapter.say(f"model {self.model}: {outcome.left_for_later:,} AI calls are left for a later run{why}")

    def count(self, rounds: Sequence[Sequence[AiCall]]) -> AiOutcome:
        """What these rounds would ask now, without asking. Later rounds count only what the answers that are there already
        let them ask."""
        spark, outcome = self.adapter.mv_spark(), AiOutcome()
        more: dict[str, Any] = {"settings": self.settings, "results_table": self.context.results_table}
        for calls in rounds:
            if spark is None:
                outcome += count_ai_round_on_driver(self._rows, calls, **more)
            else:
                outcome += count_ai_round(spark, calls, **more)
        if len(rounds) > 1 and outcome.calls:
            outcome = replace(outcome, message="calls about answers that are still to come are not counted")
        return outcome

    def forecast(self, rounds: Sequence[Sequence[AiCall]]) -> list[CallForecast]:
        """What the calls of these rounds would cost now, a line for each."""
        table = self.context.results_table
        return [one for calls in rounds for one in forecast(self._rows, calls, self.settings, table)]

    def spent_so_far(self) -> dict[str, Spent]:
        """What the project has spent of its day and month, where there are budgets of them."""
        return spent_so_far(self._rows, self.settings, self.context.results_table, self.project, UNKNOWN)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.adapter.query(sql)]


def ai_runner(
    adapter: Any,
    model: str,
    schema: str,
    invocation_id: str,
    project: str,
    as_of: datetime,
    profile: Mapping[str, Any],
    own: Mapping[str, Any],
    unique_key: tuple[str, ...] = (),
    file_format: str | None = None,
    kept: KeptAnswers | None = None,
    before: Mapping[str, Sequence[str]] | None = None,
) -> AiRunner:
    """The runner for one model; `own` are the model's AI settings, which win over the profile's; `before`, see RunRecord.ai_before.

    Creates the result table where it is missing, because Spark cannot describe the query without it. Raises
    AiConfigError (a ValueError) for wrong settings and RefusedError where no provider is configured.
    """
    settings = AiSettings.from_config(profile, own)
    if not settings.configured:
        raise RefusedError(
            "NO_PROVIDER",
            f"model {model} calls AI functions, and no provider is configured. Add to the profile's target "
            "`ai: {provider: local}` (runs offline; pip install 'dbt-spark-mv[local]') or `ai: {provider: openai, "
            "model: …, api_key: \"{{ env_var('OPENAI_API_KEY') }}\"}`",
        )
    table = result_table(adapter, schema, settings, file_format, invocation_id)
    return AiRunner(
        adapter=adapter,
        model=model,
        settings=settings,
        context=AiContext(
            results_table=table,
            identity=replace(
                settings.identity(), before={name: tuple(known) for name, known in (before or {}).items()}
            ),
            functions=settings.functions,
            failing_keys=unique_key if settings.on_ai_error == "keep_old" else (),
            kept=kept,
            only_unanswered=settings.on_model_change == "keep",
        ),
        invocation_id=invocation_id,
        as_of=as_of,
        project=project,
        file_format=file_format,
    )


def result_table(adapter: Any, schema: str, settings: AiSettings, file_format: str | None, invocation_id: str) -> str:
    """The result table of models in a schema, which is there from now on. `file_format`: the profile's default one."""
    table = table_name(schema, settings.result_schema)
    kind, salt = _format(adapter, file_format), quoted_name(settings.salt_table or "")
    mark = _mark(adapter, table, salt, kind) if salt else None
    create = create_sql(table, kind, properties=properties_of(mark))
    _create(adapter, table, create, COLUMNS, invocation_id, lambda found: check_salt(table, found, salt, mark))
    if settings.dedupe is not None and settings.dedupe.semantic is not None:
        _create(adapter, similar_table(table), create_similar_sql(table, kind), SIMILAR_COLUMNS, invocation_id)
    return table


def _format(adapter: Any, file_format: str | None) -> str:
    return own_format(Ask(adapter.query, adapter.mv_spark()), file_format).name


def send_salt(adapter: Any, salt_table: str | None) -> None:
    """Into the session of this thread's connection, where it stays. The table is there; without one nothing is sent."""
    for statement in set_sql(quoted_name(salt_table)) if salt_table else ():
        adapter.query(statement)


def _mark(adapter: Any, table: str, salt_table: str, kind: str) -> str | None:
    """That of the salt, which this connection's session has from now on. Drawn where there is none, and no answer was salted."""
    if describe(adapter.query, salt_table) is None:
        found = describe(adapter.query, table)
        if describe(adapter.query, salt_table) is None:  # else another run has made both meanwhile
            check_unsalted(table, found.properties if found is not None else {}, salt_table)
        make_table(adapter.query, salt_table, create_salt_sql(salt_table, kind))
    send_salt(adapter, salt_table)
    mark = adapter.query(mark_sql())[0]["mark"]
    return None if mark is None else str(mark)


def _create(
    adapter: Any,
    table: str,
    statement: str,
    columns: Columns,
    invocation_id: str,
    check: Callable[[Mapping[str, str]], None] = lambda properties: None,
) -> None:
    """The first run of several models, or of several dbt processes, creates the table more than once at a time: Spark
    lets one of them win, and the others find the table at their second try. A table of an earlier release gets the columns
    that it lacks; that of a later one is refused before anything is asked: what is paid could not be kept in it. `check` looks
    at the table's properties."""
    with _CREATING:
        for last in (False, True):
            try:
                make_table(adapter.query, table, statement)
                if (table, invocation_id) not in _COMPLETE:
                    found = read_description(adapter.query(f"DESCRIBE TABLE EXTENDED {table}"))
                    there = {column.name: column.type for column in found.columns}
                    check_table(table, found.properties, there, {name: kind for name, kind, _ in columns})
                    check(found.properties)
                    alter = add_columns_sql(table, there, columns)
                    if alter is not None:
                        adapter.query(alter)
                    _COMPLETE.add((table, invocation_id))
                return
            except Exception as error:
                if last or not made_by_another(error):
                    raise
