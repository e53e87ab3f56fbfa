"""Every change of a value is noticed, whatever its type, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from integration_tests.under_format import FORMAT

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', refresh=var('refresh', 'auto')) }}
select *, uuid() as drawn from {{ target.schema }}.src
"""
VARIANT = """
{{ config(materialized='nondeterministic_mv', unique_key='id', tblproperties={'format-version': '3'}) }}
select *, uuid() as drawn from {{ target.schema }}.variant_src
"""
RETYPED = """
{{ config(materialized='nondeterministic_mv', unique_key='id', freeze=['first'], on_schema_change=var('policy', 'sync_all_columns')) }}
select id, c, c as first, uuid() as drawn from {{ target.schema }}.retyped_src
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
if FORMAT == "iceberg":  # see test_a_variant_has_no_place_in_hives_metastore
    MODEL = MODEL.replace("select *", "select * except (v), to_json(v) as v")
COLUMNS = "id, cast(m['a'] as string), s, a, to_json(v), c, d, to_json(deep)"


class TestTypes:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL, "retyped.sql": RETYPED, "variant.sql": VARIANT}

    @pytest.mark.parametrize("refresh", ["full", "incremental"])
    def test_changes_are_seen(self, mv: Any, sql: Any, refresh: str) -> None:
        sql(SOURCE)
        mv.run("2026-02-01 06:00:00", "--full-refresh")
        drawn = mv.by_id("drawn")
        for change in CHANGES:
            sql(f"update {{schema}}.src set {change}")
        answer = mv.run(refresh=refresh)
        assert (answer["rows_inserted"], answer["rows_updated"], answer["rows_deleted"]) == (0, 8, 0)
        of_table = COLUMNS.replace("to_json(v)", "v") if FORMAT == "iceberg" else COLUMNS
        assert sorted(map(str, sql(f"select {of_table} from {{schema}}.mv"))) == sorted(
            map(str, sql(f"select {COLUMNS} from {{schema}}.src"))
        )
        assert mv.by_id("drawn") == drawn
        sql("update {schema}.src set d = d, m = m, v = v")
        assert mv.run(refresh=refresh)["rows_affected"] in (0, None)

    @pytest.mark.skipif(FORMAT != "iceberg", reason="Iceberg alone: Delta's tables are not Hive's")
    def test_a_variant_has_no_place_in_hives_metastore(self, mv: Any, sql: Any) -> None:
        sql("create or replace table {schema}.variant_src as select id, parse_json('[1]') as v from range(3)")
        said = type(mv)(sql, "variant").run(expect_pass=False)
        assert "Hive's metastore, knows no such type" in said and "to_json" in said

    def test_types_between_which_there_is_no_cast(self, mv: Any, sql: Any) -> None:
        model = type(mv)(sql, "retyped")

        def source(value: str) -> list[tuple[Any, ...]]:
            sql(f"create or replace table {{schema}}.retyped_src using delta as select id, {value} as c from range(4)")
            return sql("select id, c from {schema}.retyped_src order by id")

        wanted = source("1.5D")
        model.run()
        drawn = model.by_id("drawn")
        for args, value in (((), "date'2026-01-01'"), (("--full-refresh",), "named_struct('a', 1)"), ((), "true")):
            wanted = source(value)
            if value == "true":
                assert "on_schema_change: ignore" in model.run(expect_pass=False, policy="ignore")
            answer = model.run("2026-02-01 06:00:00", *args)
            assert any("first is drawn anew in all rows: what it was" in note for note in answer["notes"])
            assert sql("select id, c from {schema}.retyped order by id") == wanted
            assert sql("select id, first from {schema}.retyped order by id") == wanted
            assert model.by_id("drawn") == drawn
        source("1")  # there is a cast: what is frozen stays what it was
        model.run()
        assert set(sql("select distinct c, first from {schema}.retyped")) == {(1, 1)}
        assert model.by_id("drawn") == drawn
