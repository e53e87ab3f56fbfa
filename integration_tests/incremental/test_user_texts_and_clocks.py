"""A text of the user's stays a text; bounds may lie at the ends of time; an instant ahead of the clock is asked for."""

from __future__ import annotations

from typing import Any

import pytest

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
