"""The facts of a dbt project for `spark-mv status` and `spark-mv report`: its manifest through dbt itself, its tables through the
adapter's connection, whichever method the profile names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from spark_mv.ai.results import TABLE_NAME as AI_RESULTS
from spark_mv.explain.project_model import MATERIALIZATION, compiled_file
from spark_mv.maintenance.config import column_names, with_meta_words
from spark_mv.query.syntax.table_name import parts_of, quoted
from spark_mv.report.condition import instant
from spark_mv.report.dbt_results import Failure, failures, with_failure
from spark_mv.report.facts import AiUse, Evaluation, ModelFacts, ProjectFacts, RunRow
from spark_mv.spark.adapter.hidden import Hidden
from spark_mv.spark.adapter.open_project import ProjectError, declared_functions, no_project, silence_dbt
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.own_tables import EVALUATED
from spark_mv.spark.run.project_tables import (
    ai_use,
    columns_of,
    evaluations_of,
    history_of,
    runs_of,
    tables_of,
)
from spark_mv.spark.run.run_history import TABLE as RUNS

SHOWN = (
    "refresh", "on_row_update", "on_source_delete", "on_schema_change", "on_ai_error", "on_model_change", "max_ai_calls",
    "max_rows_changed", "audit", "file_format", "partition_by", "cluster_by", "cluster_mode",
)  # fmt: skip
"""Settings that the report shows. Others may hold what is nobody's business (hooks, headers, the ai block)."""


@dataclass
class _Tables:
    """What was read of one schema."""

    names: frozenset[str] = frozenset()
    runs: Mapping[str, tuple[RunRow, ...]] = field(default_factory=dict)


def read_project(arguments: Sequence[str] = (), runs: int = 1000, with_sources: bool = True) -> ProjectFacts:
    """The facts, with up to `runs` runs of each model. `arguments` are dbt's own (--project-dir, --profiles-dir, --profile,
    --target, --vars). `with_sources`: also the columns of the tables that are read, one statement each. Raises
    ProjectError."""
    with connected(arguments) as (adapter, manifest):
        return _Reader(adapter, manifest).read(runs, with_sources)


@contextmanager
def connected(arguments: Sequence[str] = ()) -> Iterator[tuple[Any, Any]]:
    """The adapter of the project that dbt would take, with a connection, and the manifest. Raises ProjectError, also for what
    goes wrong inside."""
    manifest = _parsed(arguments)
    from dbt.adapters.factory import FACTORY

    adapter = FACTORY.adapters.get("spark_mv")
    if adapter is None:
        raise ProjectError("the profile's target is not of `type: spark_mv`")
    try:
        with adapter.connection_named("spark-mv"):
            adapter.set_macro_resolver(manifest)
            yield adapter, manifest
    except ProjectError:
        raise
    except Exception as error:
        raise ProjectError(Hidden.of(adapter.config).scrub(str(error))) from error
    finally:
        adapter.cleanup_connections()


def _parsed(arguments: Sequence[str]) -> Any:
    from dbt.cli.main import dbtRunner

    if missing := no_project(arguments):
        raise ProjectError(missing)
    silence_dbt()
    quiet = ["--quiet", "--log-level", "none", "--no-write-json", "--no-send-anonymous-usage-stats"]
    done = dbtRunner().invoke([*quiet, "parse", *arguments])
    if not done.success or done.result is None:
        raise ProjectError(str(done.exception or "dbt could not read the project; `dbt parse` says why"))
    return done.result


