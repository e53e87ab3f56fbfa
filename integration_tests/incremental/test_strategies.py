"""Which strategy a run takes, what it writes, and that nothing else is touched."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from integration_tests.under_format import FORMAT, REPLACES_BY_KEY, delta_only

FEED = "tblproperties ('delta.enableChangeDataFeed' = 'true')"


def source(engine: Any, name: str = "src", rows: int = 1000, feed: bool = True) -> None:
    engine.query(
        f"create or replace table {{schema}}.{name} using delta {FEED if feed else ''} as "
        f"select id, cast(id % 10 as int) as k, id * 1.5 as amount, "
        f"timestamp'2026-01-01' + make_dt_interval(0, 0, cast(id as int)) as ts from range({rows})"
    )


def wanted(engine: Any, sql: str) -> Counter[Any]:
    return Counter(engine.rows_of(sql))


class TestRowBased:
    def test_new_rows_only(self, engine: Any) -> None:
        source(engine)
        engine.model("select id, amount * 2 as a, rand() as split from {schema}.src where k <> 3")
        assert engine.run().plan.strategy == "COMPLETE_RECOMPUTE"
        before = engine.rows()
        engine.query("insert into {schema}.src values (5000, 1, 7.5, timestamp'2026-01-02'), (5001, 3, 7.5, null)")
        run = engine.run()
        engine.took(run, "APPEND_ONLY", "APPEND")
        assert engine.rows("mv", "id, a") == wanted(engine, "select id, amount * 2 from {schema}.src where k <> 3")
        assert len(engine.rows() - before) == 1
        assert engine.run().plan.strategy == "NO_OP"
        # a key below the table's range is proven new by a look-up
        engine.query("insert into {schema}.src values (-1, 1, 7.5, timestamp'2026-01-02')")
        assert engine.run().plan.strategy == "APPEND_ONLY"
        # a key that the table has already is refused, and nothing is written
        version = engine.version()
        engine.query("insert into {schema}.src values (7, 1, 7.5, timestamp'2026-01-02')")
        with pytest.raises(Exception, match="shares a key with another"):
            engine.run()
        assert engine.version() == version

    def test_new_rows_of_a_table_that_a_cte_names_which_nobody_reads(self, engine: Any) -> None:
        """In one statement with the table itself, Spark takes the whole table for its changes."""
        source(engine)
        sql = "with old as (select max(id) as m from {schema}.src) select id, amount * 2 as a from {schema}.src where k <> 3"
        engine.model(sql)
        engine.run()
        engine.query("insert into {schema}.src values (5000, 1, 7.5, timestamp'2026-01-02')")
        run = engine.run()
        assert (run.plan.strategy, run.counts["inserted"]) == ("APPEND_ONLY", 1), run.plan.candidates
        assert engine.rows() == wanted(engine, sql)

    def test_scattered_changes(self, engine: Any) -> None:
        source(engine)
        engine.model("select id, amount * 2 as a, k, rand() as split from {schema}.src where k <> 3")
        engine.run()
        drawn = {row[0]: row[3] for row in engine.rows()}
        engine.query("update {schema}.src set amount = amount + 1 where id % 100 = 1")
        engine.query("update {schema}.src set k = 3 where id = 50")
        engine.query("delete from {schema}.src where id in (10, 11)")
        engine.query("insert into {schema}.src values (10, 1, 7.5, null), (6000, 1, 1.0, null)")
        run = engine.run()
        engine.took(run, "ROW_BASED", "REPLACE USING")
        counts = {name: run.counts[name] for name in ("inserted", "updated", "deleted")}
        assert counts == {"inserted": 1, "updated": 11, "deleted": 2}
        assert engine.rows("mv", "id, a, k") == wanted(
            engine, "select id, amount * 2, k from {schema}.src where k <> 3"
        )
        now = {row[0]: row[3] for row in engine.rows()}
        assert all(now[key] == drawn[key] for key in now if key in drawn and key != 10)
        assert engine.run().plan.strategy == "NO_OP"

    def test_where_nothing_can_be_broadcast(self, engine: Any) -> None:
        """Delta looks for the old rows by a join, and knows their files only where it has deletion vectors, or broadcasts."""
        source(engine)
        engine.query("set spark.sql.autoBroadcastJoinThreshold = -1")
        engine.query("set spark.sql.adaptive.autoBroadcastJoinThreshold = -1")
        try:
            for vectors in ("true", "false"):
                properties = {"delta.enableDeletionVectors": vectors}
                engine.model("select id, amount, rand() as split from {schema}.src", tblproperties=properties)
                engine.run()
                engine.query("update {schema}.src set amount = amount + 1 where id % 50 = 1")
                engine.run()
                assert engine.rows("mv", "id, amount") == wanted(engine, "select id, amount from {schema}.src")
                engine.query("drop table {schema}.mv")
        finally:
            engine.query("reset spark.sql.autoBroadcastJoinThreshold")
            engine.query("reset spark.sql.adaptive.autoBroadcastJoinThreshold")

    @pytest.mark.parametrize("vectors", ["true", "false"])
    @delta_only("the model's own change feed")
    def test_changes_of_a_key_of_two_columns(self, engine: Any, vectors: str) -> None:
        """Rows that are only replaced go by a join with the staged ones, whatever their key; readers of the table's change
        feed see these rows and no other."""
        source(engine)
        properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": vectors}
        engine.model(
            "select id, cast(id % 7 as string) as `Part`, amount, k, rand() as split from {schema}.src where k <> 3",
            unique_key=["id", "part"], tblproperties=properties,
        )  # fmt: skip
        engine.run()
        drawn = {row[0]: row[4] for row in engine.rows()}
        engine.query("update {schema}.src set amount = amount + 1 where id % 50 = 1")
        engine.query("insert into {schema}.src values (6000, 1, 1.0, null)")
        run = engine.run()
        engine.took(run, "ROW_BASED", "REPLACE USING" if vectors == "true" else "MERGE")
        assert (run.counts["inserted"], run.counts["updated"], run.counts["deleted"]) == (1, 20, 0)
        sql = "select id, cast(id % 7 as string) as part, amount, k from {schema}.src where k <> 3"
        assert engine.rows("mv", "id, part, amount, k") == wanted(engine, sql)
        assert {row[0]: row[4] for row in engine.rows() if row[0] in drawn} == drawn
        version = engine.version()
        feed = f"from table_changes('{engine.table}', {version}, {version})"
        old = "count_if(_change_type in ('delete', 'update_preimage'))"
        assert engine.rows_of(f"select count(distinct id), {old}, count(*) {feed}") == [(21, 20, 41)]
        assert engine.run().plan.strategy == "NO_OP"

    @pytest.mark.parametrize(
        ("key", "statement"),
        [
            ("cast(id as decimal(20, 2))", "REPLACE USING"),
            ("concat('key {x} ', id)", "REPLACE USING"),
            ("concat(id, \"'\", '\\\\', chr(10))", "MERGE"),  # as a literal, it could be read in two ways
            ("date'2020-01-01' + cast(id as int)", "REPLACE USING"),
            ("timestamp'2020-01-01' + make_dt_interval(cast(id as int))", "MERGE"),  # no exact literals
            ("cast(id as double)", "MERGE"),
        ],
    )
    def test_rows_that_are_gone_beside_replaced_ones(self, engine: Any, key: str, statement: str) -> None:
        self.gone_beside_replaced(engine, {"key": key}, statement)

    def gone_beside_replaced(self, engine: Any, keys: dict[str, str], statement: str) -> None:
        """`keys`: the columns of the unique key, and what each is of `id`."""
        source(engine)
        listed, written = ", ".join(keys), ", ".join(f"{text} as {name}" for name, text in keys.items())
        engine.model(
            f"select {written}, amount, k as s, k as t, rand() as split from {{schema}}.src", unique_key=list(keys)
        )

        def drawn() -> dict[Any, float]:
            return {row[: len(keys)]: row[-1] for row in engine.rows()}

        engine.run()
        before = drawn()
        engine.query("delete from {schema}.src where id % 100 = 2")
        engine.query("update {schema}.src set amount = amount + 1 where id % 50 = 1")
        engine.query("insert into {schema}.src values (6000, 1, 1.0, null)")
        run = engine.run()
        assert engine.published == (statement if REPLACES_BY_KEY else "MERGE"), (run.plan.candidates, engine.warnings)
        assert (run.counts["inserted"], run.counts["updated"], run.counts["deleted"]) == (1, 20, 10)
        assert engine.rows("mv", f"{listed}, amount") == wanted(engine, f"select {written}, amount from {{schema}}.src")
        now = drawn()
        assert len(now) == 991 and {k: v for k, v in now.items() if k in before}.items() <= before.items()

    @pytest.mark.parametrize(
        ("part", "statement"),
        [
            ("cast(id % 3 as string)", "REPLACE USING"),
            ("cast(id % 3 as decimal(5, 1))", "REPLACE USING"),
            ("date'2020-01-01' + cast(id % 3 as int)", "REPLACE USING"),
            ("cast(id % 3 as double)", "MERGE"),  # no exact literals
            ("cast(id % 3 as smallint)", "REPLACE USING"),
        ],
    )
    def test_rows_of_a_key_of_two_columns_that_are_gone(self, engine: Any, part: str, statement: str) -> None:
        """Each part of such a key stands in other rows as well, which stay."""
        self.gone_beside_replaced(engine, {"part": part, "nr": "id div 3"}, statement)

    @pytest.mark.parametrize(
        ("lists", "compared", "statement"),
        [(64, 1, "REPLACE USING"), (2, 10, "REPLACE USING"), (2, 9, "MERGE")],
    )
    def test_gone_rows_of_a_key_of_three_columns(
        self, engine: Any, monkeypatch: pytest.MonkeyPatch, lists: int, compared: int, statement: str
    ) -> None:
        """A list for each of the three values that two of them have; or rows are compared, if they are few."""
        monkeypatch.setattr("spark_mv.query.syntax.literals.LISTS", lists)
        monkeypatch.setattr("spark_mv.query.syntax.literals.COMPARED", compared)
        keys = {"third": "cast(id % 3 as string)", "nr": "id div 6", "half": "cast(id % 2 as int)"}
        self.gone_beside_replaced(engine, keys, statement)

    def test_keys_that_lie_close_together_in_a_large_table(self, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files that hold none of them are not read: the statements have the keys, or their range, as literals."""
        monkeypatch.setattr("spark_mv.maintenance.steps.rewrite_rows.LARGE", 500)
        source(engine)
        engine.model("select id, amount, k, rand() as split from {schema}.src where k <> 3")
        engine.run()
        drawn = {row[0]: row[3] for row in engine.rows()}

        def stages() -> str:
            return next(s for s in engine.statements if s.lstrip().startswith("create table") and "__mv_differs" in s)

        engine.query("update {schema}.src set amount = amount + 1 where id between 100 and 109")
        engine.query("update {schema}.src set k = 3 where id = 112")
        engine.query("delete from {schema}.src where id = 99")
        engine.took(engine.run(), "ROW_BASED", "REPLACE WHERE")
        assert "key_range" in engine.steps  # the first run saw no row
        assert "r.`id` BETWEEN 99 AND 112" in " ".join(stages().split())
        engine.query("update {schema}.src set amount = amount + 1 where id % 50 = 1")
        engine.took(engine.run(), "ROW_BASED", "REPLACE USING")
        assert "r.`id` BETWEEN" not in stages() and "key_range" not in engine.steps
        assert engine.rows("mv", "id, amount, k") == wanted(
            engine, "select id, amount, k from {schema}.src where k <> 3"
        )
        assert {row[0]: row[3] for row in engine.rows()}.items() <= drawn.items()

    @delta_only("REPLACE USING")
    @pytest.mark.parametrize("key", ["the.id", "clé", "1e5", "x`y", "order"])
    def test_keys_whose_names_need_backticks(self, engine: Any, key: str) -> None:
        name = f"`{key.replace('`', '``')}`"
        source(engine)
        engine.model(f"select id as {name}, amount, rand() as split from {{schema}}.src", unique_key=key)
        engine.query("set spark.sql.ansi.enforceReservedKeywords = true")
        try:
            engine.run()
            engine.query("update {schema}.src set amount = amount + 1 where id % 50 = 1")
            assert (engine.run().counts["updated"], engine.published) == (20, "REPLACE USING")
            engine.query("update {schema}.src set amount = amount + 1 where id % 50 = 2")
            engine.query("delete from {schema}.src where id % 50 = 3")
            assert (engine.run().counts["deleted"], engine.published) == (20, "REPLACE USING")
        finally:
            engine.query("set spark.sql.ansi.enforceReservedKeywords = false")
        assert engine.rows("mv", f"{name}, amount") == wanted(engine, "select id, amount from {schema}.src")

    def test_an_overwrite_with_the_same_rows_changes_nothing(self, engine: Any) -> None:
        source(engine)
        engine.model("select id, amount, rand() as split from {schema}.src", refresh="incremental")
        engine.run()
        before, version = engine.rows(), engine.version()
        engine.query("insert overwrite {schema}.src select id, k, if(id = 1, 0, amount), ts from {schema}.src")
        run = engine.run()
        assert run.plan.strategy == "ROW_BASED"
        assert run.counts["changed"] == 1
        assert engine.version() == version + 1
        assert len(engine.rows() - before) == 1

    def test_without_a_feed_snapshots_are_compared(self, engine: Any) -> None:
        source(engine, feed=False)
        engine.model("select id, amount, rand() as split from {schema}.src", refresh="incremental")
        engine.run()
        engine.query("update {schema}.src set amount = 0 where id = 7")
        run = engine.run()
        assert (run.plan.strategy, run.counts["changed"]) == ("ROW_BASED", 1)
        assert engine.rows("mv", "id, amount") == wanted(engine, "select id, amount from {schema}.src")

    def test_refresh_incremental_never_falls_back(self, engine: Any) -> None:
        source(engine)
        engine.model("select id, rank() over (order by amount) as r from {schema}.src", refresh="incremental")
        with pytest.raises(ValueError, match=r"(?s)to any run of this query.*NO_PARTITION_BY"):
            engine.run()
        assert not engine.query("show tables in {schema} like 'mv'")
        engine.run(full_refresh=True)
        engine.query("insert into {schema}.src values (5000, 1, 7.5, null)")
        with pytest.raises(
            ValueError, match=r"(?s)to any run of this query.*NO_PARTITION_BY.*Write it so that one applies"
        ):
            engine.run()  # --full-refresh would help for this one run
        engine.config["refresh"] = "auto"
        assert engine.run().plan.strategy == "COMPLETE_RECOMPUTE"


