"""Upkeep of the AI answers of a project's models: ask again, remove what nobody refers to, views of who answered what."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from spark_mv.ai.batches.round import collect_batches
from spark_mv.ai.results import COLUMNS, quoted
from spark_mv.ai.settings import AiConfigError
from spark_mv.ai.similar_table import forget_sql, similar_table
from spark_mv.ai.upkeep import (
    costs_view_sql,
    errors_view_sql,
    marked_sql,
    provenance_sql,
    prune_sql,
    recompute_sql,
    unused_sql,
    used_sql,
)
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.errors import ConfigError, RefusedError, first_line, refused
from spark_mv.maintenance.facts import Column
from spark_mv.maintenance.strategies.no_op import setting_changes
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.row_condition import row_condition
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.run.ai import AiRunner
from spark_mv.spark.run.frozen_condition import why_no_condition
from spark_mv.spark.run.header import header_of, session_of
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import ASK_AGAIN_PROPERTY, describe, session_facts
from spark_mv.spark.run.operation_arguments import condition_text, days, flag, texts
from spark_mv.spark.run.planning import set_for, settings_for
from spark_mv.spark.run.prepare import looked
from spark_mv.spark.run.prepared import Prepared
from spark_mv.spark.run.read_model import read_model


def recompute(models: Models, errors_only: bool = False, where: str | None = None, beside: Models | None = None) -> str:
    """Ask the next runs of these models again for their answers. `where` is a condition over the result table. Raises RefusedError for what
    is none. The models `beside` them that share such an answer are told, too: they show one answer to one question."""
    flag("errors_only", errors_only)
    where, query = condition_text(where), models.query
    if where and (why := _why_not(query, where)):
        raise RefusedError(
            "RECOMPUTE_WHERE",
            f"where: {where!r} {why}. Nothing was changed. Write what stands behind WHERE, a condition on the columns of ai_results, such as "
            "\"model = 'old'\"",
        )
    lines = []
    if len(models.invocations) > 1:
        for _ in models.asking():  # one that cannot be read is refused before anything is changed
            pass
    for model in models.asking():
        calls, results = _calls(model), _results(model)
        mine = f"arguments_hash IN ({used_sql(calls)})"
        condition = f"(\n{where}\n) AND {mine}" if where else mine
        query(recompute_sql(results, model.invocation.invocation_id, errors_only=errors_only, where=condition))
        if marked := _marked(query, model):
            _tell(query, model)
        lines.append(f"{model.invocation.name}: the next run asks again for {marked:,} AI answers")
    others = [one for one in beside.one_by_one() if one.names[0] not in models.names] if beside else []
    return "\n".join([*lines, *(line for one in others for line in _share(one))])


def _why_not(query: Query, where: str) -> str:
    """Why a text is no condition on the rows of a result table; empty: it is one."""
    if why := why_no_condition(query, where, [Column(name, kind) for name, kind, _ in COLUMNS]):
        return why
    found = row_condition(where, "ai_results", {name: kind for name, kind, _ in COLUMNS})
    return found if isinstance(found, str) else ""


def _share(models: Models) -> Iterator[str]:
    """Tell one model that answers which it shows are asked again, where that is so."""
    (invocation,) = models.invocations
    try:
        for model in models.asking():
            if _marked(models.query, model):
                _tell(models.query, model)
                yield f"{invocation.name} shares some of these answers: its next run shows the new ones"
    except Exception as error:  # a model that cannot be read, or whose source is gone, has its own run to say so
        if getattr(error, "code", "") != "NO_AI_FUNCTION":
            yield f"whether {invocation.name} shares these answers is not known: {first_line(error)}"


def _marked(query: Query, model: Prepared) -> int:
    (row,) = query(marked_sql(_results(model), _calls(model), model.invocation.invocation_id))
    return int(row["n"])


def _tell(query: Query, model: Prepared) -> None:
    if model.facts.target.exists:
        request = uuid.uuid4().hex
        query(f"ALTER TABLE {model.invocation.target} SET TBLPROPERTIES ('{ASK_AGAIN_PROPERTY}' = '{request}')")


def collect(models: Models, gone: str | Sequence[str] = ()) -> str:
    """Take in the answers of batches that have ended; the models' next runs show them. The inputs of batches that are `gone` (an id, or
    several, that the endpoint does not know) are asked again."""
    given_up = texts("gone", gone)
    lines: list[str] = []
    seen: set[tuple[str, str]] = set()
    ids: set[str] = set()
    for model in models.asking():
        assert model.runner is not None
        if model.runner.settings.provider != "openai":
            continue
        place = replace(model.runner.batches(), say=lines.append)
        if (place.results_table, place.address) in seen:
            continue
        seen.add((place.results_table, place.address))
        place.make_table()
        found = collect_batches(place, given_up)
        ids |= {*found.seen}
        lines.append(f"{place.results_table}: {found.waiting:,} batches are under way at {place.address}")
    strange = [one for one in given_up if one not in ids] if seen else []
    lines += [
        f"gone: no open batch has the id {one}. Nothing was given up of it; was it taken in before?" for one in strange
    ]
    return "\n".join(lines) or "no model asks an endpoint that has batches"


def prune(models: Models, older_than_days: float = 30, dry_run: bool = False, include_unowned: bool = False) -> str:
    """Remove answers of this project that were written longer ago and that no row of these models, which are all of its
    models, refers to. What another project uses as well stays."""
    flag("dry_run", dry_run)
    flag("include_unowned", include_unowned)
    until = (datetime.now(timezone.utc) - timedelta(days=days("older_than_days", older_than_days))).strftime(
        "%Y-%m-%d %H:%M:%S.%f UTC"
    )
    used: dict[str, _Used] = {}
    try:
        for model in models.asking():
            _as_it_runs(model)
            used.setdefault(_results(model), _Used(model.invocation.project)).add(models.query, model)
        return "\n".join(
            _prune(models.query, results, found, until, dry_run, include_unowned)
            for results, found in sorted(used.items())
        )
    finally:
        for found in used.values():
            for table in found.elsewhere:
                models.query(f"DROP TABLE IF EXISTS {table}")


@dataclass
class _Used:
    """What models refer to: calls, to be evaluated in any session, and tables of hashes from sessions of models' own."""

    project: str
    calls: list[AiCall] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def add(self, query: Query, model: Prepared) -> None:
        if not header_of(model.invocation) and not settings_for(query, model.rewritten.sql):
            self.calls += _calls(model)
            return
        schema = _results(model).rsplit(".", 1)[0]
        self.elsewhere.append(f"{schema}.{quoted(f'ai_results__used_{uuid.uuid4().hex}')}")
        query(f"CREATE TABLE {self.elsewhere[-1]} USING parquet AS\n{used_sql(_calls(model))}")


