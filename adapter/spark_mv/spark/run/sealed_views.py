"""Views whose text would say something else in this session than Spark reads through them.

Spark keeps with a view the settings of the session that made it, the schema in which it finds names, and the types of its columns, and reads the view by
these (Spark's `View.effectiveSQLConf` and `SessionCatalog.fromCatalogTable`). Its text, put in its place, would be read by those of the model's session. Where they differ the
view is sealed: it is read as it is, as a whole, at each run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from spark_mv.maintenance.columns import same_type
from spark_mv.maintenance.errors import RefusedError, first_line
from spark_mv.maintenance.facts import SourceFacts
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.inline_views import tables_of
from spark_mv.query.syntax.parse import Parsed, parse
from spark_mv.query.syntax.select_tree import calls
from spark_mv.query.syntax.table_name import quoted, quoted_name, table_key
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.views import ViewMade, default_setting, view_made
from spark_mv.spark.run.look_up import SessionFacts, decides_results, query_columns, source_facts
from spark_mv.spark.session.current_values import TIME_ZONE

Functions = Mapping[str, Mapping[str, Any]]

_CURRENT = "spark.sql.legacy.useCurrentConfigsForView"
_ANSI = "spark.sql.ansi.enabled"
_NOT_OF_QUERIES = frozenset(["spark.sql.sources.default", "spark.sql.storeAssignmentPolicy", _CURRENT])
"""Settings that decide what a statement makes or writes, and not what a SELECT gives."""
_NOT_KEPT = ("spark.sql.optimizer.", "spark.sql.hive.convert")
"""Beginnings of settings that Spark does not keep with a view, and reads it by those of the session (ViewHelper.shouldCaptureConfig)."""
_UTC = frozenset(
    [
        "utc",
        "etc/utc",
        "gmt",
        "etc/gmt",
        "z",
        "ut",
        "uct",
        "etc/uct",
        "zulu",
        "etc/zulu",
        "universal",
        "etc/universal",
        "+00:00",
    ]
)
_ZONE_SHOWN = re.compile(r"VV|current_timezone", re.IGNORECASE)
"""Where a text may show the name of the zone."""
_BINARY = "UTF8_BINARY"
_OF_MODELS = frozenset(["MISSING_UNIQUE_KEY", "DUPLICATE_COLUMN"])
"""What is wrong with a model, and not with a view."""
MOST = 1_000
_same_types: set[tuple[object, ...]] = set()
"""Views whose text was found to have the types that the view says, with all that this hangs on."""


def sealed(
    query: Query, new: Mapping[str, SourceFacts], session: SessionFacts, functions: Functions
) -> dict[str, SourceFacts]:
    """The sources, with those views sealed that were made with other settings or elsewhere."""
    found = dict(new)
    for name, source in new.items():
        if source.view_text is not None:
            made = view_made(query, quoted_name(name), temporary=source.provider != "view")
            if why := _made_otherwise(query, source.view_text, made, session, functions):
                found[name] = _sealed(source, why)
    return found


def sealed_by_types(
    query: Query, sources: Mapping[str, SourceFacts], session: SessionFacts, remember: bool
) -> dict[str, SourceFacts]:
    """Those views whose text has other types now than the view, which Spark casts: sealed. `remember`: only tables and views decide the types."""
    found = {}
    known = {table_key(name): source.columns for name, source in sources.items()}
    for name, source in sources.items():
        if source.view_text is None:
            continue
        below = tuple(known.get(table_key(table)) for table in tables_of(source.view_text))
        hangs_on = (source.view_text, source.columns, below, session.time_zone, tuple(sorted(session.settings.items())))
        if hangs_on in _same_types:
            continue
        if why := _other_types(query, source):
            found[name] = _sealed(source, why)
        elif remember and None not in below:
            if len(_same_types) >= MOST:
                _same_types.clear()
            _same_types.add(hangs_on)
    return found


def check_sealed(
    query: Query,
    sources: Mapping[str, SourceFacts],
    functions: Functions,
    model: str,
    check: Callable[[Analysis], object],
) -> None:
    """Raises RefusedError for a sealed view that hides a clock, a draw, a model call or the session, itself or in views below: only as part of the query
    can it be pinned and kept. `check`: what else a model's query, and all that it reads, has to pass."""
    below = dict(sources)
    for name, source in sources.items():
        if source.sealed:
            verdict = _whole_verdict(query, source.sealed_text, below, functions, model)
            check(verdict)
            volatile = max(verdict.functions, key=lambda call: call[1], default=None)
            unread = [error for error in verdict.errors if error.code not in _OF_MODELS]
            if volatile is not None:
                hidden = f"calls {volatile[0]}, which is {volatile[1]}"
            elif unread:
                hidden = f"cannot be read: {unread[0].message}"
            else:
                continue
            raise RefusedError(
                "SEALED_VIEW",
                f"model {model}: view {name} {hidden}. That is pinned and kept only where the text of the view stands in place of its name, where it would say something "
                f"else than the view: {source.sealed}. Make the view again in a session like this one (dbt does, where it is a model), or read its tables directly",
            )


