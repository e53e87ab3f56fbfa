"""The adapter methods that the macros of `nondeterministic_mv` call."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timezone
from threading import Lock
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.base.meta import AdapterMeta
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from spark_mv.maintenance.config import SAFETY
from spark_mv.maintenance.errors import ConfigError, NotOurs, RefusedError, RunFailed, unread
from spark_mv.spark.session.ended import spark_has_ended
from spark_mv.spark.session.error_texts import readable

if TYPE_CHECKING:
    from spark_mv.spark.run.execute import MvRun
    from spark_mv.spark.run.response import MvResponse
    from spark_mv.spark.run.run_history import RunHistory

_HISTORY_LOCK = Lock()
logger = AdapterLogger("Spark")


def _said(error: Exception) -> Exception:
    """What Spark raises where no statement of the adapter's is sent: its own sentence, and what to do. A closed socket of the JVM's, which
    shows wherever Spark is asked, says nothing to anybody."""
    sparks = spark_has_ended(error) or type(error).__module__.startswith(("pyspark.", "py4j."))
    return DbtDatabaseError(readable(error)) if sparks and not isinstance(error, DbtRuntimeError) else error


class MvMixin(metaclass=AdapterMeta):
    """Methods on top of dbt-spark's adapter. All SQL goes through the connection of the calling thread.

    The engine is imported when the first model needs it: a project without one starts no slower for it.
    """

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Run one statement and return its rows as dictionaries by column name."""
        _, cursor = self.connections.add_query(sql, auto_begin=False)  # type: ignore[attr-defined]
        rows = cursor.fetchall() or []
        names = [column[0] for column in (cursor.description or [])]
        return [dict(zip(names, row, strict=False)) for row in rows]

    def warn(self, text: str) -> None:
        logger.warning(text)

    def say(self, text: str) -> None:
        """A line of progress on dbt's console."""
        logger.info(text)

    def note(self, model: str, text: str) -> None:
        """Progress of the step under way: into its bar on a terminal, else a line."""
        from spark_mv.spark.session.progress import note

        note(model, text, self.say)

    @available
    def mv_begin(self, invocation: Mapping[str, Any]) -> MvRun:
        """Facts, verdict and plan of one run; nothing is written yet. `invocation` is what the macro knows."""
        from spark_mv.spark.run.invocation import Invocation
        from spark_mv.spark.run.prepare import prepare

        with self._beginning(invocation):
            return prepare(self, Invocation.from_macro(invocation), self._mv_profile())

    @contextmanager
    def _beginning(self, invocation: Mapping[str, Any]) -> Iterator[None]:
        """What stops a run before it has a plan stands in the history of runs, too, and is said as dbt says such things."""
        started = datetime.now(timezone.utc)
        try:
            yield
        except Exception as error:
            said = _said(error)
            self._remember_stopped(invocation, started, str(said))
            if isinstance(error, NotOurs):  # the model compiles
                raise DbtRuntimeError(str(error)) from error
            if isinstance(error, ConfigError | RefusedError | ValueError):
                raise CompilationError(str(error)) from error
            if said is error:
                raise
            raise said from error

    @available
    def mv_before_python(self, invocation: Mapping[str, Any]) -> None:
        """What can be said of a Python model before its code runs: that code may ask and pay for models."""
        from spark_mv.spark.run.invocation import Invocation
        from spark_mv.spark.run.prepare import look_at_target

        with self._beginning(invocation):
            look_at_target(self, Invocation.from_macro(invocation), self._mv_profile())

    @available
    def mv_execute(self, run: MvRun, step: Any, sql: str | None) -> str:
        """Execute one step of the run with the statement that its macro rendered."""
        from spark_mv.spark.session.progress import Watch, spark_tasks

        try:
            with Watch(
                f"model {run.plan.model}: {step.kind.replace('_', ' ')}", self.say, spark_tasks(self.mv_spark())
            ):
                run.execute(step, sql)
        except (RunFailed, RefusedError) as error:
            self._remember(run, "error", str(error))
            raise DbtRuntimeError(str(error)) from error
        except Exception as error:
            said = _said(error)
            self._remember(run, "error", str(said))
            if said is error:
                raise
            raise said from error
        return ""

    @available
    def mv_response(self, run: MvRun) -> MvResponse:
        """What the run says of itself, for dbt and for the history of runs."""
        response = run.response()
        self._remember(run, "success", response._message, asdict(response))
        return response

    def _remember_stopped(self, invocation: Mapping[str, Any], started_at: datetime, message: str) -> None:
        from spark_mv.spark.run.run_history import Done

        if not self._mv_profile()["run_history"]:
            return
        model, seconds = invocation["model"]["unique_id"], (datetime.now(timezone.utc) - started_at).total_seconds()
        done = Done(None, model, invocation.get("invocation_id") or "", None, started_at, seconds, "error", message)
        self._run_history().add(invocation["schema"], done)

    def _remember(self, run: MvRun, status: str, message: str, response: Mapping[str, Any] | None = None) -> None:
        from spark_mv.spark.run.run_history import Done

        if not self._mv_profile()["run_history"]:
            return
        seconds = (datetime.now(timezone.utc) - run.started_at).total_seconds()
        done = Done(
            run.plan,
            run.model_id,
            run.invocation_id,
            run.as_of,
            run.started_at,
            seconds,
            status,
            message,
            response or {},
        )
        self._run_history().add(run.schema, done)

    def _run_history(self) -> RunHistory:
        from spark_mv.spark.run.run_history import RunHistory

        with _HISTORY_LOCK:
            found: RunHistory | None = getattr(self, "_mv_history", None)
            if found is None:
                found = self._mv_history = RunHistory()
            return found

    def cleanup_connections(self) -> None:
        """At the end of an invocation: the history of its runs is written, then connections are closed."""
        history = getattr(self, "_mv_history", None)
        if history is not None and history.waits:
            from spark_mv.spark.formats.own_tables import own_format_of

            try:
                with self.connection_named("mv_runs"):  # type: ignore[attr-defined]
                    history.write(self.query, self.warn, lambda: own_format_of(self))
            except Exception as error:  # the runs themselves are done
                self.warn(f"the history of runs was not written: {error}")
        super().cleanup_connections()  # type: ignore[misc]

    @available
    def mv_frame(self, relation: Any) -> Any:
        """The table of a Python model's frame, beside the model's own."""
        return relation.incorporate(path={"identifier": f"{relation.identifier}__frame"})

    @available
    def mv_relation_names(self, relation: Any) -> list[str]:
        """The tables and views of the relation's schema, from dbt's cache."""
        return [r.identifier for r in self.list_relations(relation.database, relation.schema)]  # type: ignore[attr-defined]

    @available
    def mv_clone_state(self, source: Any, copy: Any) -> None:
        """Beside the clone of a model's table: that of its state table."""
        from spark_mv.spark.formats.state_history import clone_state

        clone_state(self, str(source), str(copy))

    @available
    def mv_explain(self, invocation: Mapping[str, Any], form: str = "text") -> str:
        """What the next run would do and why, as text or JSON; nothing is executed."""
        from spark_mv.explain.run import explain_json, explain_text
        from spark_mv.spark.run.invocation import Invocation
        from spark_mv.spark.run.operation_arguments import one_of
        from spark_mv.spark.run.prepare import looked
        from spark_mv.spark.run.run_history import past_runs

        asked = replace(Invocation.from_macro(invocation), allow_future_as_of=True)  # nothing can leave by it
        try:
            one_of("format", form, ("text", "json"))
            with looked(self, asked, self._mv_profile()) as seen:
                asks = seen.runner if seen.plan.steps else None
                calls = asks.count(seen.ai_rounds) if asks else None
                costs = asks.forecast(seen.ai_rounds) if asks else []
        except (ConfigError, RefusedError, ValueError) as error:
            raise CompilationError(str(error)) from error
        except DbtDatabaseError as error:
            raise CompilationError(f"model {asked.name}: {unread(error, 'explained')}") from error
        explain = explain_json if form == "json" else explain_text
        runs = past_runs(self.query, seen.invocation.schema, seen.invocation.unique_id)
        return "\n" + explain(seen.facts, seen.analysis, seen.rewritten, seen.plan, calls, runs, costs)

    @available
    def mv_ai_cost(self, invocation: Mapping[str, Any]) -> dict[str, Any]:
        """What the model's next run would ask of models, see explain/project_cost.py; `error` is what it would stop with."""
        from spark_mv.explain.project_cost import model_cost
        from spark_mv.spark.run.invocation import Invocation
        from spark_mv.spark.run.prepare import looked

        asked = replace(Invocation.from_macro(invocation), allow_future_as_of=True)
        try:
            with looked(self, asked, self._mv_profile()) as seen:
                asks, rounds = seen.runner, seen.ai_rounds if seen.plan.steps else ()
                if asks is None:
                    return model_cost(asked.name, None, (), None, {})
                spent = asks.spent_so_far()
                return model_cost(asked.name, asks.settings, asks.forecast(rounds), asks.count(rounds), spent)
        except (ConfigError, RefusedError, ValueError) as error:
            return {"model": asked.name, "error": str(error)}
        except DbtRuntimeError as error:  # the other models are looked at all the same
            return {"model": asked.name, "error": unread(error, "looked at")}

    @available
    def mv_is_called(self, node: Mapping[str, Any], names: Sequence[str] | None) -> bool:
        """Whether one of the names means the node; without names, any does."""
        from spark_mv.explain.project_model import called

        return not names or bool(called(node) & set(names))

    @available
    def mv_macro_plan(self, invocation: Mapping[str, Any]) -> dict[str, Any]:
        """The model's plan for the macro-only mode, see spark/run/macro_plan.py; `error` is what a run would stop with."""
        from spark_mv.spark.run.invocation import Invocation
        from spark_mv.spark.run.macro_plan import macro_plan

        about = {"name": invocation["model"]["name"], "table": invocation["target"]}
        try:
            asked = Invocation.from_macro(invocation)
            language = str(invocation["model"].get("language") or "sql")
            return {**about, "plan": macro_plan(self, asked, self._mv_profile(), language)}
        except (ConfigError, RefusedError, ValueError) as error:
            return {**about, "error": str(error)}
        except DbtRuntimeError as error:  # the other models are planned all the same
            return {**about, "error": unread(error, "planned")}

    @available
    def mv_ai_eval(self, asked: Mapping[str, Any], schema: str, invocation_id: str, project: str) -> str:
        """Answers to labelled rows, asked and counted; returns what to tell the user."""
        from spark_mv.spark.run.ai_eval import evaluate

        try:
            return evaluate(self, asked, schema, invocation_id, project, self._mv_profile()["ai"])
        except (ConfigError, RefusedError, ValueError) as error:
            raise CompilationError(str(error)) from error

    @available
    def mv_ai_upkeep(self, what: str, invocations: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """recompute, prune or views over the AI answers of these models; returns what to tell the user. `beside` in the options: more models."""
        from spark_mv.spark.run import ai_upkeep
        from spark_mv.spark.run.invocation import Invocation

        def models(asked: Sequence[Mapping[str, Any]]) -> ai_upkeep.Models:
            return ai_upkeep.Models(self, [Invocation.from_macro(values) for values in asked], self._mv_profile())

        try:
            if "beside" in options:
                options["beside"] = models(options["beside"])
            return str(getattr(ai_upkeep, what)(models(invocations), **options))
        except (ConfigError, RefusedError, ValueError) as error:
            raise CompilationError(str(error)) from error

    @available
    def mv_ai_answers(self, invocation: Mapping[str, Any]) -> dict[str, str]:
        """For the test ai_error_rate_below: the `query` for the model's inputs of AI functions and the state of each answer, or why it is `refused`."""
        from spark_mv.spark.run import ai_upkeep
        from spark_mv.spark.run.ai import send_salt
        from spark_mv.spark.run.header import send_header
        from spark_mv.spark.run.invocation import Invocation

        asked = replace(Invocation.from_macro(invocation), allow_future_as_of=True)
        try:
            text = ai_upkeep.answers(ai_upkeep.Models(self, [asked], self._mv_profile()))
        except (ConfigError, RefusedError, ValueError) as error:
            return {"refused": str(error)}
        send_header(self, asked)  # into the session in which the test's own statement comes next
        send_salt(self, (self._mv_profile()["ai"] or {}).get("salt_table"))
        return {"query": text}

    @available
    def mv_recompute_args(self, invocation: Mapping[str, Any], sample: Any = None) -> dict[str, Any]:
        """For the test matches_recompute: arguments of the macro that stages where a table differs from its recompute, or why it is `refused`."""
        from spark_mv.spark.run.header import send_header
        from spark_mv.spark.run.invocation import Invocation
        from spark_mv.spark.run.recompute import recompute_args

        asked = Invocation.from_macro(invocation)
        send_header(self, asked)  # into the session in which the test's own statement comes next
        try:
            return recompute_args(self, asked, self._mv_profile(), sample)
        except (ConfigError, RefusedError, ValueError) as error:
            return {"refused": str(error)}

    @available
    def mv_unit_sql(
        self, sql: str, as_of: Any, answers: Mapping[str, Any], draws: Mapping[str, Any], started_at: datetime
    ) -> str:
        """For dbt's unit tests: a model's SELECT with the clock, the answers and the draws that the test gives."""
        from spark_mv.ai.settings import AiSettings
        from spark_mv.query.ai_calls.given import with_given

        try:
            functions = AiSettings.from_config(self._mv_profile()["ai"]).functions
            return self._at(as_of, with_given(sql, answers or {}, draws or {}, functions), started_at)
        except ValueError as error:
            raise CompilationError(str(error)) from error

    def _at(self, as_of: Any, sql: str, started_at: datetime) -> str:
        """The SELECT at an instant that is said; as it stands where none is."""
        from spark_mv.query.rewrite.pin import pin
        from spark_mv.spark.run.as_of import as_of_instant
        from spark_mv.spark.run.look_up import session_facts
        from spark_mv.spark.run.pins import run_pins

        if as_of is None:
            return sql
        session = session_facts(self.query)
        instant = as_of_instant(as_of, started_at, session.time_zone, allow_future=True)
        return pin(sql, run_pins(instant, session, {})).sql

    @available
    def mv_shown(self, sql: str, as_of: Any, started_at: datetime) -> str:
        """For `dbt show`: the SELECT at the instant that is said, with the AI answers that there are; nothing is asked. With the profile's
        settings: dbt does not say of which model it is."""
        from spark_mv.ai.settings import AiSettings
        from spark_mv.query.ai_calls.ai_plan import plan_ai
        from spark_mv.spark.run.ai import result_table

        credentials = self.config.credentials  # type: ignore[attr-defined]
        try:
            settings = AiSettings.from_config(self._mv_profile()["ai"])
            plan = plan_ai(sql, results_table="t", identity=settings.identity(), functions=settings.functions)
            if plan.errors:
                raise CompilationError(plan.errors[0].message)
            if plan.rounds:
                table = result_table(self, credentials.schema, settings, credentials.file_format, get_invocation_id())
                plan = plan_ai(sql, results_table=table, identity=settings.identity(), functions=settings.functions)
            return self._at(as_of, plan.sql if plan.rounds else sql, started_at)
        except ValueError as error:
            raise CompilationError(str(error)) from error

    @available
    def mv_compile(self, unique_id: str, materialized: str | None = None) -> str:
        """A model's SELECT as a run would compile it, ephemeral models included, under another materialization where one is given
        (`is_incremental()` asks for it). Operations have no compiled code."""
        from dbt.compilation import Compiler

        manifest = self.get_macro_resolver()  # type: ignore[attr-defined]
        node = copy.deepcopy(manifest.nodes[unique_id])
        # one that this command has compiled already brings its ephemeral models, and would get none
        node.extra_ctes, node.extra_ctes_injected = [], False
        if materialized is not None:
            node.config.materialized = materialized
        return str(Compiler(self.config).compile_node(node, manifest, write=False).compiled_code)  # type: ignore[attr-defined]

    def _mv_profile(self) -> Mapping[str, Any]:
        credentials = self.config.credentials  # type: ignore[attr-defined]
        return {
            "ai": getattr(credentials, "ai", None) or {},
            "functions": getattr(credentials, "functions", None) or {},
            "run_history": getattr(credentials, "run_history", True),
            "safety": {word: getattr(credentials, word, None) for word in (*SAFETY, "file_format")},
        }

    def mv_spark(self) -> Any:
        """The SparkSession behind the calling thread's connection, or None where there is none in this process."""
        return getattr(self.connections.get_thread_connection().handle, "spark", None)  # type: ignore[attr-defined]