class TestChains:
    @delta_only("the model's own change feed")
    def test_a_model_follows_the_changes_of_another(self, engine: Any) -> None:
        source(engine)
        first, second = (
            "select id, k, amount, rand() as r from {schema}.src where k < 9",
            "select k, sum(r) as s from {schema}.up group by k",
        )
        engine.name = "up"
        engine.model(first)
        engine.run()
        engine.name = "mv"
        engine.model(second, unique_key="k")
        engine.run()
        # a run upstream that writes nothing leaves a commit without data
        engine.query("update {schema}.src set amount = 0 where id = 9")
        engine.name = "up"
        engine.sql = first.replace("{schema}", engine.schema)
        engine.config = {"unique_key": "id"}
        engine.run()
        assert engine.published == "RECORD"
        engine.query("update {schema}.src set k = 5 where id = 1")
        assert engine.run().plan.strategy == "ROW_BASED"
        engine.name = "mv"
        engine.sql = second.replace("{schema}", engine.schema)
        engine.config = {"unique_key": "k", "refresh": "incremental"}
        run = engine.run()
        assert run.plan.strategy == "GROUP_AGGREGATE"
        assert run.counts["updated"] == 2
        assert any("table_changes" in text for text in engine.statements)
        assert not any("version as of" in text and "__mv_sign" in text for text in engine.statements)
        engine.query("drop table {schema}.up")


