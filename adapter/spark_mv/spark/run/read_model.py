"""The model's SELECT, its verdict, and the tables that it reads, through views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.facts import SourceFacts
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.inline_views import View, inline_views
from spark_mv.query.syntax.table_name import parts_of, table_key
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import SessionFacts, source_facts
from spark_mv.spark.run.own_functions import own_functions
from spark_mv.spark.run.sealed_views import Functions, check_sealed, sealed, sealed_by_types


@dataclass(frozen=True)
class ReadModel:
    """`functions` are those that the profile, the project or the model declares; `own_functions` the definitions of those that
    the query calls."""

    model: str
    sql: str
    analysis: Analysis
    sources: Mapping[str, SourceFacts]
    functions: Functions
    own_functions: Mapping[str, str]

    @property
    def schemas(self) -> dict[str, dict[str, str]]:
        """Column types of each source."""
        return {name: {c.name: c.type for c in source.columns} for name, source in self.sources.items()}

    @property
    def view_texts(self) -> dict[str, str]:
        return {name: source.view_text for name, source in self.sources.items() if source.view_text}

    @property
    def whole_sql(self) -> str:
        """The SELECT with all views seen through."""
        views = {name: View(text, self._columns(name)) for name, text in self.view_texts.items()}
        return inline_views(self.sql, views)

    @property
    def volatile_sql(self) -> str:
        """The SELECT that shows what views hide of a clock, a draw, a model call or the session: these have to be part of it."""
        volatile = {}
        for name, text in self.view_texts.items():
            verdict = analyze(text, schemas=self.schemas, functions=self.functions, views=self.view_texts)
            if verdict.levels != {Level.DETERMINISTIC}:
                columns = self._columns(name)
                own = [c.name.lower() for c in verdict.columns] == [name.lower() for name in columns]
                volatile[name] = View(text, () if own else columns)
        return inline_views(self.sql, volatile)

    def verdict(self, sql: str) -> Analysis:
        """On a text that the engine made of the model's."""
        return analyze(
            sql,
            schemas=self.schemas,
            functions=self.functions,
            views=self.view_texts,
            model=self.model,
            rewritten=True,
        )

    def _columns(self, name: str) -> tuple[str, ...]:
        return tuple(c.name for c in self.sources[name].columns)


def read_model(
    query: Query, invocation: Invocation, config: ModelConfig, profile: Mapping[str, Any], session: SessionFacts
) -> ReadModel:
    """The verdict with the columns of all sources known and views looked through. Views may stand on views."""
    functions: Functions = {
        **profile.get("functions", {}),
        **invocation.functions,
        **declared_ai_functions(profile.get("ai") or {}),
    }
    sources: dict[str, SourceFacts] = {}
    while True:
        analysis = analyze(
            invocation.sql,
            unique_key=config.unique_key,
            schemas={name: {c.name: c.type for c in source.columns} for name, source in sources.items()} or None,
            functions=functions,
            freeze=config.freeze,
            views={name: source.view_text for name, source in sources.items() if source.view_text},
            model=invocation.name,
        )
        _refuse_itself(invocation, analysis)
        new = sealed(
            query, source_facts(query, [table.name for table in analysis.tables], sources), session, functions
        ) or sealed_by_types(query, sources, session, remember=not analysis.own_functions)
        if not new:
            break
        sources.update(new)
    check_sealed(query, sources, functions, invocation.name, partial(_refuse_itself, invocation))
    own, reading = own_functions(query, analysis.own_functions, functions, invocation.name)
    return ReadModel(invocation.name, invocation.sql, analysis, {**sources, **reading}, functions, own)


def _refuse_itself(invocation: Invocation, analysis: Analysis) -> None:
    """Raises RefusedError where the query reads the table that it makes: then each run has another query, and no rows are right."""
    own = parts_of(table_key(invocation.target))
    for table in analysis.tables:
        parts = parts_of(table_key(table.name))
        shared = min(len(parts), len(own))
        if shared > 1 and parts[-shared:] == own[-shared:]:
            through = f" (through {', '.join(table.via)})" if table.via else ""
            raise RefusedError(
                "READS_ITSELF",
                f"model {invocation.name}: its query reads {table.name}{through}, the table that it makes, so that each run would have another "
                "query. Read the sources instead: what the table has of random, AI and frozen columns is kept by itself, and `on_source_delete: keep` "
                "keeps rows that a source has lost",
            )


def declared_ai_functions(profile_ai: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The project's own AI functions, of the profile's ai block, as the analysis wants them declared."""
    return {name: {"determinism": "ai"} for name in (profile_ai.get("functions") or {})}
