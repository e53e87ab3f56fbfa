"""The values of one run: what the functions of the clock, the user and the session answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from spark_mv.query.rewrite.pin import Pins
from spark_mv.spark.run.look_up import SessionFacts


def run_pins(as_of: datetime, session: SessionFacts, schemas: Mapping[str, Mapping[str, str]]) -> Pins:
    """What the functions of level command, user and session answer in this run. `schemas`: all that the query reads."""
    return Pins(
        as_of=as_of,
        time_zone=session.time_zone,
        user=session.user,
        session_user=session.user,
        catalog=session.catalog,
        schema=session.schema,
        version=session.version,
        columns=frozenset(column for columns in schemas.values() for column in columns),
    )
