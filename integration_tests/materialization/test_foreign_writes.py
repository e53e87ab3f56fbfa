"""What others wrote into the table is put right by the next run in one commit, with our rows' kept values as they were."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from integration_tests.under_format import REPLACES_BY_KEY, delta_only

MODEL = """
{{ config(materialized='nondeterministic_mv', unique_key=['id', 'part']) }}
select id, part, name, rand() as drawn from {{ target.schema }}.src
"""
SOURCE = """
create table if not exists {schema}.src using delta as
select id, part, 'n' as name from range(10) cross join (values ('a'), ('b')) as p(part)
"""
WRITES = {
    "a row twice": "insert into {mv} select * from {mv} where id = 1",
    "a key twice": "insert into {mv} select id, part, 'theirs', -1 from {mv} where id = 2",
    "no key": "insert into {mv} values (null, 'a', 'theirs', -1), (7, null, 'theirs', -1), (null, null, null, null)",
    "rows": "insert into {mv} values (99, 'a', 'theirs', -1)",
    "values": "update {mv} set drawn = -1, name = 'theirs' where id = 3",
    "keys": "update {mv} set id = 50 where id = 4",
    "loss": "delete from {mv} where id = 5",
    "merge": "merge into {mv} t using (select 6L as id, 'a' as part union all select 60L, 'a') s on t.id = s.id and "
    "t.part = s.part when matched then update set drawn = -1 when not matched then insert (id, part, name, drawn) values (s.id, s.part, 'm', -1)",
    "overwrite": "insert overwrite {mv} select id, part, 'theirs', -1 from {mv} where id < 3",
}


class TestForeignWrites:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    def test_put_right(self, mv: Any, sql: Any) -> None:
        sql(SOURCE)
        mv.run()
        ours = mv.rows()
        both = ["values", "no key", "a row twice", "a key twice", "loss", "rows"]
        for names, args in (
            (["a row twice"], ()),
            (["no key"], ()),
            (["a key twice", "keys", "merge"], ()),
            (both, ("--full-refresh",)),
            (["overwrite"], ()),
        ):
            for name in names:
                sql(WRITES[name].replace("{mv}", "{schema}.mv"))
            version = mv.version()
            mv.run("2026-02-01 06:00:00", *args)
            assert mv.rows() == ours, names
            if REPLACES_BY_KEY:  # others publish two snapshots at once
                assert mv.version() == version + 1, names
            assert mv.run()["code"] == "NO_OP", names

    @delta_only("a CHECK of the table")
    def test_a_check_that_somebody_put_on_the_table(self, mv: Any, sql: Any) -> None:
        """What Delta says of it is said with what to do, and without the values of the row."""
        sql(SOURCE)
        mv.run()
        before = mv.rows()
        sql("alter table {schema}.mv add constraint theirs check (name <> 'of a person')")
        sql("update {schema}.src set name = 'of a person' where id = 1")
        said = mv.run(expect_pass=False)
        assert "CHECK constraint theirs" in said and "alter table … drop constraint" in said
        assert " : of a person" not in said and "whose values are not shown" in said
        assert mv.rows() == before
        sql("alter table {schema}.mv drop constraint theirs")
        assert mv.run()["rows_updated"] == 2
        sql("update {schema}.src set name = 'n' where id = 1")
        mv.run()

    @delta_only("VACUUM takes the files of the newest version of ours")
    def test_where_the_version_of_ours_is_gone(self, mv: Any, sql: Any, project: Any, spark: Any) -> None:
        """One row per key stays, and with it its values; what has no key goes."""
        sql(SOURCE)
        mv.run()
        for name in ("a row twice", "no key", "a key twice"):
            sql(WRITES[name].replace("{mv}", "{schema}.mv"))
        before = mv.rows()
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        spark.sql(f"optimize {project.test_schema}.mv")
        spark.sql(f"vacuum {project.test_schema}.mv retain 0 hours")
        assert any("cannot be read any more" in note and "whoever wrote them" in note for note in mv.run()["notes"])
        rows = mv.rows()
        assert sum(rows.values()) == 20
        assert set(rows) <= set(before)
        keys = Counter((row[0], row[1]) for row in rows.elements())
        assert set(keys.values()) == {1}
        assert mv.run()["code"] == "NO_OP"

    def test_the_message_blames_the_query_only_for_its_own_rows(self, mv: Any, sql: Any) -> None:
        sql(SOURCE)
        mv.run()
        sql(WRITES["no key"].replace("{mv}", "{schema}.mv"))
        sql("insert into {schema}.src values (1, 'a', 'again')")
        message = mv.run(expect_pass=False)
        assert "does not identify the rows of the query" in message
        assert "NULL" not in message

    @delta_only("a table that was made anew has its versions still")
    def test_a_table_in_our_tables_place_is_refused_and_its_version_named(self, mv: Any, sql: Any) -> None:
        sql(SOURCE)
        sql("delete from {schema}.src where name = 'again'")
        mv.run("2026-02-01 06:00:00", "--full-refresh")
        ours, version = mv.rows(), mv.version()
        sql("create or replace table {schema}.mv using delta as select 1 as theirs")
        assert f"version {version} is the model's own" in mv.run(expect_pass=False)
        sql(f"restore table {{schema}}.mv to version as of {version}")
        mv.run()
        assert mv.rows() == ours
