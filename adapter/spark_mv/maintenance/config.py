"""The settings of one `nondeterministic_mv` model, checked all at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_mv.maintenance.audit_every import audit_every
from spark_mv.maintenance.errors import ConfigError
from spark_mv.maintenance.row_limit import RowLimit, row_limit
from spark_mv.maintenance.size import MOST, is_too_large, short
from spark_mv.query.syntax.nearest import nearest

AI_POLICIES = ("on_ai_error", "on_model_change", "max_ai_calls", "max_ai_tokens", "max_ai_cost")
"""AI settings that may also stand beside the `ai` block of a model."""

SAFETY = ("max_rows_changed", "audit", "second_reading", "choose_by")
"""Settings that the profile and `--vars` may say, too: the invocation's win over the model's, these over the profile's."""

OWN_WORDS = frozenset(
    {
        "unique_key",
        "file_format",
        "partition_by",
        "on_schema_change",
        "on_row_update",
        "on_source_delete",
        "freeze",
        "freeze_where",
        "sensitive_key",
        "refresh",
        "retain_sources",
        "as_of",
        "ai",
        *AI_POLICIES,
        *SAFETY,
    }
)
"""Config words that only this materialization knows."""

NAMING_WORDS = ("unique_key", "freeze", "partition_by", "liquid_clustered_by", "cluster_by")
"""Config words whose value is a column or a list of columns."""

MACRO_WORDS = frozenset(
    [
        "anchors", "bind", "catalog_name", "cluster_by", "columns", "constraints", "deprecation_date", "description",
        "incremental_predicates", "liquid_clustered_by", "location", "merge_exclude_columns", "post-hook", "pre-hook",
        "sql_header", "table_format", "tblproperties",
        # of dbt State, read before a run is begun: {evaluate_volatile_sql: true} lets the clock count as a change
        "state",
        # of Python models, the first four written by dbt itself
        "config_keys_defaults", "config_keys_used", "meta_keys_defaults", "meta_keys_used", "submission_method", "timeout",
    ]
)  # fmt: skip
"""Config words that dbt's macros and YAML files know, and no class of dbt declares."""

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "on_source_delete": ("delete", "keep"),
    "refresh": ("auto", "incremental", "incremental_strict", "full"),
    "choose_by": ("rows", "seconds"),
    "on_schema_change": ("sync_all_columns", "append_new_columns", "ignore", "fail"),
    "on_ai_error": ("null", "keep_old", "fail"),
}
_SWITCHES: Mapping[str, bool] = {"second_reading": True, "retain_sources": False, "sensitive_key": False}
_ALIASES = {"incremental_strict": "incremental"}
"""Other words for a choice: Databricks' own for one that never recomputes by itself."""
ROW_UPDATE = ("keep", "redraw")
MERGE_FORMATS = ("delta", "iceberg")
"""Table formats in which a model's table can be kept, and which a profile may name."""


@dataclass(frozen=True)
class ModelConfig:
    """Checked settings. `row_update` maps a lower-case column name to keep or redraw; `""` holds the model's default."""

    unique_key: tuple[str, ...]
    on_source_delete: str = "delete"
    row_update: Mapping[str, str] = field(default_factory=lambda: {"": "keep"})
    freeze: tuple[str, ...] = ()
    freeze_where: str = ""  # a condition over the result's columns
    refresh: str = "auto"
    on_schema_change: str = "sync_all_columns"
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    ai: Mapping[str, Any] = field(default_factory=dict)
    max_rows_changed: RowLimit | None = None
    audit: int | None = None  # every so many runs
    second_reading: bool = True
    choose_by: str = "seconds"
    file_format: str = "delta"
    retain_sources: bool = False
    sensitive_key: bool = False  # no key stands in a statement, a commit, a message

    @property
    def keeps_rows(self) -> bool:
        """Whether the table may have rows that no row of the sources stands for."""
        return self.on_source_delete == "keep" or bool(self.freeze_where)

    def redraws(self, column: str) -> bool:
        """Whether an update of the row draws this column anew."""
        return self.row_update.get(column.lower(), self.row_update[""]) == "redraw"


_SWITCH_OF_DELTA = re.compile(r"delta\.(enable\w+|appendOnly|autoOptimize\.optimizeWrite)$", re.IGNORECASE)
META = "nondeterministic_mv"
"""The block of a model's `meta` that may hold config words: dbt v2 takes no words of packages beside its own."""