class _Reader:
    def __init__(self, adapter: Any, manifest: Any) -> None:
        self.adapter, self.manifest, self.config = adapter, manifest, adapter.config
        self.hidden = Hidden.of(self.config)
        self.query = Ask(adapter.query, adapter.mv_spark())
        self.notes: list[str] = []
        self.target = Path(self.config.project_root) / str(self.config.target_path)
        self.failures = self._failures()

    def _failures(self) -> Mapping[str, Failure]:
        file = self.target / "run_results.json"
        return failures(file.read_text(encoding="utf-8", errors="replace")) if file.is_file() else {}

    def read(self, runs: int, with_sources: bool) -> ProjectFacts:
        nodes = [n for n in self.manifest.nodes.values() if n.config.get("materialized") == MATERIALIZATION]
        nodes = sorted((n for n in nodes if n.config.get("enabled", True)), key=lambda node: node.unique_id)
        schemas: dict[str, _Tables] = {}
        for node in nodes:
            schemas.setdefault(_schema(self.adapter, node), _Tables())
        for schema, found in schemas.items():
            found.names = self._try(f"the tables of {schema}", partial(tables_of, self.query, schema), frozenset())
            if RUNS in found.names:
                ids = [node.unique_id for node in nodes if _schema(self.adapter, node) == schema]
                found.runs = self._try(f"{schema}.{RUNS}", partial(runs_of, self.query, schema, ids, runs), {})
        models = tuple(self._model(node, schemas[_schema(self.adapter, node)]) for node in nodes)
        sources = sorted({name for model in models if model.record for name in model.record.sources})
        return ProjectFacts(
            name=self.config.project_name,
            target=self.config.target_name,
            read_at=time.time(),
            connection=self._connection(),
            time_zone=self._try("the time zone", self._time_zone, "UTC"),
            models=models,
            ai=self._ai(schemas),
            views=self._views(),
            columns=columns_of(self.query, sources, self._note) if with_sources else {},
            functions=declared_functions(self.config),
            evaluations=self._evaluations(schemas),
            notes=tuple(self.notes),
        )

    def _note(self, text: str) -> None:
        self.notes.append(self.hidden.scrub(text))

    def _try(self, what: str, read: Callable[[], Any], otherwise: Any) -> Any:
        """What can be read is shown although something else cannot: the note says what is missing."""
        try:
            return read()
        except Exception as error:
            self._note(f"{what} could not be read: {error}")
            return otherwise

    def _model(self, node: Any, tables: _Tables) -> ModelFacts:
        relation = self.adapter.Relation.create_from(self.config, node)
        exists = relation.identifier.lower() in tables.names
        history = None
        if exists:
            history = self._try(
                f"the commits of {relation}", partial(history_of, self.query, relation.render(), node.unique_id), None
            )
        sql, problem = self._sql(node)
        said = node.config.to_dict()
        record_at = instant(history.record_at) if history else None
        runs = with_failure(
            tables.runs.get(node.unique_id, ()), self.failures.get(node.unique_id), str(node.relation_name), record_at
        )
        config = self._try(f"the settings of {node.name}", partial(with_meta_words, node.name, said), said)
        return ModelFacts(
            unique_id=node.unique_id,
            name=_name(node),
            relation=str(relation).replace("`", ""),
            schema=str(node.schema),
            path=str(node.original_file_path),
            description=self.hidden.scrub(node.description or ""),
            unique_key=column_names(config.get("unique_key")),
            freeze=column_names(config.get("freeze")),
            settings={name: self.hidden.scrub(str(config.get(name))) for name in SHOWN if config.get(name) is not None},
            reads=dict(self._reads(node)),
            read_by=tuple(sorted(_name(child) for child in _children(self.manifest, node.unique_id))),
            sql=self.hidden.scrub_sql(sql),
            exists=exists,
            version=history.version if history else None,
            record=history.record if history else None,
            recorded_at=history.record_at if history else "",
            foreign_operation=history.foreign_operation if history else None,
            runs=tuple(self.hidden.run(run) for run in runs),
            problem=self.hidden.scrub(problem),
        )

    def _reads(self, node: Any) -> Iterable[tuple[str, str]]:
        for unique_id in node.depends_on.nodes:
            found = self.manifest.nodes.get(unique_id) or self.manifest.sources.get(unique_id)
            if found is not None:
                kind = getattr(found.config, "materialized", "") or str(found.resource_type)
                yield str(found.relation_name or found.name).replace("`", ""), str(kind)

    def _sql(self, node: Any) -> tuple[str, str]:
        """The SELECT as the last run of dbt compiled it; compiled now where there is none. And why there is none."""
        if getattr(node, "language", "sql") == "python":  # as mv_frame_query writes it
            frame = self.adapter.mv_frame(self.adapter.Relation.create_from(self.config, node))
            return f"select * from {frame}", ""
        file = compiled_file(self.target, node.package_name, node.original_file_path)
        try:
            if file.is_file():
                return file.read_text(encoding="utf-8"), ""
            return str(self.adapter.mv_compile(node.unique_id)), ""
        except Exception as error:
            return "", f"it could not be compiled: {error}"

    def _views(self) -> dict[str, str]:
        found = {}
        for node in self.manifest.nodes.values():
            if node.config.get("materialized") == "view" and getattr(node, "language", "sql") == "sql":
                sql, problem = self._sql(node)
                if sql and not problem:
                    found[f"{node.schema}.{node.alias}"] = self.hidden.scrub_sql(sql)
        return found

    def _ai(self, schemas: Mapping[str, _Tables]) -> tuple[AiUse, ...]:
        named = (self.config.credentials.ai or {}).get("result_schema")
        found: tuple[AiUse, ...] = ()
        for schema in [quoted(*parts_of(named))] if named else schemas:
            names = schemas[schema].names if schema in schemas else None
            if names is None:
                names = self._try(f"the tables of {schema}", partial(tables_of, self.query, schema), frozenset())
            if AI_RESULTS in names:
                found += self._try(f"{schema}.{AI_RESULTS}", partial(ai_use, self.query, schema), ())
        return found

    def _evaluations(self, schemas: Mapping[str, _Tables]) -> tuple[Evaluation, ...]:
        found: tuple[Evaluation, ...] = ()
        for schema, tables in schemas.items():
            if EVALUATED in tables.names:
                found += self._try(f"{schema}.{EVALUATED}", partial(evaluations_of, self.query, schema), ())
        return found

    def _time_zone(self) -> str:
        return str(self.query("select current_timezone() as zone")[0]["zone"])

    def _connection(self) -> str:
        method = str(getattr(self.config.credentials.method, "value", self.config.credentials.method))
        release = str(self.query.spark.version) if self.query.spark is not None else ""
        return f"Spark {release}, method {method}".replace(" ,", ",")


def _children(manifest: Any, unique_id: str) -> Iterator[Any]:
    """What reads a model. The kind is asked first: what a seed depends on are macros, and it has no list of nodes."""
    for node in (*manifest.nodes.values(), *manifest.exposures.values()):
        if str(node.resource_type) in ("model", "snapshot", "exposure") and unique_id in node.depends_on.nodes:
            yield node


def _schema(adapter: Any, node: Any) -> str:
    return str(adapter.Relation.create_from(adapter.config, node).without_identifier())


def _name(node: Any) -> str:
    """With the version, as dbt writes it in a selection, where the model has several."""
    version = getattr(node, "version", None)
    return str(node.name) if version is None else f"{node.name}.v{version}"