class TestShapes:
    def test_groups(self, engine: Any) -> None:
        source(engine)
        sql = "select k, count(*) as n, sum(amount) as s, rand() as split from {schema}.src group by k having count(*) > 1"
        # of an Iceberg table that small, the files that came and went are most rows
        engine.model(sql, unique_key="k", **({} if FORMAT == "delta" else {"refresh": "incremental"}))
        engine.run()
        engine.query("update {schema}.src set k = 4 where id = 3")
        run = engine.run()
        assert run.plan.strategy == "GROUP_AGGREGATE", (run.plan.candidates, engine.warnings)
        assert run.counts["updated"] == 2
        assert engine.rows("mv", "k, n, s") == wanted(
            engine, "select k, count(*), sum(amount) from {schema}.src group by k having count(*) > 1"
        )

    def test_latest_row_per_key(self, engine: Any) -> None:
        engine.query(
            f"create or replace table {{schema}}.log using delta {FEED} as select id % 100 as id, id as seq, uuid() as v "
            "from range(1000)"
        )
        sql = (
            "with l as (select *, row_number() over (partition by id order by seq desc) as rn from {schema}.log) "
            "select id, seq, v from l where rn = 1"
        )
        engine.model(sql)
        engine.run()
        engine.query("insert into {schema}.log values (5, 2000, 'new'), (200, 1, 'first')")
        run = engine.run()
        assert run.plan.strategy == "WINDOW_FUNCTION", (run.plan.candidates, engine.warnings)
        assert (run.counts["updated"], run.counts["inserted"]) == (1, 1)
        assert engine.rows() == wanted(engine, engine.sql)

    def test_join_of_tables_that_both_change(self, engine: Any) -> None:
        source(engine)
        engine.query(
            f"create or replace table {{schema}}.dim using delta {FEED} as select cast(id as int) as k, id as w from range(8)"
        )
        sql = "select s.id, s.amount, d.w, uuid() as u from {schema}.src s left join {schema}.dim d on d.k = s.k"
        engine.model(sql)
        engine.run()
        engine.query("update {schema}.src set k = 9 where id = 3")
        engine.query("insert into {schema}.dim values (9, 90)")
        run = engine.run()
        assert run.plan.strategy == "ROW_BASED", (run.plan.candidates, engine.warnings)
        assert run.counts["updated"] == 101
        assert engine.rows("mv", "id, amount, w") == wanted(engine, engine.sql.replace(", uuid() as u", ""))

    def test_first_rows(self, engine: Any) -> None:
        """From the rows that the table keeps and changed ones, until a row that it lacks may be among the first."""
        source(engine)
        # an output column comes before a column of that name in FROM
        plain = (
            "select id, 10 - k as k, amount from {schema}.src where ts < current_timestamp() order by k, id limit 20"
        )
        engine.model(plain.replace(" from", ", rand() as r from"))
        engine.run()
        drawn = {row[0]: row[3] for row in engine.rows()}
        engine.query("insert into {schema}.src values (5000, 10, 1.0, timestamp'2026-01-02'), (5001, 0, 1.0, null)")
        engine.query("update {schema}.src set amount = -1 where id in (19, 1, 997)")
        run = engine.run()
        engine.took(run, "ROW_BASED", "REPLACE USING")
        counts = {name: run.counts[name] for name in ("inserted", "updated", "deleted")}
        assert counts == {"inserted": 1, "updated": 1, "deleted": 1}
        assert engine.rows("mv", "id, k, amount") == wanted(engine, plain)
        assert all(drawn[row[0]] == row[3] for row in engine.rows() if row[0] in drawn)
        engine.query("delete from {schema}.src where id = 9")
        run = engine.run()
        assert (run.plan.strategy, run.counts["inserted"]) == ("COMPLETE_RECOMPUTE", 1)
        assert "TOP_ROWS_UNSURE" in {reason.code for c in run.plan.candidates for reason in c.reasons}
        assert engine.rows("mv", "id, k, amount") == wanted(engine, plain)
        assert all(
            drawn[row[0]] == row[3] for row in engine.rows() if row[0] in drawn and row[0] != 199
        )  # it left and came back
        assert engine.run().plan.strategy == "NO_OP"

    def test_groups_of_groups_over_tables_that_both_change(self, engine: Any) -> None:
        """What is below the groups is asked for the touched keys only, now and before."""
        source(engine)
        engine.query(
            f"create or replace table {{schema}}.dim using delta {FEED} as select cast(id as int) as k, id as w from range(8)"
        )
        sql = (
            "with per_hour as (select date_trunc('hour', s.ts) as hour, count(*) as n, sum(d.w) as w from {schema}.src s "
            "join {schema}.dim d on d.k = s.k group by all) "
            "select n, count(*) as hours, sum(w) as w, max(hour) as newest from per_hour group by n"
        )
        engine.model(sql, unique_key="n", refresh="incremental")
        engine.run()
        engine.query("delete from {schema}.src where id in (3, 4, 65)")
        engine.query("insert into {schema}.src values (5000, 1, 1.0, timestamp'2026-01-01 02:02:00')")
        engine.query("update {schema}.dim set w = w + 1 where k = 5")
        run = engine.run()
        assert run.plan.strategy == "GROUP_AGGREGATE" and "ADJUSTED_GROUPS" in {
            reason.code for c in run.plan.candidates for reason in c.reasons
        }, (run.plan.candidates, engine.warnings)
        assert engine.rows() == wanted(engine, engine.sql) and len(engine.rows()) > 2
        assert engine.run().plan.strategy == "NO_OP"

    def test_window_move(self, engine: Any) -> None:
        source(engine)
        where = "where ts >= current_timestamp() - interval 10 minutes and ts <= current_timestamp()"
        engine.model(f"select id, amount, rand() as split from {{schema}}.src {where}")
        engine.run("2026-01-01 00:30:00")
        kept = {row[0]: row[2] for row in engine.rows()}
        run = engine.run("2026-01-01 00:31:00")
        assert run.plan.strategy == "ROW_BASED", (run.plan.candidates, engine.warnings)
        assert (run.counts["inserted"], run.counts["deleted"]) == (1, 1)
        assert run.counts["evicted"] == 1
        now = {row[0]: row[2] for row in engine.rows()}
        assert len(now) == 11 and all(kept[k] == v for k, v in now.items() if k in kept)
        engine.query("insert into {schema}.src values (7000, 1, 1.0, timestamp'2026-01-01 00:25:00')")
        run = engine.run("2026-01-01 00:31:00")
        assert run.plan.strategy == "APPEND_ONLY"
        assert run.next_change_at == "2026-01-01 00:31:00.000001"
        assert engine.run("2026-01-01 00:31:00").plan.strategy == "NO_OP"

    def test_a_window_above_a_view(self, engine: Any) -> None:
        """When a row next enters or leaves is asked of all that the view shows, where only rows of one table came and went."""
        source(engine)
        engine.query(
            "create or replace view {schema}.staging as select id, k as part, amount, cast(ts as date) as day, ts from {schema}.src"
        )
        query = "select part, count(*) as n, max(amount) as most from {schema}.staging where ts > current_timestamp() - interval 2 hours and ts <= current_timestamp() group by part"
        engine.model(query, unique_key="part", refresh="incremental")
        engine.run("2026-01-01 03:00:00")
        first, day = "update {schema}.src set amount = amount + 1 where id in (150, 161)", "2026-01-01"
        for statement, at, next_at in (
            (first, f"{day} 03:00:00", f"{day} 03:01:00"),
            ("delete from {schema}.src where id in (151, 181, 182)", f"{day} 03:00:00", f"{day} 03:01:00"),
            (
                "insert into {schema}.src values (5000, 3, 7.5, timestamp'2026-01-01 03:00:30')",
                f"{day} 03:00:00",
                f"{day} 03:00:30",
            ),
            (first, f"{day} 03:10:00", f"{day} 03:11:00"),
        ):
            engine.query(statement)
            run = engine.run(at)
            assert run.plan.strategy == "GROUP_AGGREGATE", (run.plan.candidates, engine.warnings)
            assert str(run.next_change_at).startswith(next_at), statement
            assert engine.rows() == wanted(engine, query.replace("current_timestamp()", f"timestamp'{at}'"))


