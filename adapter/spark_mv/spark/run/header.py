"""A model's `sql_header` where something is asked about the model outside of its run: the query may need what it makes or sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spark_mv.spark.run.invocation import Invocation


def header_of(invocation: Invocation) -> str:
    """The statements that go before the model's run in its session; empty for none."""
    return str(invocation.config.get("sql_header") or "").strip()


def send_header(adapter: Any, invocation: Invocation) -> None:
    """Sends the header into the session of this thread's connection, where it stays."""
    if header := header_of(invocation):
        adapter.query(header)


@contextmanager
def session_of(adapter: Any, invocation: Invocation) -> Iterator[None]:
    """A connection of its own with the model's header in its session; without a header it is the one that there is. What the header
    sets or makes ends with it."""
    if not header_of(invocation):
        yield
        return
    connections = adapter.connections
    before = connections.get_thread_connection().name
    connections.release()
    connections.set_connection_name(f"{invocation.unique_id}.header")
    try:
        send_header(adapter, invocation)
        yield
    finally:
        connections.release()
        connections.set_connection_name(before)
