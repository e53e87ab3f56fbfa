"""The values of one run: what the functions of the clock, the user and the session answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from spark_mv.query.rewrite.clock_scope_types import schema_columns
from spark_mv.query.rewrite.pin import Pins
from spark_mv.spark.run.look_up import SessionFacts


def run_pins(
    as_of: datetime, session: SessionFacts, schemas: Mapping[str, Mapping[str, str]], words: Iterable[str] = ()
) -> Pins:
    """What the functions of level command, user and session answer in this run. `schemas`: all that the query reads, `words`: its columns that
    have the name of one."""
    return Pins(
        as_of=as_of,
        time_zone=session.time_zone,
        user=session.user,
        session_user=session.user,
        catalog=session.catalog,
        schema=session.schema,
        version=session.version,
        columns=schema_columns(schemas) | frozenset(words),
    )
