"""What a plan for the macro-only mode is made of: the steps that the macros can take by themselves, and the places in their texts
that a run fills in.

A plan is made ahead of time, so it is made twice, at two instants and two sets of versions that no run has: what the one says at
the one and the other at the other has a place in it. Texts that still differ hold something that macros cannot fill in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from spark_mv.maintenance.config import OWN_WORDS, ModelConfig
from spark_mv.maintenance.facts import SourceFacts
from spark_mv.maintenance.plan import Plan, Step
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.row_limit import RowLimit
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_move import NEAR
from spark_mv.query.rewrite.pin import Pins, date_literal, timestamp_literal
from spark_mv.query.syntax.clock_words import pin_level

FORMAT = 1
MARK = "__mv_fill_"
INSTANTS = (
    datetime(3417, 1, 17, 3, 5, 7, 123457, tzinfo=timezone.utc),
    datetime(3581, 7, 24, 15, 46, 38, 654321, tzinfo=timezone.utc),
)
"""Instants that stand for that of a run. No part of the one is that of the other."""
VERSIONS = (880_011_770, 990_022_660)
"""From here on, versions that stand for those of the sources."""
CHECKED = OWN_WORDS - {"as_of", "choose_by", "on_schema_change", "second_reading"} | {
    "cluster_by",
    "liquid_clustered_by",
    "location",
    "sql_header",
    "tblproperties",
}
"""Config words that a plan follows from."""
TAKES = (
    "stage_source_changes",
    "stage_query",
    "check_new",
    "ai_round",
    "stage_changes",
    "check_stage",
    "count_evicted",
    "check_limit",
    "confirm_sources",
    "next_change",
    "create_table",
    "replace_table",
    "append",
    "merge_into",
    "record_only",
)
"""The kinds of step that the macros take."""
SESSION = {
    "user": "current_user()",
    "catalog": "current_catalog()",
    "schema": "current_schema()",
    "spark": "version()",
}
"""What a query may ask of the user and the session, and how a run finds it."""
SPARES = ("gone_keys", "replace_using", "staged_keys", "replace_where", "key_range", "ask_ahead")
"""The kinds of step that only make a run quicker: what MERGE publishes, and what the check of the rows finds out, too."""


def session_mark(name: str) -> str:
    """Stands for the text that the session gives, inside the quotes of a literal."""
    return f"{MARK}session_{name}__"


class NeedsAdapter(Exception):
    """The model is not one that macros can run by themselves; the text says why."""


@dataclass(frozen=True)
class Place:
    """Where a text names the instant of a run: `literal` is what the engine writes there, `sql` an expression that gives the same
    text, over `__mv_at`, the instant `ahead` of the run's. Without `sql`, it is TIMESTAMP'…' in UTC."""

    name: str
    literal: Callable[[Pins], str]
    sql: str = ""
    ahead: timedelta = timedelta(0)

    @property
    def mark(self) -> str:
        return f"{MARK}{self.name}__"


def _day(days: int) -> Callable[[Pins], str]:
    return lambda pins: date_literal(pins.as_of, pins.time_zone, days)


def _local(form: str) -> Callable[[Pins], str]:
    def literal(pins: Pins) -> str:
        text = timestamp_literal(pins.as_of, pins.time_zone)[len("TIMESTAMP'") : -1]
        digits = text[:26]
        return f"{form}'{digits if form == 'TIMESTAMP_NTZ' else digits[11:]}'"

    return literal


def _formatted(word: str, pattern: str) -> str:
    return f"concat('{word}\\'', date_format(__mv_at, '{pattern}'), '\\'')"


_FORMS: tuple[tuple[str, Callable[[Pins], str], str], ...] = (
    (
        "at",
        lambda p: timestamp_literal(p.as_of, p.time_zone),
        _formatted("TIMESTAMP", "yyyy-MM-dd HH:mm:ss.SSSSSSxxx"),
    ),
    ("utc", lambda p: timestamp_literal(p.as_of, "UTC"), ""),
    ("day", _day(0), _formatted("DATE", "yyyy-MM-dd")),
    ("day_before", _day(-1), "concat('DATE\\'', cast(date_sub(__mv_at, 1) as string), '\\'')"),
    ("day_after", _day(1), "concat('DATE\\'', cast(date_add(__mv_at, 1) as string), '\\'')"),
    ("local", _local("TIMESTAMP_NTZ"), _formatted("TIMESTAMP_NTZ", "yyyy-MM-dd HH:mm:ss.SSSSSS")),
    ("time", _local("TIME"), _formatted("TIME", "HH:mm:ss.SSSSSS")),
    (
        "seconds",
        lambda p: (
            f"CAST({int((p.as_of - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(seconds=1))} AS BIGINT)"
        ),
        "concat('CAST(', unix_seconds(__mv_at), ' AS BIGINT)')",
    ),
)
PLACES = tuple(
    Place(f"{prefix}{name}", literal, sql, ahead)
    for prefix, ahead in (("", timedelta(0)), ("near_", NEAR))
    for name, literal, sql in _FORMS
)
"""All ways in which a text names an instant (query/rewrite/pin.py)."""