def _as_it_runs(model: Prepared) -> None:
    """Raises RefusedError where this session would evaluate the model's requests otherwise than its last run did."""
    record = model.facts.target.record
    if record is not None and (differ := setting_changes(model.facts, record)):
        raise RefusedError(
            "OTHER_SESSION",
            f"model {model.invocation.name}: which answers its rows refer to cannot be told in this session: {differ[0].sentence} "
            "(a pre-hook may have set it: put that into sql_header, which is sent here too; or run the model first). Nothing was "
            "removed",
        )


def _prune(query: Query, results: str, used: _Used, until: str, dry_run: bool, include_unowned: bool) -> str:
    asked = (used.calls, until, used.project, include_unowned, used.elsewhere)
    project = quote(used.project)
    owner = f"coalesce(t.project, {project})" if include_unowned else "t.project"
    counted = (
        f"SELECT count(*) AS n FROM {results} AS t JOIN ({unused_sql(results, *asked)}) "
        f"AS s ON t.arguments_hash = s.gone AND {owner} = {project} AND t.called_at < timestamp '{until}' "
        "WHERE s.heir IS NULL OR t.status <> 'ok'"
    )
    removed = int(query(counted)[0]["n"])  # not every format's MERGE says what it did
    if dry_run:
        return f"{results}: {removed:,} rows would be removed"
    query(prune_sql(results, *asked))
    if describe(query, similar_table(results)) is not None:
        query(forget_sql(results))
    return f"{results}: {removed:,} rows removed"


