"""The dbt adapter: dbt-spark's, with what the embedded session and `nondeterministic_mv` need on top."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.base.impl import AdapterTrackingRelationInfo, ConstraintSupport
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt.adapters.spark.impl import TABLE_OR_VIEW_NOT_FOUND_MESSAGES, SparkAdapter, SparkConfig
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import DbtRuntimeError

from spark_mv import __version__
from spark_mv.maintenance.errors import first_line
from spark_mv.spark.adapter.ai_methods import AiMixin
from spark_mv.spark.adapter.catalog import Described, catalog_rows, catalog_table, parse_describe
from spark_mv.spark.adapter.column import SparkMvColumn, quote
from spark_mv.spark.adapter.connections import SparkMvConnectionManager
from spark_mv.spark.adapter.contract import PROPERTY, read_contract
from spark_mv.spark.adapter.graph_methods import GraphMixin
from spark_mv.spark.adapter.mv_methods import MvMixin
from spark_mv.spark.adapter.named_words import VARIABLES, unknown_word
from spark_mv.spark.adapter.relation import SparkMvRelation
from spark_mv.spark.adapter.target_branches import (
    Branch,
    branches,
    texts_of,
    texts_of_projects,
    texts_of_sources,
    warning,
)
from spark_mv.spark.adapter.upkeep_methods import UpkeepMixin

if TYPE_CHECKING:
    import agate
    from dbt.adapters.base.impl import FreshnessResponse
    from dbt_common.contracts.metadata import CatalogTable

    from spark_mv.spark.adapter.seeds import SeedColumn

logger = AdapterLogger("Spark")

#: the format of every table that no config says otherwise for
DEFAULT_FILE_FORMAT = "delta"

#: dbt's commands that run statements; the others (parse, list, deps, …) start no Spark
USES_SPARK = frozenset(
    {"build", "clone", "generate", "retry", "run", "run-operation", "seed", "show", "snapshot", "test"}
)


@dataclass
class SparkMvConfig(SparkConfig):
    file_format: str = DEFAULT_FILE_FORMAT


_ICEBERG = re.compile(r"\btable_type=iceberg\b", re.IGNORECASE)


class SparkMvAdapter(AiMixin, GraphMixin, MvMixin, UpkeepMixin, SparkAdapter):
    """dbt-spark's adapter, improved where it is its own doing; tables are Delta unless the user says otherwise."""

    ConnectionManager = SparkMvConnectionManager
    AdapterSpecificConfigs = SparkMvConfig
    Relation = SparkMvRelation
    Column = SparkMvColumn

    CONSTRAINT_SUPPORT = {
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.primary_key: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_ENFORCED,
    }

    _capabilities = CapabilityDict(
        {**SparkAdapter._capabilities, Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full)}
    )

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        SparkMvConnectionManager.project_root = _project_root(config)
        self._unsettled = threading.local()
        self._told_branches: set[Branch] = set()
        self._warn_of_branches(texts_of_projects(config))
        self._warn_of_variables(config)
        self._start_spark_early()

    def set_macro_resolver(self, macro_resolver: Any) -> None:
        """Also looks for what asks for the type of the profile and does not know this one."""
        super().set_macro_resolver(macro_resolver)
        own = {"dbt", "dbt_spark", "dbt_spark_mv_adapter", "dbt_spark_mv"}
        self._warn_of_branches((*texts_of(macro_resolver, own), *texts_of_sources(self.config)))

    def _warn_of_branches(self, texts: Iterable[tuple[Branch, str]]) -> None:
        """One warning for each way to ask; of what was not told yet."""
        found = [branch for branch in branches(texts) if branch not in self._told_branches]
        self._told_branches.update(found)
        settled = bool(getattr(self.config.credentials, "target_type", None))
        for asks in ("adapter.type()",) if settled else ("target.type", "adapter.type()"):
            if asking := [branch for branch in found if branch.asks == asks]:
                warn_or_error(AdapterEventWarning(name="Spark", base_msg=warning(asking)))

    def _warn_of_variables(self, config: Any) -> None:
        """A variable that is like one of those that runs read, and none that the project knows."""
        declared = config.vars.to_dict() if getattr(config, "vars", None) is not None else {}
        known = {*declared, *(name for of in declared.values() if isinstance(of, dict) for name in of)}
        given = [name for name in getattr(config, "cli_vars", None) or {} if name not in known]
        if strange := unknown_word(given, VARIABLES):
            told = f"--vars has {strange}; nothing reads it. Declare it under `vars:` in dbt_project.yml if it is one of your own"
            warn_or_error(AdapterEventWarning(name="Spark", base_msg=told))

    def _start_spark_early(self) -> None:
        """Spark needs seconds to start, and so does dbt to read the project: let them do it at the same time."""
        from dbt.flags import get_flags

        credentials = self.config.credentials
        command = getattr(get_flags(), "WHICH", None)
        if command in USES_SPARK and credentials.method == "session":
            from spark_mv.spark.serve.state import is_held
            from spark_mv.spark.session.session import start_early

            root = SparkMvConnectionManager.project_root
            warehouse = credentials.warehouse_path(root)
            if not is_held(warehouse):  # a server has the catalogue, and dbt uses the server or says so
                start_early(credentials.server_side_parameters, warehouse, root / "logs" / "spark.log")

    @classmethod
    def get_adapter_run_info(cls, config: Any) -> AdapterTrackingRelationInfo:
        """What dbt's usage statistics tell about a relation; dbt derives a wrong module name from this class's."""
        return AdapterTrackingRelationInfo(
            adapter_name=cls.type(),
            base_adapter_version=import_module("dbt.adapters.__about__").version,
            adapter_version=__version__,
            model_adapter_details=cls._get_adapter_specific_run_info(config),
        )

    # -- before and after a model

    def pre_model_hook(self, config: Mapping[str, Any]) -> Any:
        """Before a model, seed or snapshot runs: settle its file format, which dbt-spark's macros ask for directly."""
        node = getattr(config, "model", None)
        if node is not None and not isinstance(node.config, dict) and node.config.get("file_format") is None:
            node.config["file_format"] = self.config.credentials.file_format or DEFAULT_FILE_FORMAT
        return super().pre_model_hook(config)

    def post_model_hook(self, config: Mapping[str, Any], context: Any) -> None:
        """After a model, also a failed one: a table that was created for rows that never came is taken back."""
        undo, self._unsettled.undo = getattr(self._unsettled, "undo", None), None
        if undo is not None:
            try:
                self.query(undo)
            except DbtRuntimeError as error:
                logger.warning(f"could not undo a half-made table ({undo}): {error}")
        super().post_model_hook(config, context)

    # -- columns, relations, catalogue

    @classmethod
    def quote(cls, identifier: str) -> str:
        return quote(identifier)

    def list_relations(self, database: str | None, schema: str) -> list[Any]:
        """Those of the schema; the empty text of `target.database` is no database."""
        return super().list_relations(database or None, schema)

    def _get_relation_information(self, row: Any) -> Any:
        """SHOW TABLE EXTENDED knows a table of Iceberg's own session catalogue as one of Hive with a property."""
        schema, name, information = super()._get_relation_information(row)
        if _ICEBERG.search(information):
            information = information.replace("Provider: hive", "Provider: iceberg")
        return schema, name, information

    def get_columns_in_relation(self, relation: Any) -> list[SparkMvColumn]:
        """The relation's columns in their order; empty when there is no such relation."""
        try:
            described = self._describe(relation)
        except DbtRuntimeError as error:
            if any(text in str(error) for text in TABLE_OR_VIEW_NOT_FOUND_MESSAGES):
                return []
            raise
        return [
            SparkMvColumn(
                column=name,
                dtype=data_type,
                table_schema=relation.schema,
                table_name=relation.name,
                table_type=relation.type,
                table_owner=described.owner,
                column_index=index,
            )
            for index, (name, data_type, _) in enumerate(described.columns)
            if name not in self.HUDI_METADATA_COLUMNS
        ]

    def _describe(self, relation: Any) -> Described:
        return parse_describe(self.query(f"describe table extended {relation.render()}"))

    def get_catalog_for_single_relation(self, relation: Any) -> CatalogTable | None:
        """One relation of the catalogue, or None when it does not exist."""
        try:
            described = self._describe(relation)
        except DbtRuntimeError as error:
            if any(text in str(error) for text in TABLE_OR_VIEW_NOT_FOUND_MESSAGES):
                return None
            raise
        return catalog_table(relation.schema, relation.identifier, described, self._level_stats(relation))

    def _level_stats(self, relation: Any) -> Mapping[str, Mapping[str, Any]]:
        """What the catalogue says of the columns of a nondeterministic_mv beside their types."""
        from spark_mv.spark.adapter.catalog_levels import column_levels, level_stats, model_of, put_into_meta

        try:
            node = model_of(self.get_macro_resolver(), relation)
            levels = column_levels(node, self.config)
            put_into_meta(node, levels)
            return level_stats(levels)
        except Exception as error:  # the catalogue is complete without it
            logger.debug(f"levels of the columns of {relation}: {error}")
            return {}

    def _get_columns_for_catalog(self, relation: Any) -> list[dict[str, Any]]:
        """The rows of one relation in dbt's catalogue; a relation that has gone meanwhile gives none."""
        try:
            described = self._describe(relation)
            return catalog_rows(relation.schema, relation.identifier, described, self._level_stats(relation))
        except DbtRuntimeError as error:
            logger.debug(f"Error retrieving columns for catalog entry {relation}: {error}")
            return []

    def calculate_freshness_from_metadata(
        self, source: Any, macro_resolver: Any = None
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        """`dbt source freshness` of a source without loaded_at_field: when a commit last changed its rows, by the table's own log."""
        from spark_mv.spark.formats.commits import Ask
        from spark_mv.spark.formats.registry import format_of
        from spark_mv.spark.run.look_up import describe

        ask, name = Ask(self.query, self.mv_spark()), source.render()
        try:
            described = describe(ask, name)
            table_format = format_of(described.provider) if described is not None else None
            if table_format is None:
                raise DbtRuntimeError(described.provider or "a view" if described is not None else "not found")
            changed = table_format.last_change(ask, name)
        except Exception as error:
            raise DbtRuntimeError(
                f"{name} is no table that keeps versions (Delta, Iceberg), so that nothing says when it last changed: give the source a loaded_at_field "
                f"or a loaded_at_query ({first_line(error)})"
            ) from error
        return None, self._create_freshness_response(changed, datetime.now(timezone.utc))

    def calculate_freshness_from_metadata_batch(
        self, sources: list[Any], macro_resolver: Any = None
    ) -> tuple[list[AdapterResponse | None], dict[Any, FreshnessResponse]]:
        """The same of several sources."""
        found = {source: self.calculate_freshness_from_metadata(source)[1] for source in sources}
        return [None for _ in sources], found

    # -- seeds

    @available
    def seed_columns(self, agate_table: agate.Table, types: Mapping[str, str], quoted: bool | None) -> list[SeedColumn]:
        """The columns of the seed's table with the types that hold the CSV's values exactly."""
        from spark_mv.spark.adapter.seeds import columns_of

        rendered = [self.quote_seed_column(str(name), quoted) for name in agate_table.column_names]
        return list(columns_of(agate_table, dict(types or {}), rendered, self.convert_type))

    @available
    def seed_source(self, view: str, columns: Sequence[SeedColumn], agate_table: agate.Table) -> str | None:
        """A SELECT of the seed's rows with their types, over a temporary view; None where there is no session."""
        from spark_mv.spark.adapter.seeds import SeedError, make_view, select_list

        spark = self.mv_spark()
        if spark is None:
            return None
        try:
            make_view(spark, view, columns, agate_table.rows)
        except SeedError as error:
            raise DbtRuntimeError(str(error)) from error
        return f"select {select_list(columns)} from {view}"

    @available
    def seed_batches(self, columns: Sequence[SeedColumn], agate_table: agate.Table) -> list[str]:
        """The seed's rows as VALUES lists of exact literals, for connections without a session in this process."""
        from spark_mv.spark.adapter.seeds import values_batches

        return list(values_batches(columns, agate_table.rows))

    # -- contracts

    @available
    def read_contract(self, model: Mapping[str, Any]) -> Any:
        """What the table of this model promises; see spark_mv.spark.adapter.contract."""
        # dbt's own check warns about what is not enforced
        self.render_raw_columns_constraints(raw_columns=model["columns"])
        self.render_raw_model_constraints(raw_constraints=model["constraints"])
        return read_contract(model["columns"], model["constraints"])

    @available
    def carries_contract(self, relation: Any, fingerprint: str) -> bool:
        """True when the table was created with exactly this contract, so that its rows can simply be overwritten: all of them, which they
        are not in a session that overwrites the partitions of the new rows alone."""
        from spark_mv.spark.formats.commits import Ask
        from spark_mv.spark.formats.session_settings import OVERWRITES, session_setting

        rows = self.query(f"show tblproperties {relation.render()}")
        if not any(row["key"] == PROPERTY and row["value"] == fingerprint for row in rows):
            return False
        return session_setting(Ask(self.query, self.mv_spark()), OVERWRITES).lower() != "dynamic"

    @available
    def drop_takes(self, relation: Any) -> str:
        """What DROP is told besides, so that a table's files go where its catalogue would leave them. An Iceberg table's stay, as they do elsewhere."""
        from spark_mv.spark.session.iceberg import stands_behind_delta

        spark = self.mv_spark() if relation.is_table and not relation.is_iceberg else None
        return " purge" if stands_behind_delta(spark) else ""

    @available
    def undo_unless_settled(self, relation: Any, existed: bool) -> None:
        """Remembers how to take the CREATE that follows back, until `settled` says that the rows are in."""
        name = relation.render()
        if existed:
            (latest,) = self.query(f"describe history {name} limit 1")
            self._unsettled.undo = f"restore table {name} to version as of {latest['version']}"
        else:
            self._unsettled.undo = f"drop table if exists {name}"

    @available
    def settled(self) -> None:
        self._unsettled.undo = None

    # -- Python models

    @property
    def default_python_submission_method(self) -> str:
        return "session" if self.config.credentials.method == "session" else super().default_python_submission_method

    def submit_python_job(self, parsed_model: dict[str, Any], compiled_code: str) -> AdapterResponse:
        """Runs a Python model in this process on the connection's session; otherwise as dbt-spark does."""
        method = parsed_model["config"].get("submission_method", self.default_python_submission_method)
        spark = self.mv_spark() if method == "session" else None
        if spark is None:
            return super().submit_python_job(parsed_model, compiled_code)
        from spark_mv.spark.adapter.python_models import run_python_model

        run_python_model(spark, parsed_model["unique_id"], compiled_code)
        return AdapterResponse(_message="OK")

    # -- what this Spark can do

    @available.parse(lambda *args, **kwargs: True)
    def spark_at_least(self, major: int, minor: int = 0) -> bool:
        """True when the connection's Spark is of that release or newer; False when it cannot be known."""
        spark = self.mv_spark()
        if spark is None:
            return False
        parts = str(spark.version).split(".")
        return (int(parts[0]), int(parts[1])) >= (major, minor)

    def debug_query(self) -> None:
        """The connection test of `dbt debug`, and what there is to know about the connection."""
        from spark_mv.spark.adapter.debug import describe_connection

        for line in describe_connection(self.mv_spark(), self.query):
            self.say(line)


# dbt collects a class's available methods from its own body and from bases of dbt's metaclass, which a mixin is not
for _name, _value in [*vars(MvMixin).items(), *vars(UpkeepMixin).items()]:
    if getattr(_value, "_is_available_", False):
        SparkMvAdapter._available_ |= {_name}
    if hasattr(_value, "_parse_replacement_"):
        SparkMvAdapter._parse_replacements_[_name] = _value._parse_replacement_


def _project_root(config: Any) -> Path:
    """The folder of dbt_project.yml; `dbt debug` hands over a bare profile, then it is the flag or the cwd."""
    root = getattr(config, "project_root", None)
    if not root:
        from dbt.flags import get_flags

        root = getattr(get_flags(), "PROJECT_DIR", None)
    return Path(root or ".").resolve()
