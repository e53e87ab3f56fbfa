"""The profile of `type: spark_mv`.

Three lines are enough: `type: spark_mv`, `method: session`, `schema: …`. All of dbt-spark's methods and keys are kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dbt.adapters.spark.connections import SparkConnectionMethod, SparkCredentials
from dbt_common.exceptions import DbtRuntimeError

from spark_mv.maintenance.config import MERGE_FORMATS
from spark_mv.spark.adapter.named_words import unknown_word
from spark_mv.spark.adapter.target_branches import show_target_type
from spark_mv.spark.session.iceberg import FORMATS
from spark_mv.spark.session.spark_settings import MASTER

#: what `target.type` may say
TARGET_TYPES = ("spark_mv", "spark", "databricks")
#: what `serve` may say
SERVE = ("auto", "off")
#: shown as the host of a session that runs in dbt's own process
EMBEDDED_HOST = "embedded"


@dataclass
class SparkMvCredentials(SparkCredentials):
    """dbt-spark's credentials and what the embedded session and the AI functions need besides.

    `host`: for `method: session`, a Spark Connect server (`sc://name:15002`) instead of a Spark in dbt's process.
    `warehouse`: folder of tables and catalogue, by default `spark-warehouse` in the project.
    `master`: for `method: session`, the cluster that dbt's process is the driver of (`spark://host:7077`, `yarn`, `k8s://…`), by
    default `local[*]`. It is the setting spark.master.
    `spark_config`: Spark settings, as dbt-spark's `server_side_parameters`; the latter win over the former,
    both win over what this adapter would choose.
    `ai`: provider of the AI functions. `functions`: levels of the project's own functions. Both are kept as they are
    and never shown. `run_history`: whether runs of nondeterministic_mv are written to the table mv_runs beside them.
    `formats`: table formats that the embedded session brings, `[delta, iceberg]`; Delta always.
    `file_format`: of every table that no config says otherwise for.
    `max_rows_changed`, `audit`, `second_reading`, `choose_by`: defaults of the model settings of these names.
    `serve`: `auto`, a Spark that `spark-mv serve` runs for the warehouse is used; `off`, it never is.
    `target_type`: what `target.type` says in models and macros, for packages that know `spark` only.
    """

    host: str | None = None
    method: SparkConnectionMethod = SparkConnectionMethod.SESSION
    server_side_parameters: dict[str, str] = field(default_factory=dict)
    warehouse: str | None = None
    master: str | None = None
    spark_config: dict[str, Any] = field(default_factory=dict)
    ai: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    run_history: bool = True
    formats: list[str] = field(default_factory=list)
    file_format: str | None = None
    max_rows_changed: Any = None
    audit: Any = None
    second_reading: Any = None
    choose_by: Any = None
    target_type: str | None = None
    serve: Any = "auto"

    def __post_init__(self) -> None:
        if self.host is None and self.method == SparkConnectionMethod.SESSION:
            self.host = EMBEDDED_HOST
        self.serve = "off" if self.serve is False else self.serve  # YAML reads `off` as false
        if self.serve not in SERVE:
            raise DbtRuntimeError(f"serve: {self.serve!r} is not one of {', '.join(SERVE)}")
        if self.target_type not in (None, *TARGET_TYPES):
            raise DbtRuntimeError(f"target_type: {self.target_type!r} is not one of {', '.join(TARGET_TYPES)}")
        if self.target_type:
            show_target_type()
        own_ansi = {**self.spark_config, **self.server_side_parameters}.get("spark.sql.ansi.enabled")
        super().__post_init__()
        self.spark_config = {str(key): _conf_text(value) for key, value in self.spark_config.items()}
        self.server_side_parameters = {**self.spark_config, **self.server_side_parameters}
        if self.master is not None:
            _agree(str(self.master), self.server_side_parameters.get(MASTER), self)
            self.server_side_parameters[MASTER] = str(self.master)
        if self.formats:
            self.server_side_parameters[FORMATS] = ",".join(_formats(self.formats))
        if self.method == SparkConnectionMethod.SESSION and str(self.host).startswith("sc://"):
            self.server_side_parameters["spark.remote"] = str(self.host)
        # dbt-spark switches ANSI mode off whatever the profile says; here the profile wins
        if own_ansi is not None:
            self.server_side_parameters["spark.sql.ansi.enabled"] = _conf_text(own_ansi)

    @classmethod
    def validate(cls, data: Any) -> None:
        """Raises DbtRuntimeError for a word that is like one of the profile's and none: dbt passes unknown words over, and `max_rows_chnged`
        would protect nothing."""
        super().validate(data)
        known = {one.name for one in fields(cls)} | {"threads"}
        if strange := unknown_word(data, known):
            raise DbtRuntimeError(f"unknown word {strange}")

    @property
    def type(self) -> str:
        return "spark_mv"

    @property
    def unique_field(self) -> str:
        return str(self.host)

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """What is shown of the connection; with aliases it is what macros see as `target`, and there a package that asks for
        `target.database` gets an empty text: Spark's names have two parts."""
        yield from super().connection_info(with_aliases=with_aliases)
        if with_aliases:
            yield "database", ""

    def _connection_keys(self) -> tuple[str, ...]:
        # what `target` shows decides how a project is parsed: dbt reads it anew when one of these changes
        shown = ("target_type",) if self.target_type else ()
        return (*self._keys_of_method(), *shown)

    def _keys_of_method(self) -> tuple[str, ...]:
        if self.method == SparkConnectionMethod.SESSION:
            return ("method", "schema", "warehouse") if self.warehouse else ("method", "schema")
        return ("method", *super()._connection_keys())

    def warehouse_path(self, project_root: str | os.PathLike[str]) -> Path:
        """The absolute folder of the embedded session's tables and catalogue."""
        return (Path(project_root) / Path(self.warehouse or "spark-warehouse").expanduser()).resolve()


def _formats(named: Any) -> list[str]:
    """The formats that the profile names. Raises DbtRuntimeError for one that is not there."""
    given = [named] if isinstance(named, str) else list(named)
    words = [str(word).strip().lower() for word in given]
    if unknown := [word for word in words if word not in MERGE_FORMATS]:
        raise DbtRuntimeError(
            f"formats: {', '.join(unknown)} is not there; the table formats that are, are {' and '.join(MERGE_FORMATS)}"
        )
    return list(dict.fromkeys(["delta", *words]))


def _agree(master: str, setting: str | None, credentials: SparkMvCredentials) -> None:
    """Raises DbtRuntimeError where `master` stands beside another one, or where no Spark is started that could have it."""
    if setting not in (None, master):
        raise DbtRuntimeError(
            f"master: {master!r} stands beside {MASTER}: {setting!r} in spark_config; leave one of them out"
        )
    if credentials.method != SparkConnectionMethod.SESSION or str(credentials.host).startswith("sc://"):
        raise DbtRuntimeError(
            f"master: {master!r} is for method: session without a host, where dbt's process starts Spark; a server has its own master"
        )


def _conf_text(value: Any) -> str:
    """A setting as Spark writes it: YAML's `true` is `true`, not Python's `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