def with_places(value: Any, pins: Pins, versions: Mapping[str, int], others: Mapping[str, str] | None = None) -> Any:
    """`value` (as JSON has it) with a mark where it names the instant of `pins`, or one of the `versions` (by name of their mark).
    `others`: further texts, with their marks."""
    text = json.dumps(value, sort_keys=True)
    for other, mark in (others or {}).items():
        text = text.replace(other, mark)
    for place in PLACES:
        literal = place.literal(pins.at(pins.as_of + place.ahead))
        text = text.replace(json.dumps(literal)[1:-1], place.mark)
    for name, version in versions.items():
        text = text.replace(str(version), f"{MARK}{name}__")
    return json.loads(text)


def places_in(value: Any) -> dict[str, dict[str, Any]]:
    """The places of an instant that a value has: by their marks, how a run finds what stands there."""
    text = json.dumps(value)
    return {place.mark: {"sql": place.sql, "ahead_days": place.ahead.days} for place in PLACES if place.mark in text}


def taken(steps: Sequence[Step]) -> list[Step]:
    """The steps that the macros take, in order. Raises NeedsAdapter for those that they cannot."""
    found = [step for step in steps if step.kind not in SPARES]
    if strange := [step.kind for step in found if step.kind not in TAKES]:
        raise NeedsAdapter(f"a run of it takes steps that macros cannot ({', '.join(dict.fromkeys(strange))})")
    return found


def complete(plan: Plan) -> Plan:
    """The plan, a complete recompute. Raises NeedsAdapter for any other."""
    if plan.strategy != "COMPLETE_RECOMPUTE" or plan.record is None:
        why = (
            "it reads no table, and macros have nothing to tell a changed one by"
            if plan.strategy == "NO_OP"
            else f"its strategy is {plan.strategy}"
        )
        raise NeedsAdapter(why)
    return plan if plan.fallback is None else plan.fallback  # that of a first run stages rows, as macros do


def check_config(config: ModelConfig, given: Mapping[str, Any]) -> None:
    """Raises NeedsAdapter for a setting that the macros do not know how to follow. `given`: the model's config."""
    problems = {
        "file_format": config.file_format != "delta",
        "on_source_delete: keep": config.on_source_delete == "keep",
        "freeze_where": bool(config.freeze_where),
        "refresh: incremental": config.refresh == "incremental",
        "audit": config.audit is not None,
        "sensitive_key": config.sensitive_key,
        "sql_header": bool(given.get("sql_header")),
        "an enforced contract": bool((given.get("contract") or {}).get("enforced")),
    }
    if found := [word for word, said in problems.items() if said]:
        raise NeedsAdapter(f"macros do not follow {', '.join(found)}")


def check_query(sql: str, analysis: Analysis, sources: Sequence[SourceFacts], functions: Mapping[str, str]) -> None:
    """Raises NeedsAdapter for what the query has and macros cannot do. `functions`: the project's own that it calls."""
    if analysis.rows_level is Level.NONDETERMINISTIC:
        raise NeedsAdapter("it draws in a filter, and these draws are kept in a table of their own")
    if functions or analysis.own_functions:
        raise NeedsAdapter("it calls functions of your own, whose definitions are compared at each run")
    if "${" in sql or MARK in sql or any(f"{instant.year}" in sql for instant in INSTANTS):
        raise NeedsAdapter(
            "its text holds ${…}, whose value Spark puts in, or what stands for a run's values in a plan"
        )
    for source in sources:
        if source.provider == "view":
            continue  # its text is compared at each run, and what it reads is a source as well
        if source.version is None or source.provider != "delta" or source.obstacle:
            raise NeedsAdapter(
                f"it reads {source.name} ({source.provider or 'unknown format'}), which is no Delta table"
            )


def session_pins(rewritten: Rewritten) -> list[str]:
    """What is pinned and is not the clock's. Raises NeedsAdapter for what a run has no place for."""
    found = sorted(name for name in rewritten.pins if pin_level(name) != Level.COMMAND)
    marks = [session_mark(name) for name in SESSION]
    if strange := [
        n for n in found if n != "current_timezone" and not any(mark in rewritten.pins[n] for mark in marks)
    ]:
        raise NeedsAdapter(f"its result follows the session ({', '.join(strange)})")
    return found


def limit_args(limit: RowLimit) -> dict[str, Any]:
    """What `most` of a limit is computed from: a number of rows, or a share of them."""
    if limit.share is None:
        return {"limit": limit.written, "rows": limit.rows, "of": 0, "each": 1}
    of, each = limit.share.as_integer_ratio()
    return {"limit": limit.written, "rows": None, "of": of, "each": each}
