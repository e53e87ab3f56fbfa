"""The clock is that of the session; the zone of the process that runs dbt does not matter."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
select id, day, rand() as split
from {{ target.schema }}.src
where day > current_date() - interval 3 days
"""


def use_zone(name: str | None) -> None:
    os.environ.pop("TZ", None)
    if name is not None:
        os.environ["TZ"] = name
    time.tzset()


class InZone:
    session_zone = "UTC"

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        settings = {**dbt_profile_target["spark_config"], "spark.sql.session.timeZone": self.session_zone}
        return {**dbt_profile_target, "spark_config": settings}

    @pytest.fixture(scope="class", autouse=True)
    def elsewhere(self) -> Iterator[None]:
        before = os.environ.get("TZ")
        use_zone("Pacific/Auckland")
        yield
        use_zone(before)

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        sql(
            "create or replace table {schema}.src using delta as "
            "select id, date'2026-02-01' + cast(id as int) as day from range(10)"
        )


class TestUtc(InZone):
    def test_rows_leave_at_midnight_of_the_session(self, mv: Any) -> None:
        first = mv.run("2026-02-03 06:00:00")
        assert first["next_change_at"] == "2026-02-04 00:00:00.000000"
        assert mv.run("2026-02-03 23:59:59.999999")["strategy"] == "NO_OP"
        assert mv.run("2026-02-04 00:00:00")["rows_evicted"] == 1


class TestTokyo(InZone):
    session_zone = "Asia/Tokyo"

    def test_rows_leave_at_midnight_of_the_session(self, mv: Any) -> None:
        first = mv.run("2026-02-03 06:00:00")
        assert first["as_of"] == "2026-02-02 21:00:00.000000"
        assert first["next_change_at"] == "2026-02-03 15:00:00.000000"
        assert mv.run("2026-02-03 14:59:59.999999+00:00")["strategy"] == "NO_OP"
        assert mv.run("2026-02-03 15:00:00+00:00")["rows_evicted"] == 1


HEADED = """
{{ config(materialized='nondeterministic_mv', unique_key='id') }}
{% call set_sql_header(config) %}
set time zone '{{ var("zone") }}'; set spark.sql.ansi.enabled = true
{% endcall %}
select id, hour(timestamp'2026-02-01 00:00:00Z') as h, rand() as split from {{ target.schema }}.src
"""


class TestHeader:
    """A header holds for the model that has it, and a run sees what it sets."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": HEADED}

    def test_a_zone_of_its_own(self, mv: Any, sql: Any) -> None:
        sql("create or replace table {schema}.src using delta as select id from range(3)")
        split = None
        for zone, hour in (("UTC", 0), ("Asia/Kolkata", 5)):
            mv.run(zone=zone)
            assert mv.rows("h") == {(hour,): 3}
            split = split or mv.by_id("split")
            assert mv.by_id("split") == split
            assert mv.run(zone=zone)["code"] == "NO_OP"
