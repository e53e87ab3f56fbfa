"""What dbt holds as the handle of a connection by Thrift: dbt-spark's, asking more often whether a statement is done."""

from __future__ import annotations

from typing import Any

from dbt.adapters.spark.connections import PyhiveConnectionWrapper

_FIRST = 0.05
_GROWTH = 1.5


class ThriftHandle(PyhiveConnectionWrapper):
    """dbt-spark sleeps `poll_interval` (5 s by default) between two looks at a running statement, so that each one takes
    5 s at least. Here the pauses grow from 0.05 s to `poll_interval`."""

    def __init__(self, other: PyhiveConnectionWrapper) -> None:
        self._longest = float(other.poll_interval)
        self._pause = _FIRST
        super().__init__(other.handle, 0, other.query_timeout, other.query_retries)

    def execute(self, sql: str, bindings: Any = None) -> None:
        self._pause = _FIRST
        super().execute(sql, bindings)

    @property
    def poll_interval(self) -> float:
        """The next pause in seconds; longer with every look."""
        pause, self._pause = self._pause, self._pause * _GROWTH
        return min(pause, self._longest)

    @poll_interval.setter
    def poll_interval(self, value: float) -> None:
        """The base class sets it once; `_longest` counts."""
