"""The dbt adapter: dbt-spark's, with what the embedded session and `nondeterministic_mv` need on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dbt.adapters.base.impl import AdapterTrackingRelationInfo
from dbt.adapters.spark.impl import SparkAdapter, SparkConfig

from spark_mv import __version__
from spark_mv.spark.connections import SparkMvConnectionManager
from spark_mv.spark.mv_adapter import MvMixin

#: the format of every table that no config says otherwise for
DEFAULT_FILE_FORMAT = "delta"


@dataclass
class SparkMvConfig(SparkConfig):
    file_format: str = DEFAULT_FILE_FORMAT


class SparkMvAdapter(MvMixin, SparkAdapter):
    """dbt-spark's adapter, improved where it is its own doing; tables are Delta unless the user says otherwise."""

    ConnectionManager = SparkMvConnectionManager
    AdapterSpecificConfigs = SparkMvConfig

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        SparkMvConnectionManager.project_root = _project_root(config)

    @classmethod
    def get_adapter_run_info(cls, config: Any) -> AdapterTrackingRelationInfo:
        """What dbt's usage statistics tell about a relation; dbt derives a wrong module name from this class's."""
        return AdapterTrackingRelationInfo(
            adapter_name=cls.type(),
            base_adapter_version=import_module("dbt.adapters.__about__").version,
            adapter_version=__version__,
            model_adapter_details=cls._get_adapter_specific_run_info(config),
        )

    def pre_model_hook(self, config: Mapping[str, Any]) -> Any:
        """Before a model, seed or snapshot runs: settle its file format, which dbt-spark's macros ask for directly."""
        node = getattr(config, "model", None)
        if node is not None and not isinstance(node.config, dict) and node.config.get("file_format") is None:
            node.config["file_format"] = DEFAULT_FILE_FORMAT
        return super().pre_model_hook(config)


def _project_root(config: Any) -> Path:
    """The folder of dbt_project.yml; `dbt debug` hands over a bare profile, then it is the flag or the cwd."""
    root = getattr(config, "project_root", None)
    if not root:
        from dbt.flags import get_flags

        root = getattr(get_flags(), "PROJECT_DIR", None)
    return Path(root or ".").resolve()