def with_meta_words(model: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The model's settings with those of its `meta: {nondeterministic_mv: {…}}`. Raises ConfigError for a word that is said in both
    places, and not alike.

    >>> with_meta_words("m", {"unique_key": "id", "meta": {"nondeterministic_mv": {"freeze": ["a"]}, "owner": "me"}})["freeze"]
    ['a']
    """
    meta = config.get("meta") or {}
    misspelt = [word for word in meta if word != META and nearest(str(word), [META], cutoff=0.85)]
    if misspelt:
        raise ConfigError(model, [f"meta: {misspelt[0]}: there is no such block; did you mean {META!r}?"])
    words = meta.get(META) or {}
    if not isinstance(words, Mapping):
        raise ConfigError(model, [f"meta: {META}: expected a mapping of settings, got {words!r}"])
    twice = [word for word, value in words.items() if config.get(word) is not None and config[word] != value]
    if twice:
        listed = ", ".join(twice)
        raise ConfigError(model, [f"{listed}: said beside meta and under meta: {META}, and not alike. Say it once"])
    return {**config, **words}


def layered(profile: Mapping[str, Any], config: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """A model's settings with those that the profile or the invocation's variables say. None says nothing. The profile's
    `file_format` is for models that name none."""
    said = {
        word: block[word] for block in (profile, config, variables) for word in SAFETY if block.get(word) is not None
    }
    file_format = config.get("file_format") or profile.get("file_format")
    return {**config, **said, **({"file_format": file_format} if file_format else {})}


def _table_problems(config: Mapping[str, Any]) -> list[str]:
    """What no table can be made with, before anything is asked or paid for it."""
    properties, problems = config.get("tblproperties"), []
    if properties is not None and not isinstance(properties, Mapping):
        problems.append(f"tblproperties: expected a mapping of names to values, got {short(properties)}")
    elif properties:
        problems += [
            f"tblproperties: {name}: {short(value)} is no value of a property; write a text, a number, true or false"
            for name, value in properties.items()
            if value is None or not isinstance(value, str | int | float)
        ]
        problems += [
            f"tblproperties: {name}: {short(value)} is not true or false"
            for name, value in properties.items()
            if _SWITCH_OF_DELTA.match(str(name)) and str(value).lower() not in ("true", "false")
        ]
    root = config.get("location_root")
    if root is not None and (not isinstance(root, str) or not re.match(r"/|[A-Za-z][\w+.-]*:", root)):
        problems.append(
            f"location_root: {short(root)} is no absolute path and no address with a scheme (s3://…): relative ones mean another folder to "
            "each part of Spark, and a table made there is not found again"
        )
    return problems


def read_config(model: str, config: Mapping[str, Any], declared: Collection[str] = ()) -> ModelConfig:
    """The checked settings of `config` (the model's merged dbt config, see `layered`). `declared`: the words that dbt declares.

    Raises ConfigError with every problem found. A missing `unique_key` is one of them.
    """
    if large := sorted(word for word, value in config.items() if is_too_large(value)):
        raise ConfigError(
            model, [f"{word}: holds more than {MOST:,} values; write those that are meant" for word in large]
        )
    problems: list[str] = []
    problems += _unknown_words(config, declared)
    unreadable = [problem for word in NAMING_WORDS for problem in _names_problems(word, config.get(word))]
    problems += unreadable
    keys = () if unreadable else column_names(config.get("unique_key"))
    if not keys and not unreadable:
        problems.append(
            "unique_key is missing. Kept values are found by it: set unique_key to the column, or list of columns, "
            "that identifies a row of the result"
        )
    for word, allowed in _CHOICES.items():
        value = config.get(word)
        if value is not None and str(value) not in allowed:
            problems.append(f"{word}: {value!r} is not one of {', '.join(allowed)}{_nearest(str(value), allowed)}")
    file_format = str(config.get("file_format") or "delta").lower()
    if file_format not in MERGE_FORMATS:
        problems.append(
            f"file_format: {file_format!r} is no format that this materialization can keep a table in; use "
            f"{MERGE_FORMATS[0]} (the default) or {' or '.join(MERGE_FORMATS[1:])}"
        )
    row_update, row_problems = _row_update(config.get("on_row_update"))
    problems += row_problems
    ai = config.get("ai") or {}
    if not isinstance(ai, Mapping):
        problems.append(f"ai: expected a mapping of settings, got {ai!r}")
        ai = {}
    problems += [
        f"{word}: {config[word]!r} and, in the `ai` block, {ai[word]!r}: say it once"
        for word in AI_POLICIES
        if word in config and word in ai and config[word] != ai[word]
    ]
    if config.get("partition_by") and config.get("liquid_clustered_by"):
        problems.append("partition_by and liquid_clustered_by: a table has one or the other; take one out")
    problems += _table_problems(config)
    where = config.get("freeze_where") or ""
    if not isinstance(where, str):
        problems.append(f"freeze_where: {where!r} is not a condition; write it as SQL, such as 'day < \"2026-01-01\"'")
    given = {word: default if config.get(word) is None else config[word] for word, default in _SWITCHES.items()}
    on = {word: str(value).lower() for word, value in given.items()}
    problems += [f"{word}: {given[word]!r} is not true or false" for word in on if on[word] not in ("true", "false")]
    limit = None
    try:
        limit = row_limit(config.get("max_rows_changed"))
    except ValueError as error:
        problems.append(f"max_rows_changed: {error}")
    every = None
    try:
        every = audit_every(config.get("audit"))
    except ValueError as error:
        problems.append(f"audit: {error}")
    if problems:
        raise ConfigError(model, problems)
    return ModelConfig(
        unique_key=keys,
        on_source_delete=str(config.get("on_source_delete") or "delete"),
        row_update=row_update,
        freeze=column_names(config.get("freeze")),
        freeze_where=str(where).strip(),
        refresh=_ALIASES.get(refresh := str(config.get("refresh") or "auto"), refresh),
        on_schema_change=str(config.get("on_schema_change") or "sync_all_columns"),
        partition_by=column_names(config.get("partition_by")),
        cluster_by=column_names(config.get("liquid_clustered_by") or config.get("cluster_by")),
        ai={**ai, **{word: config[word] for word in AI_POLICIES if word in config}},
        max_rows_changed=limit,
        audit=every,
        second_reading=on["second_reading"] == "true",
        sensitive_key=on["sensitive_key"] == "true",
        choose_by=str(config.get("choose_by") or "seconds"),
        file_format=file_format,
        retain_sources=on["retain_sources"] == "true",
    )


def column_names(value: Any) -> tuple[str, ...]:
    """The columns that a setting names: one, a list, or none."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,) if value.strip() else ()
    return tuple(str(item) for item in value)


def _names_problems(word: str, value: Any) -> list[str]:
    """Why the value of a setting is no column and no list of columns."""
    if value is None or isinstance(value, str):
        names = [value] if value else []
    elif isinstance(value, Sequence) and all(isinstance(name, str) for name in value):
        names = list(value)
    else:
        return [f"{word}: {value!r} is no column; write its name, or a list of names such as ['a', 'b']"]
    lower = [name.lower() for name in names]
    twice = [name for at, name in enumerate(names) if name.lower() in lower[:at]]
    return [f"{word}: {name} is named twice" for name in dict.fromkeys(twice)]


def _row_update(value: Any) -> tuple[Mapping[str, str], list[str]]:
    if value is None:
        return {"": "keep"}, []
    given = value if isinstance(value, Mapping) else {"default": value}
    rules = {("" if str(column) == "default" else str(column).lower()): str(rule) for column, rule in given.items()}
    problems = [
        f"on_row_update: {rule!r} is not one of {', '.join(ROW_UPDATE)}{_nearest(rule, ROW_UPDATE)}"
        for rule in rules.values()
        if rule not in ROW_UPDATE
    ]
    rules.setdefault("", "keep")
    return rules, problems


def _unknown_words(config: Mapping[str, Any], declared: Collection[str]) -> list[str]:
    known = OWN_WORDS | MACRO_WORDS | {*declared}
    return [
        f"{word}: there is no such setting{_nearest(word, tuple(sorted(known)))} (free notes belong under `meta`)"
        for word in config
        if word not in known
    ]


def _nearest(word: str, allowed: Sequence[str]) -> str:
    close = nearest(word, allowed, cutoff=0.6)
    return f"; did you mean {close!r}?" if close else ""