def views(models: Models) -> str:
    """(Re)create ai_errors and ai_costs beside the result table, and <model>__ai_answers beside each model."""
    made: list[str] = []
    for model in models.asking():
        results = _results(model)
        schema = results.rsplit(".", 1)[0]
        for name, text in (("ai_errors", errors_view_sql), ("ai_costs", costs_view_sql)):
            view = f"{schema}.{quoted(name)}"
            if view not in made:
                models.query(text(view, results))
                made.append(view)
        view = f"{model.invocation.schema}.{quoted(model.invocation.identifier + '__ai_answers')}"
        if _runner(model).settings.salt_table:
            made.append(
                f"{view}: not made, because the hashes of questions are salted, and no view may read the salt of a session"
            )
            continue
        models.query(f"CREATE OR REPLACE VIEW {view} AS\n{provenance_sql(_calls(model), results)}")
        made.append(view)
    return "\n".join(made)


def answers(models: Models) -> str:
    """A SELECT of the inputs of one model's calls, with the state of each answer, see provenance_sql. The session is made ready for it."""
    (model,) = models.asking()
    set_for(models.adapter, model.rewritten.sql)
    return provenance_sql(_calls(model), _results(model))


@dataclass(frozen=True)
class Models:
    """The models of an operation, each looked at in the session of its own that a header makes."""

    adapter: Any
    invocations: Sequence[Invocation]
    profile: Mapping[str, Any]

    @property
    def query(self) -> Query:
        return self.adapter.query

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.invocations]

    def one_by_one(self) -> list[Models]:
        return [replace(self, invocations=[one]) for one in self.invocations]

    def asking(self) -> Iterator[Prepared]:
        """Those with AI functions, one after the other, while their session lasts. Raises RefusedError where there is none."""
        found = False
        for invocation in self.invocations:
            with ExitStack() as opened:
                try:
                    model = opened.enter_context(looked(self.adapter, invocation.by_any_strategy(), self.profile))
                except AiConfigError as error:  # a run of one model need not say whose block it is
                    said = QueryError(error.code, str(error).removeprefix(f"[{error.code}] "))
                    raise refused([said], f"model {invocation.name}: ") from None
                except Exception as error:
                    if len(self.invocations) > 1 and self._asks_nothing(invocation):
                        continue
                    if isinstance(error, ConfigError):
                        raise
                    if isinstance(error, RefusedError):
                        raise self._of(invocation, error) from error
                    why = f"model {invocation.name} cannot be read, so which answers it refers to is not known: {first_line(error)}"
                    raise RefusedError("AI_OPERATION", why) from error
                if model.ai is not None and model.ai.calls:
                    found = True
                    yield model
        if not found:
            names = ", ".join(asked.name for asked in self.invocations) or "no nondeterministic_mv in this project"
            raise RefusedError("NO_AI_FUNCTION", f"there is no AI function in {names}")

    def _asks_nothing(self, invocation: Invocation) -> bool:
        """Whether a model that cannot be run is known to have no AI function."""
        try:
            with session_of(self.adapter, invocation):
                query = Ask(self.query, self.adapter.mv_spark())
                read = read_model(
                    query, invocation, ModelConfig(unique_key=()), self.profile, session_facts(query, invocation.sql)
                )
        except Exception:  # it may have one
            return False
        unread = {error.code for error in read.analysis.errors} - {"MISSING_UNIQUE_KEY"}
        return not unread and Level.AI not in read.analysis.levels

    def _of(self, invocation: Invocation, error: RefusedError) -> RefusedError:
        """What a model is refused for, with the model's name, and why it matters where others are meant."""
        text = str(error).removeprefix(f"[{error.code}] ")
        name = f"model {invocation.name}"
        others = ""
        if len(self.invocations) > 1:
            others = f" (Every model of the project is read: {name} may refer to the same answers. Nothing was changed)"
        return refused([QueryError(error.code, f"{text}{others}")], "" if text.startswith(name) else f"{name}: ")


def _calls(model: Prepared) -> Sequence[AiCall]:
    return model.ai.calls if model.ai is not None else ()


def _runner(model: Prepared) -> AiRunner:
    assert model.runner is not None
    return model.runner


def _results(model: Prepared) -> str:
    return _runner(model).context.results_table
