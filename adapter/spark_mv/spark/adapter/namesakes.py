"""Other nodes of a project whose tables have the names of a model's own. dbt compares names as they are written, Spark folds case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MADE = frozenset({"model", "seed", "snapshot"})


def namesakes(unique_id: str, nodes: Mapping[str, Any]) -> dict[str, str]:
    """The node that makes a table of the model's name ('table'), and the one that makes one of its state's name ('state').
    `nodes`: those of dbt's graph, in which none is disabled."""
    own = nodes.get(unique_id)
    if own is None:
        return {}
    name = _name(own)
    wanted = {name: "table", (*name[:-1], f"{name[-1]}__state"): "state"}
    return {
        wanted[found]: other
        for other, node in nodes.items()
        if other != unique_id and _makes_a_relation(node) and (found := _name(node)) in wanted
    }


def other_models(unique_id: str, nodes: Mapping[str, Any]) -> list[str]:
    """The other nondeterministic_mv models: a table that one of them made is theirs, whatever its name."""
    return [
        other
        for other, node in nodes.items()
        if other != unique_id and (node.get("config") or {}).get("materialized") == "nondeterministic_mv"
    ]


def _makes_a_relation(node: Mapping[str, Any]) -> bool:
    kind = (node.get("config") or {}).get("materialized")
    return node.get("resource_type") in _MADE and kind != "ephemeral"


def _name(node: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(node.get(part) or "").lower() for part in ("database", "schema", "alias"))
