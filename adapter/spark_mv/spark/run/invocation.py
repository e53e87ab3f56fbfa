"""What the materialization hands over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from spark_mv.maintenance.config import with_meta_words
from spark_mv.maintenance.errors import ConfigError
from spark_mv.query.functions.catalogue import declarations
from spark_mv.query.syntax.table_name import quoted
from spark_mv.query.syntax.written_out import written_out


@dataclass(frozen=True)
class Invocation:
    """One model of one invocation. Relation names are rendered; `relation_names` lists the schema's tables. `followed`: whether other
    nondeterministic_mv models read its table, themselves or through views; `namesakes`: the nodes that make a table of the name of its
    table ('table'), or of its state ('state'); `others`: the project's other nondeterministic_mv models."""

    unique_id: str
    name: str
    sql: str
    config: Mapping[str, Any]
    explicit: frozenset[str]
    target: str
    schema: str
    identifier: str
    target_exists: bool
    state_exists: bool
    relation_names: tuple[str, ...]
    started_at: datetime
    as_of: Any = None
    allow_future_as_of: bool = False
    functions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    invocation_id: str = ""
    project: str = ""
    full_refresh: bool = False
    partial: bool = False
    followed: bool = False
    namesakes: Mapping[str, str] = field(default_factory=dict)
    others: frozenset[str] = frozenset()
    text: str = ""  # as dbt has compiled it: `sql` is what the engine reads of it

    def __post_init__(self) -> None:
        if not self.text:
            object.__setattr__(self, "text", self.sql)
        object.__setattr__(self, "sql", written_out(self.sql))

    def by_any_strategy(self) -> Invocation:
        """For what only looks at a model: how its next run may get there (`refresh: incremental`) does not matter then."""
        return replace(self, config={**self.config, "refresh": "auto"})

    @classmethod
    def from_macro(cls, values: Mapping[str, Any]) -> Invocation:
        """From the dictionary that the macro builds."""
        model = values["model"]
        config = {key: value for key, value in dict(model["config"]).items() if value is not None}
        explicit = frozenset(dict(model.get("unrendered_config") or config))
        if "on_schema_change" not in explicit:
            config.pop("on_schema_change", None)
        config = with_meta_words(model["name"], config)
        return cls(
            unique_id=model["unique_id"],
            name=model["name"],
            sql=values["sql"],
            config=config,
            explicit=explicit,
            target=values["target"],
            schema=values["schema"],
            identifier=values["identifier"],
            target_exists=bool(values["target_exists"]),
            state_exists=f"{values['identifier']}__state".lower() in {n.lower() for n in values["relation_names"]},
            relation_names=tuple(values["relation_names"]),
            started_at=values["started_at"],
            as_of=config.get("as_of") if values.get("as_of") is None else values["as_of"],
            allow_future_as_of=str(values.get("allow_future_as_of")).lower() == "true",
            functions=_declared(model["name"], values.get("functions")),
            variables=values.get("variables") or {},
            invocation_id=values.get("invocation_id") or "",
            project=values.get("project") or "",
            full_refresh=bool(values.get("full_refresh")),
            partial=bool(values.get("partial")),
            followed=bool(values.get("followed")),
            namesakes=dict(values.get("namesakes") or {}),
            others=frozenset(values.get("others") or ()),
        )

    def beside(self, suffix: str) -> str:
        """The rendered name of a relation that belongs to the model's table."""
        return f"{self.schema}.{quoted(f'{self.identifier}__{suffix}')}"

    def in_session(self, suffix: str) -> str:
        """The rendered name of rows that only this session knows."""
        return quoted(f"{self.identifier}__{suffix}")

    @property
    def state_table(self) -> str:
        return self.beside("state")


def _declared(model: str, said: Any) -> Mapping[str, Any]:
    try:
        return declarations(said)
    except ValueError as error:
        raise ConfigError(model, [str(error)]) from error
