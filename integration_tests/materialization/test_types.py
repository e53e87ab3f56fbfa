"""Every change of a value is noticed, whatever its type, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', refresh=var('refresh', 'auto')) }}
select *, uuid() as drawn from {{ target.schema }}.src
"""
SOURCE = """
create or replace table {schema}.src tblproperties ('delta.enableChangeDataFeed' = 'true') as
select
  id,
  map('a', timestamp'2026-01-01 00:00:00.000001') as m,
  named_struct('n', cast(null as int), 't', timestamp'2026-01-01 00:00:00.000001') as s,
  array(cast(1.5 as double), double('NaN')) as a,
  parse_json('[1, null]') as v,
  'a' as c,
  cast(1 as decimal(38, 10)) as d,
  map('x', named_struct('y', cast(null as string))) as deep
from range(9)
"""
CHANGES = [
    "m = map('a', timestamp'2026-01-01 00:00:00.000002') where id = 0",
    "s = named_struct('n', cast(null as int), 't', timestamp'2026-01-01 00:00:00.000002') where id = 1",
    "a = array(cast(1.5 as double), cast(null as double)) where id = 2",
    "v = parse_json('[1]') where id = 3",
    "c = 'A' where id = 4",
    "d = cast('1.0000000001' as decimal(38, 10)) where id = 5",
    "deep = map('x', named_struct('y', '')) where id = 6",
    "m = null where id = 7",
]
COLUMNS = "id, cast(m['a'] as string), s, a, to_json(v), c, d, to_json(deep)"


class TestTypes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    @pytest.mark.parametrize("refresh", ["full", "incremental"])
    def test_changes_are_seen(self, mv: Any, sql: Any, refresh: str) -> None:
        sql(SOURCE)
        mv.run("2026-02-01 06:00:00", "--full-refresh")
        drawn = mv.by_id("drawn")
        for change in CHANGES:
            sql(f"update {{schema}}.src set {change}")
        answer = mv.run(refresh=refresh)
        assert (answer["rows_inserted"], answer["rows_updated"], answer["rows_deleted"]) == (0, 8, 0)
        assert sorted(map(str, sql(f"select {COLUMNS} from {{schema}}.mv"))) == sorted(
            map(str, sql(f"select {COLUMNS} from {{schema}}.src"))
        )
        assert mv.by_id("drawn") == drawn
        sql("update {schema}.src set d = d, m = m, v = v")
        assert mv.run(refresh=refresh)["rows_affected"] in (0, None)