class TestAdjustedGroups:
    """Groups follow the rows that came and went; the others of the group are not read."""

    def test_the_source_is_read_only_for_groups_that_need_it(self, engine: Any) -> None:
        source(engine)
        query = (
            "select k as g, count(*) as n, sum(id) as s, sum(cast(amount as decimal(12, 2))) as a, max(id) as m "
            "from {schema}.src where k <> 4 group by k"
        )
        engine.model(query, unique_key="g", refresh="incremental")
        engine.run()

        def follows(statement: str) -> tuple[dict[str, int], list[str]]:
            """The counts of the run after a change, and the states of the groups that it touched."""
            engine.query(statement)
            before = engine.version()
            states: list[str] = []
            real = engine.query

            def spying(sql: str) -> Any:
                rows = real(sql)
                if "create table" in sql and "`__mv_state`" in sql and " version as of " not in sql.lower():
                    name = sql.split()[2]
                    state = "`__mv_state`" if "_affected`" in name else "`__mv_op`"
                    states.extend(row["s"] for row in real(f"select {state} as s from {name}"))
                return rows

            engine.query = spying
            try:
                run = engine.run()
            finally:
                engine.query = real
            chosen = next(c for c in run.plan.candidates if c.strategy == "GROUP_AGGREGATE")
            assert (run.plan.strategy, chosen.reasons[0].code) == ("GROUP_AGGREGATE", "ADJUSTED_GROUPS"), (
                engine.warnings
            )
            assert engine.rows() == wanted(engine, query)
            assert engine.version() == before + 1
            return {n: run.counts[n] for n in ("inserted", "updated", "deleted")}, sorted(states)

        assert follows("insert into {schema}.src values (5000, 1, 7.5, null), (5001, 77, 1.0, null)") == (
            {"inserted": 1, "updated": 1, "deleted": 0}, ["I", "U"])  # fmt: skip
        # one row went from a group to another
        assert follows("update {schema}.src set k = 2 where id = 11") == (
            {"inserted": 0, "updated": 2, "deleted": 0}, ["+", "+"])  # fmt: skip
        # the highest id of its group: only the group's rows can say which is the next
        assert follows("delete from {schema}.src where id = 5000")[1] == ["?"]
        # all rows of a group
        assert follows("delete from {schema}.src where k = 77") == (
            {"inserted": 0, "updated": 0, "deleted": 1}, ["-"])  # fmt: skip
        assert engine.run().plan.strategy == "NO_OP"

    def test_groups_that_are_staged_at_once(self, engine: Any) -> None:
        """Where only counts and sums follow, one statement stages them; a second one only where a sum does not tell."""
        source(engine)
        query = "select k as g, count(*) as n, sum(id - 6000) as s from {schema}.src group by k"
        engine.model(query.replace("as s", "as s, rand() as r"), unique_key="g", refresh="incremental")
        engine.run()
        drawn = {row[0]: row[3] for row in engine.rows()}

        def follows(statement: str) -> tuple[dict[str, int], int]:
            """The counts of the run after a change, and how many of its statements staged groups."""
            engine.query(statement)
            before = engine.version()
            run = engine.run()
            assert [r.code for r in run.plan.reasons] == ["ADJUSTED_GROUPS"] and not engine.warnings
            assert engine.rows("mv", "g, n, s") == wanted(engine, query)
            assert engine.version() == before + 1
            staged = [s for s in engine.statements if s.startswith("create table") and "_changes_" not in s.split()[2]]
            return {n: run.counts[n] for n in ("inserted", "updated", "deleted")}, len(staged)

        assert follows("insert into {schema}.src values (6000, 50, 1.0, null), (6001, 50, 1.0, null), (6002, 3, 1.0, null)") == (
            {"inserted": 1, "updated": 1, "deleted": 0}, 1)  # fmt: skip
        assert follows("update {schema}.src set k = 2 where id = 11") == (
            {"inserted": 0, "updated": 2, "deleted": 0}, 1)  # fmt: skip
        # the sum of what is left is zero: of one row or of none?
        assert follows("delete from {schema}.src where id = 6001") == (
            {"inserted": 0, "updated": 1, "deleted": 0}, 3)  # fmt: skip
        assert follows("delete from {schema}.src where k = 50") == (
            {"inserted": 0, "updated": 0, "deleted": 1}, 1)  # fmt: skip
        assert {row[0]: row[3] for row in engine.rows()} == drawn

    def test_a_frozen_clock_is_no_reason_to_run(self, engine: Any) -> None:
        source(engine)
        engine.model(
            "select id, amount, current_timestamp() as seen from {schema}.src "
            "where ts > current_timestamp() - interval 30 days", freeze=["seen"],
        )  # fmt: skip
        engine.run("2026-01-02 00:00:00")
        version = engine.version()
        run = engine.run("2026-01-02 06:00:00")
        assert (run.plan.strategy, engine.version()) == ("NO_OP", version)
        engine.query("insert into {schema}.src values (7000, 1, 7.5, timestamp'2026-01-02')")
        assert engine.run("2026-01-02 07:00:00").plan.strategy == "APPEND_ONLY"
        assert engine.rows_of("select count(*), count(distinct seen) from {schema}.mv") == [(1001, 2)]

    def test_nor_is_one_in_each_arm_of_a_union(self, engine: Any) -> None:
        source(engine)
        engine.query("create table {schema}.more as select 10000L + id as id, amount from {schema}.src where id < 9")
        engine.model(
            "select id, amount, current_timestamp() as seen from {schema}.src union all select id, amount, now() from {schema}.more",
            freeze=["seen"],
        )
        engine.run("2026-01-02 00:00:00")
        assert engine.run("2026-01-02 06:00:00").plan.strategy == "NO_OP"
        engine.query("update {schema}.more set amount = -1 where id = 10001")
        engine.query("delete from {schema}.src where id = 5")
        engine.query("insert into {schema}.src values (7000, 1, 7.5, timestamp'2026-01-02')")
        engine.config["refresh"] = "incremental"
        assert engine.run("2026-01-02 07:00:00").plan.strategy == "ROW_BASED"
        later = "select id, amount from {schema}.mv where seen = timestamp'2026-01-02 07:00:00'"
        assert engine.rows_of(later) == [(7000, 7.5)]
        assert engine.rows_of("select count(*), min(amount), count_if(id = 5) from {schema}.mv") == [(1009, -1.0, 0)]


