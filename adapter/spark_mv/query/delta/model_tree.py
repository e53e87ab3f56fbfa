"""The tree of a model's query, with its windows: what the strategies follow changes through, in a run and in `explain`."""

from __future__ import annotations

from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.collations import refuse_collations
from spark_mv.query.delta.restrict import QueryTree, kept_spans, read_tree
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_scope_types import Schemas, schema_columns
from spark_mv.query.rewrite.clock_split import split_clock
from spark_mv.query.rewrite.pin import clock_spans


def model_tree(analysis: Analysis, schemas: Schemas, time_zone: str, sampled: bool = False) -> QueryTree:
    """`sampled` as in `read_tree`. Raises NotIncremental."""
    refuse_collations(analysis, schemas)
    if Level.COMMAND not in analysis.levels:
        return read_tree(analysis, None, (), sampled)
    words = analysis.word_columns
    split = split_clock(analysis.sql, schemas, time_zone, kept=kept_spans(analysis.sql, analysis), words=words)
    return read_tree(analysis, split, clock_spans(analysis.sql, schema_columns(schemas) | frozenset(words)), sampled)
