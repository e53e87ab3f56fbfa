"""What `dbt docs generate` says of the columns of a nondeterministic_mv: level, what becomes of their values, and the cause in the SQL. It is the
verdict of `spark-mv explain`, over the SQL that dbt has compiled; no statement is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spark_mv.ai.settings import AiConfigError, AiSettings
from spark_mv.explain.judgement import judge
from spark_mv.explain.parts import because
from spark_mv.explain.project_model import MATERIALIZATION
from spark_mv.maintenance.config import ModelConfig, read_config
from spark_mv.maintenance.errors import ConfigError
from spark_mv.query.analysis.verdict import ColumnVerdict
from spark_mv.query.functions.level import Level
from spark_mv.spark.adapter.open_project import declared_functions
from spark_mv.spark.run.config_words import declared_words

IN_META = "determinism"
"""The key in a model's `meta`, where each column has its own, and in the `meta` of each column that its YAML names."""


@dataclass(frozen=True)
class ColumnLevel:
    """One column. `policy`: what becomes of its values, `cause`: of a level above deterministic."""

    level: str
    policy: str = ""
    cause: str = ""

    def __str__(self) -> str:
        return "; ".join(part for part in (self.level, self.policy, self.cause) if part)


def column_levels(node: Any, config: Any) -> dict[str, ColumnLevel]:
    """Every column of a model of dbt's manifest, empty for one that is of another materialization or was not compiled. `config` is dbt's
    RuntimeConfig."""
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
    try:
        on_error = AiSettings.from_config(config.credentials.ai or {}, own.ai).on_ai_error
    except AiConfigError:
        return {}
    functions = declared_functions(config)
    judged = judge(sql, unique_key=own.unique_key, freeze=own.freeze, functions=functions, model=node.name)
    return {column.name: _level(column, own, on_error) for column in judged.analysis.columns}


def level_stats(levels: Mapping[str, ColumnLevel]) -> dict[str, dict[str, Any]]:
    """Those that are more than deterministic as statistics of dbt's catalogue, which shows these beside a table."""
    return {
        f"column_{name}": {
            "label": f"column {name}",
            "value": str(one),
            "description": "Level of determinism, what becomes of the values, and the cause",
            "include": True,
        }
        for name, one in levels.items()
        if one.policy
    }


def put_into_meta(node: Any, levels: Mapping[str, ColumnLevel]) -> None:
    """All of them into the node's `meta`, and each into that of its column where the model's YAML has the column. dbt writes its manifest once
    the catalogue is made; only that file shows them, and neither the config nor `state:modified` does."""
    if not levels:
        return
    said = {name: _plain(one) for name, one in levels.items()}
    node.meta = {**(node.meta or {}), IN_META: said}
    named = {name.lower(): one for name, one in said.items()}
    for name, column in node.columns.items():
        if found := named.get(name.lower()):
            column.meta = {**(column.meta or {}), IN_META: found}


def _plain(one: ColumnLevel) -> dict[str, str]:
    return {key: value for key, value in asdict(one).items() if value}


def _level(column: ColumnVerdict, config: ModelConfig, on_ai_error: str) -> ColumnLevel:
    if column.level > Level.DETERMINISTIC or column.kept:
        return ColumnLevel(column.level.value, _policy(column, config, on_ai_error), because(column.cause))
    return ColumnLevel(column.level.value)


def model_of(manifest: Any, relation: Any) -> Any:
    """The nondeterministic_mv whose table the relation is, None for any other relation."""
    for node in getattr(manifest, "nodes", {}).values():
        if (
            str(node.resource_type) == "model"
            and node.config.materialized == MATERIALIZATION
            and (node.schema or "").lower() == (relation.schema or "").lower()
            and (node.alias or "").lower() == (relation.identifier or "").lower()
        ):
            return node
    return None


def _policy(column: ColumnVerdict, config: ModelConfig, on_ai_error: str) -> str:
    if column.frozen:
        return "the first value of a key is kept (freeze)"
    if column.kept:
        redrawn = ", and drawn anew when the row changes (on_row_update: redraw)" if config.redraws(column.name) else ""
        return f"drawn once per key and kept{redrawn}"
    if Level.AI in column.levels:
        return f"answered once per input, kept in ai_results (on_ai_error: {on_ai_error})"
    if Level.COMMAND in column.levels:
        return "follows the clock at every run"
    if Level.ORDER_DEPENDENT in column.levels:
        return "depends on the order in which rows are seen"
    return "the value of the last run's session"