class TestLeaving:
    """Rows leave by a condition on the table's own columns."""

    WINDOW = "where ts >= current_timestamp() - interval 10 hours and k <> 3"

    def sent(self, engine: Any, start: str) -> list[str]:
        return [s for s in engine.statements if s.lower().startswith(start)]

    def check(self, engine: Any, as_of: str) -> None:
        sql = f"select id, ts from {{schema}}.src {self.WINDOW}".replace("current_timestamp()", f"timestamp'{as_of}'")
        assert engine.rows("mv", "id, seen") == wanted(engine, sql)

    def test_only_leave(self, engine: Any) -> None:
        source(engine)
        engine.model(f"select id, ts as seen, rand() as split from {{schema}}.src {self.WINDOW}")
        engine.run("2026-01-01 12:00:00")
        before = {row[0]: row[2] for row in engine.rows()}
        run = engine.run("2026-01-01 14:00:00")
        assert run.plan.strategy == "ROW_BASED", (run.plan.candidates, engine.warnings)
        assert [r.code for r in run.plan.reasons] == ["LEAVING_ROWS"]
        assert (run.counts["deleted"], run.counts["evicted"]) == (108, 108)
        assert len(self.sent(engine, "delete from")) == 1 and not self.sent(engine, "create table")
        assert str(run.response()).startswith("MERGE -108 (108 evicted)"), str(run.response())
        self.check(engine, "2026-01-01 14:00:00")
        after = {row[0]: row[2] for row in engine.rows()}
        assert after.items() <= before.items()
        assert run.next_change_at == "2026-01-01 14:00:00.000001"
        # between two rows of the source nothing happens
        version = engine.version()
        assert engine.run("2026-01-01 14:00:00").plan.strategy == "NO_OP" and engine.version() == version
        assert run.counts["target_rows"] == len(after)

    @delta_only("one statement for both")
    def test_new_rows_tell_when_they_leave(self, engine: Any) -> None:
        source(engine)
        engine.model(f"select id, ts as seen, rand() as split from {{schema}}.src {self.WINDOW}")
        assert engine.run("2026-01-01 05:00:00").next_change_at == "2026-01-01 10:00:00.000001"
        for number, ts in enumerate(("2025-12-31 20:00:00", "2026-01-01 03:00:00")):
            engine.query(f"insert into {{schema}}.src values ({6000 + number}, 1, 7.5, timestamp'{ts}')")
            run = engine.run("2026-01-01 05:30:00")
            assert run.plan.strategy == "APPEND_ONLY", (run.plan.candidates, engine.warnings)
            # the feed is read to check the rows and to write them, and for nothing else
            assert sum(s.count("table_changes(") for s in engine.statements) == 2
            assert run.next_change_at == "2026-01-01 06:00:00.000001"
        run = engine.run("2026-01-01 06:00:01")
        assert (run.counts["deleted"], run.next_change_at) == (1, "2026-01-01 10:00:00.000001")

    @delta_only("one statement for both")
    def test_come_and_leave(self, engine: Any) -> None:
        source(engine)
        engine.model(f"select id, ts as seen, rand() as split from {{schema}}.src {self.WINDOW}")
        engine.run("2026-01-01 12:00:00")
        before = {row[0]: row[2] for row in engine.rows()}
        engine.query(
            "insert into {schema}.src values (5000, 1, 7.5, timestamp'2026-01-01 13:00:00'), "
            "(5001, 3, 7.5, timestamp'2026-01-01 13:00:00'), (5002, 1, 7.5, timestamp'2026-01-01 03:00:00')"
        )
        version = engine.version()
        run = engine.run("2026-01-01 14:00:00")
        assert run.plan.strategy == "APPEND_ONLY", (run.plan.candidates, engine.warnings)
        assert (run.counts["inserted"], run.counts["deleted"], run.counts["evicted"]) == (1, 108, 108)
        assert engine.version() == version + 1 and not self.sent(engine, "create table")
        assert run.next_change_at == "2026-01-01 14:00:00.000001"
        self.check(engine, "2026-01-01 14:00:00")
        after = {row[0]: row[2] for row in engine.rows()}
        assert {k: v for k, v in after.items() if k != 5000}.items() <= before.items()
        # new rows that all came too late, and none that leave
        engine.query("insert into {schema}.src values (5003, 1, 7.5, timestamp'2026-01-01 03:00:00')")
        run = engine.run("2026-01-01 14:00:00")
        assert (run.plan.strategy, engine.published) == ("APPEND_ONLY", "RECORD"), run.plan.candidates
        # only such rows, while others leave
        engine.query("insert into {schema}.src values (5004, 1, 7.5, timestamp'2026-01-01 03:00:00')")
        run = engine.run("2026-01-01 15:00:00")
        assert (run.plan.strategy, run.counts["inserted"], run.counts["deleted"]) == ("APPEND_ONLY", 0, 54)
        assert len(self.sent(engine, "delete from")) == 1
        self.check(engine, "2026-01-01 15:00:00")

    @pytest.mark.parametrize("refresh", ["auto", "incremental"])
    def test_a_row_that_takes_the_key_of_one_that_leaves(self, engine: Any, refresh: str) -> None:
        """The key goes on, and with it its kept values."""
        source(engine)
        engine.model(f"select id, ts as seen, rand() as split from {{schema}}.src {self.WINDOW}", refresh=refresh)
        engine.run("2026-01-01 12:00:00")
        before = {row[0]: row[2] for row in engine.rows()}
        engine.query("insert into {schema}.src values (121, 1, 7.5, timestamp'2026-01-01 13:00:00')")
        run = engine.run("2026-01-01 14:00:00")
        assert not engine.warnings
        assert (run.counts["updated"], run.counts["deleted"]) == (1, 107)
        self.check(engine, "2026-01-01 14:00:00")
        assert {row[0]: row[2] for row in engine.rows()}[121] == before[121]

    @pytest.mark.parametrize(
        "window",
        [
            "datediff(current_date(), d) <= 1 and d <= current_date()",
            "d >= current_timestamp() - interval 30 hours and d <= current_timestamp()",
            "d >= current_timestamp() - interval 30 hours",
            "d >= date_sub(current_date(), 1)",
        ],
    )
    def test_conditions_that_replace_where_cannot_take(self, engine: Any, window: str) -> None:
        """Spark drops what it cannot translate from a side of an OR, or refuses it: such a run goes another way."""
        engine.query("create or replace table {schema}.days using delta " + FEED + " as select cast(id as int) as id, "
                     "date'2026-01-01' + cast(id as int) as d from range(6)")  # fmt: skip
        engine.model(f"select id, d, rand() as split from {{schema}}.days where {window}", refresh="incremental")
        engine.run("2026-01-02 06:00:00")
        engine.query("insert into {schema}.days values (100, date'2026-01-04'), (101, date'2026-01-01')")
        run = engine.run("2026-01-04 06:00:00")
        assert not engine.warnings and run.counts["deleted"] > 0
        at = "timestamp'2026-01-04 06:00:00'"
        sql = window.replace("current_timestamp()", at).replace("current_date()", f"cast({at} as date)")
        assert engine.rows("mv", "id, d") == wanted(engine, f"select id, d from {{schema}}.days where {sql}")

    def test_rows_move_through_a_window(self, engine: Any) -> None:
        source(engine)
        where = "where ts between current_timestamp() - interval 10 hours and current_timestamp()"
        engine.model(f"select id, ts, rand() as split from {{schema}}.src {where}")
        engine.run("2026-01-01 12:00:00")
        engine.query("insert into {schema}.src values (5000, 1, 7.5, timestamp'2026-01-01 12:30:00')")
        engine.query("insert into {schema}.src values (5001, 1, 7.5, timestamp'2026-01-01 11:30:00')")
        engine.query("insert into {schema}.src values (5002, 1, 7.5, timestamp'2026-01-01 14:30:00')")
        run = engine.run("2026-01-01 13:00:00")
        assert run.plan.strategy == "APPEND_ONLY", (run.plan.candidates, engine.warnings)
        assert (run.counts["inserted"], run.counts["deleted"]) == (62, 60)
        run = engine.run("2026-01-01 15:00:00")
        assert [r.code for r in run.plan.reasons] == ["LEAVING_ROWS"], run.plan.candidates
        assert (run.counts["inserted"], run.counts["deleted"]) == (121, 120)
        sql = f"select id, ts from {{schema}}.src {where}".replace(
            "current_timestamp()", "timestamp'2026-01-01 15:00:00'"
        )
        assert engine.rows("mv", "id, ts") == wanted(engine, sql)

    @delta_only("partitions dropped by metadata, in its history")
    def test_metadata_alone(self, engine: Any) -> None:
        """Where whole partitions leave, their files are dropped unread."""
        source(engine)
        engine.model(
            "select id, d from (select id, cast(ts as date) + cast(id % 3 as int) as d from {schema}.src) "
            "where d >= current_date() - 1", partition_by=["d"],
        )  # fmt: skip
        engine.run("2026-01-02 06:00:00")
        run = engine.run("2026-01-04 06:00:00")
        assert run.counts["deleted"] == 667, (run.plan.candidates, run.counts)
        (last,) = engine.query(f"describe history {engine.table} limit 1")
        metrics = last["operationMetrics"]
        assert last["operation"] == "DELETE" and int(metrics["numRemovedFiles"]) > 0
        assert int(metrics["numAddedFiles"]) == int(metrics.get("numDeletionVectorsAdded", 0)) == 0


