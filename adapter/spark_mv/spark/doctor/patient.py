"""What is examined: a project with its profile, or this machine alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_mv.spark.adapter.open_project import OpenProject
from spark_mv.spark.session.session import is_remote
from spark_mv.spark.session.spark_settings import embedded_settings


@dataclass(frozen=True)
class Patient:
    """`method` as in the profile. `user`: the profile's Spark settings. Where there is no profile they are those of the shortest one,
    an embedded session with nothing set."""

    project: OpenProject
    method: str
    user: Mapping[str, str]
    warehouse: Path
    logs: Path
    serve: str = "auto"

    @classmethod
    def of(cls, project: OpenProject) -> Patient:
        """As a run of this project would be."""
        logs = project.root / "logs"
        if not project.ours:
            method = "session" if project.config is None else str(project.config.credentials.type)
            return cls(project, method, {}, project.root / "spark-warehouse", logs)
        credentials = project.config.credentials
        method = str(getattr(credentials.method, "value", credentials.method))
        user = dict(credentials.server_side_parameters)
        return cls(project, method, user, credentials.warehouse_path(project.root), logs, credentials.serve)

    @property
    def embedded(self) -> bool:
        """Whether Spark runs in dbt's own process."""
        return self.method == "session" and not is_remote(self.user)

    @property
    def settings(self) -> dict[str, str]:
        """What the embedded Spark is started with, Delta's jars apart."""
        return embedded_settings(self.user, self.warehouse, [])

    @property
    def extras(self) -> tuple[str, ...]:
        """The extras of this package that the profile needs."""
        found = ["embedded" if self.embedded else "connect"] if self.method == "session" else []
        found += ["thrift"] if self.method in ("thrift", "http") else []
        ai: Mapping[str, Any] = (
            (getattr(self.project.config.credentials, "ai", None) or {}) if self.project.ours else {}
        )
        return (*found, *(name for name in ("local", "openai") if ai.get("provider") == name))
