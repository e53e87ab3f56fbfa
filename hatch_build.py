"""Build hook: the wheel carries the macros where dbt looks for an adapter's own, `dbt/include/spark_mv/macros`.

The repository keeps them once, in `macros/`, where `dbt deps` finds them. An editable install reads them there.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MacrosHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"]["macros"] = "dbt/include/spark_mv/macros"
