"""A text of the user's stays a text; bounds may lie at the ends of time; an instant ahead of the clock is asked for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from spark_mv.maintenance.errors import RefusedError

TEXTS = (
    "{state}", "{target}", "`__mv_rel_state`", "`__mv_rel_changes_0`", "__mv_predicate__", "`__mv_rel_predicate`",
    "{{ this }}", "{% if x %}", "{}", "%s", "$1",
)  # fmt: skip


class TestTextsOfTheUser:
    @pytest.mark.parametrize("config", [{"on_source_delete": "keep"}, {"refresh": "incremental"}])
    def test_they_stay_in_every_statement(self, engine: Any, config: dict[str, str]) -> None:
        engine.query(
            "create or replace table {schema}.src using delta as select id, timestamp'2026-03-01' as target from range(5)"
        )
        text = " ".join(TEXTS)
        # beside the literal: a comment, and a bound that is a column called like a relation of the run
        engine.model(
            f"select id, target, '{text}' as x, rand() as r -- {text}\nfrom {{schema}}.src where target > now()",
            **config,
        )
        engine.run("2026-02-01 06:00:00")
        engine.query("insert into {schema}.src select id + 5, timestamp'2026-04-01' from range(2)")
        engine.run("2026-02-02 06:00:00")
        assert engine.rows(columns="x") == {(text,): 7}
        engine.query("update {schema}.src set target = timestamp'2026-05-01' where id = 5")
        engine.run("2026-03-02 06:00:00")
        assert engine.rows(columns="id, x") == {(5, text): 1, (6, text): 1}

    def test_a_setting_that_spark_puts_into_the_query(self, engine: Any) -> None:
        session = engine.adapter.mv_spark()
        engine.model("select 1 as id, '${mine.day}' as a, '${hiveconf:mine.day}' as b, rand() as r")
        try:
            for value in ("monday", "friday"):
                session.conf.set("mine.day", value)
                engine.run()
                assert engine.rows(columns="a, b") == {(value, value): 1}
                assert engine.run().plan.strategy == "NO_OP"
        finally:
            session.conf.unset("mine.day")

    def test_what_spark_takes_from_elsewhere(self, engine: Any) -> None:
        """A setting that names another one, a property of the JVM, a variable of its environment."""
        session = engine.adapter.mv_spark()
        properties = session._jvm.java.lang.System
        engine.model(
            "select 1 as id, '${mine.day}' as a, \"${system:mine.place}\" as b, '${env:HOME}' as c, rand() as r"
        )
        try:
            session.conf.set("mine.day", "on ${mine.inner}")
            for day, place in (("monday", "here"), ("friday", "here"), ("friday", "there")):
                session.conf.set("mine.inner", day)
                properties.setProperty("mine.place", place)
                assert engine.run().plan.strategy != "NO_OP"
                assert engine.rows(columns="a, b") == {(f"on {day}", place): 1}
                assert engine.run().plan.strategy == "NO_OP"
            rows = engine.rows()
            properties.setProperty("mine.place", "x', rand() || '")
            with pytest.raises(RefusedError, match=r"system:mine\.place.*is no plain text"):
                engine.run()
            assert engine.rows() == rows
        finally:
            for name in ("mine.day", "mine.inner"):
                session.conf.unset(name)
            properties.clearProperty("mine.place")


class TestKeysOfTheUser:
    """Keys that Spark reads otherwise than as they stand where a statement names them: `${…}` of a setting, escapes."""

    @pytest.mark.parametrize("escaped", ["false", "true"])
    def test_rows_that_go_and_rows_that_change(self, engine: Any, spark: Any, escaped: str) -> None:
        setting, name = "spark.sql.parser.escapedStringLiterals", "concat('$', '{spark.app.name}')"
        session = engine.adapter.mv_spark()
        keys = f"explode(array('a', 'b', {name}, concat('O', chr(39), 'Brien'), concat('c', chr(92), 'n')))"
        engine.query(f"create or replace table {{schema}}.src using delta as select 'x' as v, {keys} as id")
        engine.model("select id, v, rand() as r from {schema}.src")
        try:
            session.conf.set(setting, escaped)
            engine.run()
            kept = dict(engine.rows_of("select id, r from {schema}.mv"))
            engine.query("update {schema}.src set v = 'y' where id = 'a'")
            engine.query("delete from {schema}.src where length(id) > 1")
            assert engine.run().counts["deleted"] == 3
            assert engine.rows(columns="id, v") == {("a", "y"): 1, ("b", "x"): 1}
            engine.query(f"insert into {{schema}}.src select 'x', {name}")
            engine.query("update {schema}.src set v = 'z'")
            engine.run()
            engine.query("update {schema}.src set v = 'w' where id <> 'a'")
            engine.run()
            assert engine.rows(columns="v") == {("z",): 1, ("w",): 2}
            assert dict(engine.rows_of("select id, r from {schema}.mv where id < 'c' and id > 'A'")) == {
                key: kept[key] for key in ("a", "b")
            }
        finally:
            session.conf.unset(setting)


class TestFarBounds:
    @pytest.mark.parametrize(
        ("rows", "condition"),
        [
            ("date'0001-01-01' as a, date'9999-12-31' as z", "current_date() between a and z"),
            (
                "timestamp'0001-01-01' as a, timestamp'9999-12-31 23:59:59.999999' as z, 9223372036854775807L as e",
                "now() between a and z and current_date() <= date_add(cast(z as date), 1) and unix_timestamp() - e < 3600",
            ),
            (
                "'0001-01-01' as a, cast(null as date) as z",
                "current_date() > a and coalesce(z, date'9999-12-31') > now()",
            ),
        ],
    )
    def test_they_mean_never(self, engine: Any, rows: str, condition: str) -> None:
        engine.query(f"create or replace table {{schema}}.src using delta as select id, {rows} from range(3)")
        engine.model(f"select id, a, z, rand() as r from {{schema}}.src where {condition}")
        assert engine.run().counts["inserted"] == 3
        assert engine.run("2026-02-02 06:00:00").plan.strategy == "NO_OP"
        engine.query(f"insert into {{schema}}.src select 7, {rows}")
        assert engine.run("2026-02-03 06:00:00").counts["inserted"] == 1
        assert engine.run("2096-02-04 06:00:00").plan.strategy == "NO_OP"


class TestRefreshFull:
    def test_it_always_recomputes(self, engine: Any) -> None:
        engine.model("select 1 as id, rand() as r")
        engine.run()
        rows = engine.rows()
        assert engine.run().plan.strategy == "NO_OP"
        engine.config["refresh"] = "full"
        assert engine.run().plan.strategy == "COMPLETE_RECOMPUTE"
        assert engine.rows() == rows


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select id, z from {schema}.src where z < now()", "id, z"),
        ("select id, z from {schema}.src where cast(z as timestamp) < now() and z > now() - interval 1 day", "id, z"),
        ("select id, z, z < now() as past from {schema}.src", "id, z, past"),
    ],
)
def test_local_times_where_clocks_are_set(engine: Any, sql: str, columns: str) -> None:
    """Beside a literal, Spark compares a TIMESTAMP_NTZ by local time, which has an hour too few, or twice."""
    session = engine.adapter.mv_spark()
    zone = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        times = " union all ".join(
            f"select {number} + id as id, timestamp_ntz'{day} 00:30:00' + make_dt_interval(0, 0, cast(id as int) * 7) as z from range(30)"
            for number, day in ((0, "2026-03-08"), (100, "2026-11-01"))
        )
        engine.query(f"create or replace table {{schema}}.src using delta as {times}")
        engine.model(sql, choose_by="rows")
        for now in (
            "2026-03-08 01:40:00-05:00",
            "2026-03-08 03:00:00-04:00",
            "2026-03-08 03:20:00-04:00",
            "2026-11-01 01:10:00-04:00",
            "2026-11-01 01:50:00-04:00",
            "2026-11-01 01:10:00-05:00",  # an hour after the last but one, at the same local time
            "2026-11-01 01:40:00-05:00",
        ):
            engine.run(now)
            wanted = engine.query(engine.sql.replace("now()", f"timestamp'{now}'"))
            assert engine.rows(columns=columns) == Counter(tuple(row.values()) for row in wanted), now
    finally:
        session.conf.set("spark.sql.session.timeZone", zone)