def _sealed(source: SourceFacts, why: str) -> SourceFacts:
    assert source.view_text is not None
    return replace(source, view_text=None, sealed=why, sealed_text=source.view_text)


def _whole_verdict(
    query: Query, text: str, below: dict[str, SourceFacts], functions: Functions, model: str
) -> Analysis:
    """On the text of a view, with all views that it stands on looked through, however they were made."""
    while True:
        verdict = analyze(
            text,
            schemas={name: {c.name: c.type for c in source.columns} for name, source in below.items()},
            functions=functions,
            rewritten=True,
            views={n: seen for n, source in below.items() if (seen := source.view_text or source.sealed_text)},
            model=model,
        )
        new = source_facts(query, [table.name for table in verdict.tables], below)
        if not new:
            return verdict
        below.update(new)


def _made_otherwise(query: Query, text: str, made: ViewMade | None, session: SessionFacts, functions: Functions) -> str:
    """What is not as in the session that made the view; empty where nothing is."""
    current = session.settings.get(_CURRENT, "").lower() == "true"
    if "${" in text:
        return "Spark puts values into it for ${…}"
    if made is None:
        return (
            ""
            if current
            else f"Spark does not tell with which settings it was made (from 4.0 on it does), unless {_CURRENT} is true"
        )
    if made.collation.upper() not in ("", _BINARY):
        return f"its texts are compared by {made.collation}"
    other = "" if current and not made.temporary else _other_settings(query, text, made, session)
    return other or _other_place(text, made, session, functions) or _other_function(query, text, made)


def _other_settings(query: Query, text: str, made: ViewMade, session: SessionFacts) -> str:
    here = {name: value for name, value in session.settings.items() if _decides(name)} | {TIME_ZONE: session.time_zone}
    there = {_ANSI: "false"} | {name: value for name, value in made.settings.items() if _decides(name)}
    for name in sorted({*here, *there}):
        now, then = (
            settings[name] if name in settings else default_setting(query, name, name in here)
            for settings in (here, there)
        )
        if now is None or then is None or not _same(name, now.lower(), then.lower(), text):
            if name not in there and not _is_kept(query, name):
                continue
            return f"{name} is {_shown(now)} here, and was {_shown(then)} where the view was made"
    return ""


def _same(name: str, now: str, then: str, text: str) -> bool:
    utc = name == TIME_ZONE and {now, then} <= _UTC and not _ZONE_SHOWN.search(text)
    return utc or now == then


def _decides(name: str) -> bool:
    of_queries = name not in _NOT_OF_QUERIES and not name.startswith(_NOT_KEPT)
    return name == TIME_ZONE or (of_queries and decides_results(name))


def _is_kept(query: Query, name: str) -> bool:
    """Whether Spark keeps a setting with a view: not one that is fixed when Spark starts."""
    try:
        return bool(query.spark.conf.isModifiable(name))  # type: ignore[attr-defined]
    except Exception:  # a session out of reach
        return True


def _shown(value: str | None) -> str:
    return "not made" if value is None else value or "empty"


def _other_place(text: str, made: ViewMade, session: SessionFacts, functions: Functions) -> str:
    """Names of two parts are found in the current catalogue, and functions of one in the current schema."""
    here = (session.catalog.lower(), session.schema.lower())
    there = tuple(part.lower() for part in made.namespace)
    if there == here or not there:
        return ""
    place = (
        f"the view was made in {'.'.join(made.namespace)}, and this session is in {session.catalog}.{session.schema}"
    )
    if there[0] != here[0]:
        return place
    verdict = analyze(text, functions=functions)
    own = [*verdict.own_functions, *(name for name, level, *_ in verdict.functions if _is_own(name, level))]
    return f"it calls {own[0]}, and {place}" if (own := [name for name in own if "." not in name]) else ""


def _other_function(query: Query, text: str, made: ViewMade) -> str:
    """A function of the session alone is not what a view means that outlives it."""
    parsed = None if made.temporary else parse(text)
    for name in sorted(set(calls(parsed.tree))) if isinstance(parsed, Parsed) else ():
        if level_of(name) is None:
            with suppress(Exception):  # none of that name: the query's own error says more
                told = next(iter(query(f"describe function {quoted(name)}")[0].values()))
                if "." not in str(told).partition(":")[2]:
                    return f"it calls {name}, and this session has a temporary function of that name"
    return ""


def _is_own(name: str, level: Level) -> bool:
    return level is not Level.AI and level_of(name) is None and not name.startswith("'")


def _other_types(query: Query, source: SourceFacts) -> str:
    try:
        now = query_columns(query, source.view_text or "")
    except Exception as error:
        return f"Spark does not read its text any more: {first_line(error)}"
    if len(now) != len(source.columns):
        return f"its text has {len(now)} columns now, and the view {len(source.columns)}"
    for column, then in zip(now, source.columns, strict=True):
        if not same_type(column, then):
            return f"its column {then.name} is {then.type} in the view, and what it reads makes it {column.type} now"
    return ""
