"""The columns of a query's result, remembered from the last run: to ask Spark for them is to have it analyse the whole query."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from spark_mv.maintenance.facts import Column, RunFacts
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level


def result_print(facts: RunFacts, sql: str, analysis: Analysis) -> str:
    """A hash of all that decides the names and types of the result's columns: the model's SELECT, what it reads, through views, and
    the settings of the session, Spark's version among them. Empty where something else decides, too: the answers of AI
    functions, functions of the project's own, draws that the state table keeps."""
    drawn = analysis.rows_level is Level.NONDETERMINISTIC
    strange = any(level_of(name) is None and not name.startswith("'") for name, *_ in analysis.functions)
    if drawn or strange or Level.AI in analysis.levels or analysis.own_functions or facts.functions:
        return ""
    read: Mapping[str, object] = {
        source.name: [source.provider, source.view_text, *((c.name, c.type) for c in source.columns)]
        for source in facts.sources
    }
    parts = [sql, read, dict(facts.settings), facts.time_zone]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def remembered(facts: RunFacts) -> tuple[Column, ...] | None:
    """The columns of the result as the last run was told them, None where it has to be asked anew."""
    record = facts.target.record
    if record is None or not facts.result_print or record.result_print != facts.result_print or facts.full_refresh:
        return None
    return tuple(Column(name, kind) for name, kind in record.result) or None
