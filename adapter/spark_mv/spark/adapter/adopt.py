"""`adopt` and `eject` as dbt sees them: a model's node in, what to tell the user out; and the command line's way to the macros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_mv.explain.project_model import MATERIALIZATION
from spark_mv.maintenance.config import column_names
from spark_mv.maintenance.errors import ConfigError
from spark_mv.spark.adapter.model_text import own_words, with_config
from spark_mv.spark.adapter.read_project import connected
from spark_mv.spark.run import adopting, ejecting
from spark_mv.spark.run.adoption_text import adoption_text
from spark_mv.spark.run.header import session_of
from spark_mv.spark.run.invocation import Invocation

OF_INCREMENTAL = (
    "incremental_strategy",
    "incremental_predicates",
    "merge_update_columns",
    "incremental_apply_config_changes",
)
"""Words of an `incremental` model that say nothing here."""


def as_mv(node: Mapping[str, Any], unique_key: Any = None, freeze: Any = None) -> dict[str, Any]:
    """The node of a model as if it were a nondeterministic_mv. `was` is what it is."""
    config = {word: value for word, value in dict(node["config"]).items() if word not in OF_INCREMENTAL}
    was = str(config.get("materialized"))
    config["materialized"] = MATERIALIZATION
    if was != MATERIALIZATION:
        config.pop("on_schema_change", None)
    for word, value in (("unique_key", unique_key), ("freeze", freeze)):
        if names := column_names(value):
            config[word] = list(names)
    return {**node, "config": config, "was": was}


def adopt(
    adapter: Any, values: Mapping[str, Any], profile: Mapping[str, Any], apply: bool, record_statement: str
) -> str:
    """Raises RefusedError and what a run raises of the model's config and query."""
    invocation = Invocation.from_macro(values)
    with session_of(adapter, invocation):
        try:
            found = adopting.examine(adapter, invocation, profile)
        except ConfigError as error:
            raise ConfigError(invocation.name, [_with_option(problem) for problem in error.problems]) from error
        if apply:
            adopting.apply(adapter, found, record_statement)
    model, text = values["model"], adoption_text(found, apply)
    if model["was"] == MATERIALIZATION:
        return f"{text}\n\n`dbt run --select {invocation.name}` is next." if apply else text
    config = {
        "materialized": MATERIALIZATION,
        "unique_key": found.seen.config.unique_key,
        "freeze": list(found.seen.config.freeze),
    }
    remarks = ["Leave out is_incremental() and what depends on it."] if "is_incremental" in model["raw_code"] else []
    gone = (*OF_INCREMENTAL, "merge_exclude_columns", "on_schema_change")
    written = with_config(model["raw_code"], config, remarks, gone, model.get("language") == "python")
    return (
        f"{text}\n\nThe model is `{model['was']}`. Save it as nondeterministic_mv before the next run, in "
        f"{model['original_file_path']}:\n\n{written}"
    )


def _with_option(problem: str) -> str:
    return f"{problem}; `-k COLUMN` says it here" if problem.startswith("unique_key is missing") else problem


def eject(adapter: Any, values: Mapping[str, Any], profile: Mapping[str, Any], apply: bool) -> str:
    """Raises RefusedError and what a run raises of the model's config and query."""
    invocation = Invocation.from_macro(values)
    with session_of(adapter, invocation):
        found = ejecting.examine(adapter, invocation, profile)
        if apply:
            ejecting.apply(adapter, found)
    model = values["model"]
    python = model.get("language") == "python"
    gone = ejecting.OURS - found.config.keys()
    lost = sorted(gone & own_words(model["raw_code"], python)[0].keys() - {"freeze"})
    remarks = [
        *found.remarks,
        *([f"Left out, for `incremental` does not know them: {', '.join(lost)}."] if lost else []),
    ]
    written = with_config(model["raw_code"], found.config, remarks, gone, python)
    return (
        f"{found.text(apply)}\n\nThe model as `incremental`, to be saved in {model['original_file_path']}:\n\n{written}"
    )


def ask_macro(name: str, arguments: Sequence[str], **given: Any) -> str:
    """What a macro of the project that dbt would take says. Raises ProjectError, also for what the macro refuses."""
    with connected(arguments) as (adapter, manifest):
        manifest.build_flat_graph()
        return str(adapter.execute_macro(name, kwargs=given, macro_resolver=manifest))
