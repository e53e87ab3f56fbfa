"""Which models of a project read another one's changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ENDS = frozenset({"table", "incremental", "snapshot", "seed", "test", "unit"})
"""Materializations that read a table as it is, and that nobody sees through to it."""


def followed(unique_id: str, nodes: Mapping[str, Any]) -> bool:
    """Whether a nondeterministic_mv model reads the model, itself or through views. `nodes`: those of dbt's graph."""
    reached, grown = {unique_id}, True
    while grown:
        grown = False
        for name, node in nodes.items():
            if name in reached or reached.isdisjoint((node.get("depends_on") or {}).get("nodes") or ()):
                continue
            kind = (node.get("config") or {}).get("materialized")
            if kind == "nondeterministic_mv":
                return True
            if kind not in _ENDS:
                reached.add(name)
                grown = True
    return False
