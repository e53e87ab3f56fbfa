"""Random columns are drawn once per key: runs, updates, full refreshes and changed SQL read them back."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import write_file

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key='id', on_row_update=var('row_update', 'keep')) }}
select id, name, amount, rand() as split, uuid() as row_id
from {{ target.schema }}.src;
"""
ADDED = MODEL.replace("amount,", "amount * 2 as amount, upper(name) as shout,")
REDRAWN = MODEL.replace("rand()", "floor(rand() * 10)")


class TestKeptValues:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    @pytest.fixture(scope="class", autouse=True)
    def source(self, project: Any, sql: Any) -> None:
        sql(
            "create or replace table {schema}.src using delta as "
            "select id, concat('n', id) as name, id * 1.5 as amount from range(1000)"
        )

    def test_the_life_of_a_draw(self, project: Any, mv: Any, sql: Any) -> None:
        first = mv.run()
        assert (first["code"], first["rows_inserted"]) == ("CREATE", 1000)
        drawn = mv.by_id("split, row_id")
        assert len(set(drawn.values())) == 1000

        # nothing changed: no commit
        version = mv.version()
        again = mv.run()
        assert again["strategy"] == "NO_OP"
        assert mv.version() == version

        # an update of other columns keeps the draws of the 100 rows, and touches no other row
        sql("update {schema}.src set amount = amount + 1 where id < 100")
        updated = mv.run()
        assert (updated["rows_inserted"], updated["rows_updated"], updated["rows_deleted"]) == (0, 100, 0)
        assert updated["_message"] == "MERGE ~100, 1,000 kept"
        assert mv.by_id("split, row_id") == drawn
        assert mv.version() == version + 1

        # the same update under redraw draws exactly these rows anew
        sql("update {schema}.src set amount = amount + 1 where id < 100")
        mv.run(row_update="redraw")
        redrawn = mv.by_id("split, row_id")
        assert {key for key in drawn if drawn[key] != redrawn[key]} == set(range(100))

        # one column may redraw while another is kept
        sql("update {schema}.src set amount = amount + 1 where id = 1")
        mv.run(row_update={"split": "redraw"})
        after = mv.by_id("split, row_id")
        assert after[1][0] != redrawn[1][0] and after[1][1] == redrawn[1][1]

        # deleted and inserted rows
        sql("delete from {schema}.src where id in (5, 6)")
        sql("insert into {schema}.src values (5000, 'new', 1.0)")
        moved = mv.run()
        assert (moved["rows_inserted"], moved["rows_updated"], moved["rows_deleted"]) == (1, 0, 2)
        sql("insert into {schema}.src values (5, 'n5', 7.5)")
        mv.run()
        back = mv.by_id("split, row_id")
        assert back[5] != after[5], "a key that comes back draws anew"

        # a full refresh replays what was drawn
        refreshed = mv.run("2026-02-01 06:00:00", "--full-refresh")
        assert refreshed["code"] == "REPLACE"
        assert mv.by_id("split, row_id") == back

        # so does changed SQL, whose new logic reaches every row
        write_file(ADDED, project.project_root, "models", "mv.sql")
        mv.run()
        assert mv.by_id("split, row_id") == back
        assert mv.by_id("shout, amount")[7] == ("N7", sql("select amount * 2 from {schema}.src where id = 7")[0][0])

        # a kept column whose own expression changed is drawn anew, the other is not
        write_file(REDRAWN, project.project_root, "models", "mv.sql")
        mv.run()
        new = mv.by_id("split, row_id")
        assert all(value[0] == int(value[0]) for value in new.values())
        assert {k: v[1] for k, v in new.items()} == {k: v[1] for k, v in back.items()}
        assert mv.run()["strategy"] == "NO_OP"

    def test_a_source_change_without_effect_is_recorded(self, mv: Any, sql: Any) -> None:
        mv.run()
        sql("update {schema}.src set name = name where id = 1")
        unchanged = mv.run()
        assert unchanged["_message"].startswith("MERGE no row changed")
        assert mv.run()["strategy"] == "NO_OP"

    def test_forget_values(self, mv: Any, operation: Any) -> None:
        mv.run()
        before = mv.by_id("split, row_id")
        said = operation("forget_values", {"model": "mv", "columns": ["row_id"], "where": "id < 10"})
        assert "draws row_id anew" in said
        mv.run()
        after = mv.by_id("split, row_id")
        assert {key for key in before if before[key][1] != after[key][1]} == {k for k in before if k < 10}
        assert {k: v[0] for k, v in before.items()} == {k: v[0] for k, v in after.items()}
        assert mv.run()["strategy"] == "NO_OP"

    def test_somebody_elses_write_is_repaired(self, mv: Any, sql: Any) -> None:
        mv.run()
        rows = mv.rows()
        sql("delete from {schema}.mv where id = 20")
        sql("update {schema}.mv set name = 'wrong' where id = 21")
        repaired = mv.run()
        assert (repaired["rows_inserted"], repaired["rows_updated"], repaired["_message"][:7]) == (0, 0, "REPLACE")
        assert ["something else wrote to the table" in note for note in repaired["notes"]] == [True]
        assert mv.rows("id, name, amount") == type(rows)(row[:3] for row in rows.elements())
