"""Looks at a running statement by Thrift: soon at first, then at most as often as the profile says."""

from __future__ import annotations

from dbt.adapters.spark.connections import PyhiveConnectionWrapper

from spark_mv.spark.adapter.thrift_handle import ThriftHandle


def test_pauses_grow_up_to_the_poll_interval() -> None:
    handle = ThriftHandle(PyhiveConnectionWrapper(object(), poll_interval=5, query_timeout=7, query_retries=2))
    pauses = [handle.poll_interval for _ in range(20)]
    assert pauses[0] < 0.1
    assert pauses == sorted(pauses)
    assert pauses[-1] == 5
    assert (handle.query_timeout, handle.query_retries) == (7, 2)
