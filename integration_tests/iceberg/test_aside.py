"""What stands aside of an Iceberg table's main branch: snapshots that a session's settings have written there (write, audit, publish),
branches, tags and the tables of its metadata as sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from direct import Direct, Model, Pool, schema

from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.formats.registry import FORMATS
from spark_mv.spark.run.holding import BYTES
from spark_mv.spark.run.look_up import source_facts

S = "aside"
ASKS = "tblproperties ('write.wap.enabled' = 'true')"
AT = "2026-02-01 06:00:00"


@pytest.fixture
def session(spark: Any) -> Iterator[Direct]:
    with schema(Pool(spark, 1, "iceberg").first, S) as session:
        session.query(f"create table {S}.src using iceberg {ASKS} as select id, 'main' as name from range(10)")
        session.query(f"alter table iceberg_catalog.{S}.src create branch b")
        yield session
        for name in ("spark.wap.branch", "spark.wap.id"):
            session.spark.conf.unset(name)


def model(name: str = "mv", source: str = "src", **config: Any) -> Model:
    return Model(S, name, f"select *, rand() as drawn from {S}.{source}", {"unique_key": "id", **config})


def is_right(session: Direct, table: str, source: str, columns: str = "id, name") -> bool:
    """Whether the table's rows are the source's."""
    return session.bag(f"select {columns} from {table}") == session.bag(f"select {columns} from {S}.{source}")


class TestATableThatAsksForIt:
    @pytest.mark.parametrize("setting", ["spark.wap.branch", "spark.wap.id"])
    def test_no_run_writes_aside(self, session: Direct, setting: str) -> None:
        mv = model(tblproperties={"write.wap.enabled": "true"})
        mv.run(session, AT)
        kept = session.bag(f"select * from {mv.table}")
        session.query(f"insert into {S}.src values (10, 'more')")
        session.spark.conf.set(setting, "b")
        for refresh in ("auto", "full"):
            with pytest.raises(RefusedError, match=rf"(?s)\[WAP_SETTING\].*{setting}.*Unset {setting}"):
                mv.run(session, AT, refresh)
        with pytest.raises(RefusedError, match="WAP_SETTING"):
            mv.run(session, AT, full_refresh=True)
        session.spark.conf.unset(setting)
        assert session.bag(f"select * from {mv.table}") == kept
        assert mv.run(session, AT).response().rows_inserted == 1
        assert is_right(session, mv.table, "src")
        assert kept - session.bag(f"select * from {mv.table}") == type(kept)()

    @pytest.mark.parametrize("setting", ["spark.wap.branch", "spark.wap.id"])
    def test_none_is_made_aside(self, session: Direct, setting: str) -> None:
        mv = model(tblproperties={"write.wap.enabled": "true"})
        session.spark.conf.set(setting, "b")
        with pytest.raises(RefusedError, match="WAP_SETTING"):
            mv.run(session, AT)
        assert not session.query(f"show tables in {S} like 'mv'")

    def test_a_request_to_forget_is_not_said_aside(self, session: Direct) -> None:
        mv = model(tblproperties={"write.wap.enabled": "true"})
        mv.run(session, AT)
        session.spark.conf.set("spark.wap.id", "7")
        with pytest.raises(RefusedError, match="WAP_SETTING"):
            FORMATS["iceberg"].say(session, Ask(session.query, session.spark), mv.table, "1", "{}")

    def test_one_that_does_not_is_written(self, session: Direct) -> None:
        mv = model()
        mv.run(session, AT)
        session.query(f"insert into {S}.src values (10, 'more')")
        session.spark.conf.set("spark.wap.id", "7")
        assert mv.run(session, AT).response().rows_inserted == 1
        assert is_right(session, mv.table, "src")


def test_a_source_that_the_session_reads_from_a_branch(session: Direct) -> None:
    """Its main branch tells nothing of what the session sees."""
    session.spark.conf.set("spark.wap.branch", "b")
    mv = model()
    mv.run(session, AT)
    session.query(f"insert into {S}.src values (11, 'aside')")  # to the branch
    mv.run(session, AT)
    assert (11,) in session.bag(f"select id from {mv.table}") and is_right(session, mv.table, "src")
    session.spark.conf.unset("spark.wap.branch")
    mv.run(session, AT)
    assert (11,) not in session.bag(f"select id from {mv.table}") and is_right(session, mv.table, "src")


@pytest.mark.parametrize(
    "part", ["src.branch_b", "src.tag_t", "src version as of 'b'", "src for system_version as of 't'"]
)
def test_a_branch_or_a_tag_is_read_whole(session: Direct, part: str) -> None:
    """Their rows change without main, and main's change without theirs."""
    session.query(f"alter table iceberg_catalog.{S}.src create tag t")
    mv = model(source=part)
    mv.run(session, AT)
    session.query(f"insert into {S}.src.branch_b values (11, 'aside')")
    session.query(f"alter table iceberg_catalog.{S}.src create or replace tag t")
    session.query(f"insert into {S}.src values (12, 'main')")
    for _ in range(2):
        mv.run(session, AT)
        assert is_right(session, mv.table, part)
    session.query(f"insert into {S}.src.branch_b values (13, 'aside')")
    session.query(f"alter table iceberg_catalog.{S}.src create or replace tag t")
    mv.run(session, AT)
    assert is_right(session, mv.table, part)


def test_the_tables_of_metadata_are_read_whole(session: Direct) -> None:
    """Compaction leaves a table's rows as they are, and not its files."""
    query = f"select file_path, record_count, rand() as drawn from {S}.src.files"
    mv = Model(S, "mv", query, {"unique_key": "file_path"})
    session.query(f"insert into {S}.src values (10, 'more')")
    mv.run(session, AT)
    session.query(
        f"call iceberg_catalog.system.rewrite_data_files(table => '{S}.src', options => map('rewrite-all', 'true'))"
    )
    mv.run(session, AT)
    assert is_right(session, mv.table, "src.files", "file_path, record_count")


def test_a_table_of_such_a_name_is_followed(session: Direct) -> None:
    session.query(f"create table {S}.files using iceberg as select id from range(3)")
    query = Ask(session.query, session.spark)
    assert all(f.version is not None for f in source_facts(query, [f"{S}.files", f"{S}.SRC"], {}).values())


def test_the_size_of_tables_says_whether_rows_are_held(session: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """Iceberg's own size of them: Delta knows none of these tables, and says 0."""
    query, iceberg = Ask(session.query, session.spark), FORMATS["iceberg"]
    size = iceberg.size(query, f"{S}.src")
    assert size is not None and 0 < size < BYTES
    files = session.query(f"select sum(file_size_in_bytes) as bytes from {S}.src.files")[0]["bytes"]
    assert size == files
    mv = model()
    assert mv.run(session, AT).held
    monkeypatch.setattr("spark_mv.spark.run.holding.BYTES", size - 1)
    session.query(f"insert into {S}.src values (10, 'more')")
    assert not mv.run(session, AT).held and is_right(session, mv.table, "src")
