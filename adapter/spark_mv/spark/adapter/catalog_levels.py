"""What dbt's catalogue says of the columns of a nondeterministic_mv that are more than deterministic: level, what becomes of their values,
and the cause in the SQL. It is the verdict of `spark-mv explain`, over the SQL that dbt has compiled; no statement is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_mv.explain.judgement import judge
from spark_mv.explain.parts import because
from spark_mv.explain.project_model import MATERIALIZATION
from spark_mv.maintenance.config import ModelConfig, read_config
from spark_mv.maintenance.errors import ConfigError
from spark_mv.query.analysis.verdict import ColumnVerdict
from spark_mv.query.functions.level import Level
from spark_mv.spark.adapter.open_project import declared_functions
from spark_mv.spark.run.config_words import declared_words


def column_levels(manifest: Any, config: Any, relation: Any) -> dict[str, str]:
    """Column → sentence, of the model whose table the relation is; empty for any other. `config` is dbt's RuntimeConfig."""
    node = _model_of(manifest, relation)
    sql = getattr(node, "compiled_code", None)
    if node is None or not sql:
        return {}
    words = {name: value for name, value in node.config.to_dict().items() if value is not None}
    if "on_schema_change" not in (node.unrendered_config or {}):
        words.pop("on_schema_change", None)
    try:
        own = read_config(node.name, words, declared_words())
    except ConfigError:
        return {}  # a run says what is wrong with it
    functions = declared_functions(config, own.ai)
    judged = judge(sql, unique_key=own.unique_key, freeze=own.freeze, functions=functions, model=node.name)
    return {
        column.name: f"{column.level.value}; {_policy(column, own)}; {because(column.cause)}".rstrip("; ")
        for column in judged.analysis.columns
        if column.level > Level.DETERMINISTIC or column.kept
    }


def level_stats(levels: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The same as statistics of dbt's catalogue, which shows these beside a table."""
    return {
        f"column_{name}": {
            "label": f"column {name}",
            "value": text,
            "description": "Level of determinism, what becomes of the values, and the cause",
            "include": True,
        }
        for name, text in levels.items()
    }


def _model_of(manifest: Any, relation: Any) -> Any:
    for node in getattr(manifest, "nodes", {}).values():
        if (
            str(node.resource_type) == "model"
            and node.config.materialized == MATERIALIZATION
            and (node.schema or "").lower() == (relation.schema or "").lower()
            and (node.alias or "").lower() == (relation.identifier or "").lower()
        ):
            return node
    return None


def _policy(column: ColumnVerdict, config: ModelConfig) -> str:
    if column.frozen:
        return "the first value of a key is kept (freeze)"
    if column.kept:
        redrawn = ", and drawn anew when the row changes (on_row_update: redraw)" if config.redraws(column.name) else ""
        return f"drawn once per key and kept{redrawn}"
    if Level.AI in column.levels:
        return f"answered once per input, kept in ai_results (on_ai_error: {config.on_ai_error})"
    if Level.COMMAND in column.levels:
        return "follows the clock at every run"
    if Level.ORDER_DEPENDENT in column.levels:
        return "depends on the order in which rows are seen"
    return "the value of the last run's session"