class TestOddNames:
    @pytest.mark.parametrize(
        ("asked", "published"),
        [
            ({}, "REPLACE USING"),
            pytest.param({"delta.enableDeletionVectors": "false"}, "MERGE", marks=delta_only("its properties")),
        ],
    )
    def test_a_backquote_in_a_name(self, engine: Any, asked: dict[str, str], published: str) -> None:
        """A key's column of that name, and rows that go beside others that change."""
        source(engine)
        sql = "select id as `q``8`, k as `a b`, amount, rand() as split from {schema}.src"
        engine.model(sql, unique_key=["q`8", "a b"], tblproperties=asked)
        engine.run()
        drawn = {row[0]: row[3] for row in engine.rows()}
        engine.query("update {schema}.src set amount = amount + 1 where id in (21, 25)")
        engine.query("delete from {schema}.src where id = 26")
        engine.took(engine.run(), "ROW_BASED", published)
        assert engine.rows("mv", "`q``8`, amount") == wanted(engine, "select id, amount from {schema}.src")
        now = {row[0]: row[3] for row in engine.rows()}
        assert len(now) == len(drawn) - 1 and all(now[key] == drawn[key] for key in now)


class TestWholeTables:
    """A complete recompute of a small table that nobody follows writes all its rows: the same rows, values and counts."""

    @pytest.mark.parametrize(("feed", "published"), [("", "REPLACE WHERE"), ("true", "REPLACE USING")])
    def test_a_small_table_is_written_whole(self, engine: Any, feed: str, published: str) -> None:
        source(engine)
        asked = {"tblproperties": {"delta.enableChangeDataFeed": feed}} if feed else {}
        sql = "select id, amount * 2 as a, k, rand() as split, ts from {schema}.src where k <> 3 and ts >= current_timestamp() - interval 10 minutes"
        engine.model(sql, refresh="full", partition_by=["k"], **asked)
        as_of = "2026-01-01 00:30:00"
        engine.run(as_of)
        drawn = {row[0]: row[3] for row in engine.rows()}
        engine.query("update {schema}.src set amount = amount + 1 where id in (21, 25)")
        engine.query("delete from {schema}.src where id = 26")
        engine.query("insert into {schema}.src values (9000, 1, 7.5, timestamp'2026-01-02')")
        before = engine.version()
        run = engine.run(as_of)
        engine.took(run, "COMPLETE_RECOMPUTE", published)
        counts = {name: run.counts[name] for name in ("inserted", "updated", "deleted")}
        assert counts == {"inserted": 1, "updated": 2, "deleted": 1}
        assert engine.version() == before + 1
        pinned = sql.replace("current_timestamp()", f"timestamp'{as_of}'").replace("rand() as split, ", "")
        assert engine.rows("mv", "id, a, k, ts") == wanted(engine, pinned)
        now = {row[0]: row[3] for row in engine.rows()}
        assert len(now) == len(drawn) and all(now[key] == drawn[key] for key in now if key != 9000)
        later = engine.run("2026-01-01 00:31:00")
        assert later.counts["evicted"] == later.counts["deleted"] > 0
        engine.took(engine.run("2026-01-01 00:31:00"), "COMPLETE_RECOMPUTE", "RECORD")


