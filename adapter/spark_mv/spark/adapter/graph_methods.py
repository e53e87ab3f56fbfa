"""What macros ask about a model's place in the project, on the adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import AdapterMeta, available


class GraphMixin(metaclass=AdapterMeta):
    """`nodes` are those of dbt's graph."""

    @available
    def mv_followed(self, unique_id: str, nodes: Mapping[str, Any]) -> bool:
        """Whether other nondeterministic_mv models of the project read this one."""
        from spark_mv.spark.adapter.followers import followed

        return followed(unique_id, nodes)

    @available
    def mv_namesakes(self, unique_id: str, nodes: Mapping[str, Any]) -> dict[str, str]:
        """The other nodes of the project that make a table of the model's name, or of its state's."""
        from spark_mv.spark.adapter.namesakes import namesakes

        return namesakes(unique_id, nodes)

    @available
    def mv_other_models(self, unique_id: str, nodes: Mapping[str, Any]) -> list[str]:
        """The other nondeterministic_mv models of the project."""
        from spark_mv.spark.adapter.namesakes import other_models

        return other_models(unique_id, nodes)
