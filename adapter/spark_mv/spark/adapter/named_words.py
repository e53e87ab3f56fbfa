"""Names that people give to dbt: a model of an operation, a word of the profile, a variable. What is not known is never passed over in silence
where it is like one that is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from spark_mv.explain.project_model import MATERIALIZATION, called
from spark_mv.maintenance.config import SAFETY
from spark_mv.query.syntax.nearest import did_you_mean, nearest

VARIABLES = (*SAFETY, "as_of", "allow_future_as_of", "functions", "ai_prompt_path")
"""What runs and operations read of `--vars`."""


def model_named(nodes: Iterable[Mapping[str, Any]], name: str, any_materialization: bool = False) -> Mapping[str, Any]:
    """The model that the name means among the nodes of dbt's graph, of several versions the latest, as `ref` takes it; a nondeterministic_mv,
    unless any materialization will do. Raises ValueError."""
    models = [node for node in nodes if node["resource_type"] == "model"]
    found = [node for node in models if name in called(node)]
    wanted = [node for node in found if any_materialization or _materialized(node) == MATERIALIZATION]
    if len(wanted) > 1:
        wanted = [node for node in wanted if node.get("version") == node.get("latest_version")] or wanted
    if len(wanted) > 1:
        raise ValueError(f"several models are called {name}: {', '.join(str(node['unique_id']) for node in wanted)}")
    if wanted:
        return wanted[0]
    if found:
        raise ValueError(
            f"{found[0]['name']} is materialized as {_materialized(found[0])}; this is for models with `materialized='{MATERIALIZATION}'`"
        )
    there = sorted({node["name"] for node in models if any_materialization or _materialized(node) == MATERIALIZATION})
    what = "model" if any_materialization else MATERIALIZATION
    otherwise = f"; this project has: {', '.join(there) or 'none'}"
    raise ValueError(f"no {what} named {name!r}{did_you_mean(name, there, otherwise)}")


def unknown_word(given: Iterable[str], known: Collection[str]) -> str | None:
    """The first word that is none of these and like one of them, with what it is like; for what else may stand there, too.

    >>> unknown_word(["max_rows_chnged", "my_own"], ["max_rows_changed"])
    "'max_rows_chnged' (did you mean 'max_rows_changed'?)"
    """
    for word in given:
        if word not in known and (near := nearest(word, known, cutoff=0.8)):
            return f"{word!r} (did you mean {near!r}?)"
    return None


def _materialized(node: Mapping[str, Any]) -> str:
    return str(node["config"].get("materialized"))