class TestStatements:
    """What a run sends and commits, by its kind. More is not wrong, but should be noticed."""

    @delta_only("its statements, counted")
    def test_counts(self, engine: Any) -> None:
        source(engine)
        engine.model(
            "select id, amount, ts, rand() as split from {schema}.src where ts >= current_timestamp() - interval 10 minutes"
        )

        def sent_by(strategy: str, publishes: str, writes: int, as_of: str = "2026-01-01 00:30:00") -> int:
            before = engine.version()
            run = engine.run(as_of)
            sent = [
                s for s in engine.statements if not s.lower().startswith(("set ", "reset ", "drop table if exists"))
            ]
            assert (run.plan.strategy, engine.published) == (strategy, publishes), (run.plan.candidates, sent)
            creates = [s for s in sent if s.lower().startswith("create table")]
            assert len(creates) == writes, sent
            assert engine.version() - before == (publishes != "")
            return len(sent)

        engine.run("2026-01-01 00:30:00")
        found = {}
        # the target: the rest is known from the log, the session and the last run
        found["nothing"] = sent_by("NO_OP", "", writes=0)
        engine.query("insert into {schema}.src values (5000, 1, 7.5, timestamp'2026-01-02')")
        # nothing is staged: a look at the new rows, and the INSERT
        found["new"] = sent_by("APPEND_ONLY", "APPEND", writes=0)
        engine.query("update {schema}.src set amount = amount + 1 where id in (21, 25)")
        # staged: changed source rows, rows to write
        found["changed"] = sent_by("ROW_BASED", "REPLACE USING", writes=2)
        engine.query("update {schema}.src set amount = amount + 1 where id = 21")
        engine.query("delete from {schema}.src where id = 25")
        found["changed and gone"] = sent_by("ROW_BASED", "REPLACE USING", writes=2)
        engine.query("delete from {schema}.src where id = 26")
        found["gone"] = sent_by("ROW_BASED", "REPLACE WHERE", writes=2)
        # rows leave by a condition: a look at how many, and for the next bound
        found["evicted"] = sent_by("ROW_BASED", "DELETE", writes=0, as_of="2026-01-01 00:31:00")
        engine.query("update {schema}.src set amount = amount + 1 where id = 3")
        found["unchanged"] = sent_by("ROW_BASED", "RECORD", writes=2, as_of="2026-01-01 00:31:00")
        # the first new rows ask for the highest key, which later runs know
        most = {"nothing": 1, "new": 6, "changed": 9, "changed and gone": 10, "gone": 9, "evicted": 8, "unchanged": 9}
        assert not [name for name, number in found.items() if number > most[name]], found
