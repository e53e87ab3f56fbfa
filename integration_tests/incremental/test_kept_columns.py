"""What of a table's kept values survives when its columns or its unique key are not what they were."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from integration_tests.under_format import FORMAT, delta_only

from spark_mv.maintenance.errors import RefusedError, RunFailed
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.forgetting import ask_to_forget

FEED = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"


def values(engine: Any, columns: str) -> dict[Any, tuple[Any, ...]]:
    found = engine.adapter.query(f"select id, {columns} from {engine.table}")
    return {row["id"]: tuple(list(row.values())[1:]) for row in found}


class TestColumns:
    """A kept column keeps the values of its own expression, and no others."""

    def test_fields_of_a_struct(self, engine: Any) -> None:
        """Each field is what its own expression is: kept, frozen, or as the sources have it."""
        engine.query(f"create or replace table {{schema}}.src {FEED} as select id, id % 3 as c from range(12)")
        engine.model(
            "select s.*, x.d, x.c as c2, x['t'] as t, f.* from (select named_struct('id', id, 'r', rand(), 'c', c) s, "
            "struct(rand() as d, c, c * 2 as t) x, struct(current_timestamp() as first, c as k) f from {schema}.src)",
            freeze=["first"],
        )
        engine.run()
        before = values(engine, "r, d, first")
        engine.query("update {schema}.src set c = c + 10 where id in (3, 4)")
        engine.query("insert into {schema}.src values (50, 1)")
        for refresh in ("auto", "full"):
            engine.config["refresh"] = refresh
            engine.run("2026-02-02 06:00:00")
            after = values(engine, "r, d, first")
            assert len(after) == 13 and before == {key: after[key] for key in before}, engine.steps
            expected = engine.rows_of("select id, c, c as c2, c * 2 as t, c as k from {schema}.src")
            assert Counter(engine.rows_of(f"select id, c, c2, t, k from {engine.table}")) == Counter(expected)

    def test_another_name(self, engine: Any) -> None:
        """The values go with the expression, where no other column had it or has it."""
        engine.query("create or replace table {schema}.src using delta as select id from range(20)")

        def run(columns: str, **arguments: Any) -> list[str]:
            engine.sql = f"select id, {columns} from {engine.schema}.src"
            return engine.run(**arguments).response().notes

        engine.model(
            "select id, uuid() as a, floor(rand() * 1000) as b, current_timestamp() as seen from {schema}.src",
            freeze=["seen"],
        )
        engine.run()
        before = values(engine, "a, b, seen")
        engine.config["freeze"] = ["first_seen"]
        said = run(
            "uuid() as token, floor(rand() * 1000) as bucket, current_timestamp() as first_seen",
            as_of="2026-02-03 06:00:00",
        )
        assert values(engine, "token, bucket, first_seen") == before
        assert "token keeps the values of a, which had its expression" in said
        engine.config["freeze"] = []
        assert run("uuid() as token, floor(rand() * 1000) as b", full_refresh=True)
        assert values(engine, "token, b") == {key: row[:2] for key, row in before.items()}
        # names that change places, and one that data takes
        run("floor(rand() * 1000) as token, uuid() as b")
        assert values(engine, "b, token") == {key: row[:2] for key, row in before.items()}
        assert run("id * 2 as b, uuid() as token, floor(rand() * 1000) as c")
        assert values(engine, "token, c") == {key: row[:2] for key, row in before.items()}
        run("uuid() as token, floor(rand() * 1000) as b")
        # which of the two would be the old one?
        run("uuid() as one, uuid() as two, floor(rand() * 1000) as b")
        assert not {row[0] for row in before.values()} & {v for row in values(engine, "one, two").values() for v in row}
        assert values(engine, "b") == {key: row[1:2] for key, row in before.items()}

    def test_roles(self, engine: Any) -> None:
        engine.query(
            "create or replace table {schema}.src using delta as select id, concat('n', id) as name from range(40)"
        )

        def run(columns: str, **arguments: Any) -> list[str]:
            engine.sql = f"select id, {columns}, uuid() as u from {engine.schema}.src"
            return engine.run(**arguments).response().notes

        engine.model("select id, 1 as bucket, current_timestamp() as seen, name, uuid() as u from {schema}.src")
        engine.run()
        uuids = values(engine, "u")
        # a constant becomes a draw; what was kept before stays, and a full refresh reads both back
        said = run("floor(rand() * 1000) as bucket, current_timestamp() as seen, name")
        drawn = values(engine, "bucket")
        assert len(set(drawn.values())) > 20 and "bucket" in " ".join(said)
        assert run("floor(rand() * 1000) as bucket, current_timestamp() as seen, name", full_refresh=True) == []
        assert (values(engine, "bucket"), values(engine, "u")) == (drawn, uuids)
        # and back to data, and to a draw again: it is a new one
        run("7 as bucket, current_timestamp() as seen, name")
        assert set(values(engine, "bucket").values()) == {(7,)}
        # freeze keeps what the table shows where the expression stayed, though the SQL changed elsewhere
        engine.config["freeze"] = ["seen"]
        bucket = "floor(rand() * 1000) as bucket, current_timestamp() as seen"
        run(f"{bucket}, upper(name) as name", as_of="2026-02-03 06:00:00")
        assert len(set(values(engine, "bucket").values())) > 20
        assert {str(v[0])[:10] for v in values(engine, "seen").values()} == {"2026-02-01"}
        # a column that is frozen with another expression takes the new one, and keeps that
        engine.config["freeze"] = ["seen", "name"]
        said = run(f"{bucket}, lower(name) as name", as_of="2026-02-04 06:00:00")
        assert values(engine, "name")[3] == ("n3",) and "name is drawn anew" in " ".join(said)
        engine.query("update {schema}.src set name = 'changed' where id = 3")
        engine.run("2026-02-05 06:00:00")
        assert values(engine, "name")[3] == ("n3",)
        # no longer frozen, it is data again
        del engine.config["freeze"]
        engine.run("2026-02-06 06:00:00")
        assert values(engine, "name")[3] == ("changed",)
        assert values(engine, "u") == uuids
        # a draw that hides behind a view
        engine.query("create or replace view {schema}.v as select id, 1 as bucket from {schema}.src")
        engine.sql = f"select id, bucket from {engine.schema}.v"
        engine.run()
        engine.query("create or replace view {schema}.v as select id, rand() as bucket from {schema}.src")
        engine.run()
        assert len(set(values(engine, "bucket").values())) == 40


class TestSampleOfGroups:
    def test_a_group_draws_once(self, engine: Any) -> None:
        engine.query(
            "create or replace table {schema}.src using delta as select id, id % 60 as k, 1 as x from range(300)"
        )
        engine.model(
            "select k, sum(x) as n, uuid() as u from {schema}.src group by k having rand() < 0.5 and count(*) > 2"
        )
        engine.config["unique_key"] = "k"

        def rows() -> dict[Any, tuple[Any, Any]]:
            return {row["k"]: (row["n"], row["u"]) for row in engine.adapter.query(f"select * from {engine.table}")}

        engine.run()
        first = rows()
        assert 10 < len(first) < 50 and {n for n, _ in first.values()} == {5}
        # every group changes and none is drawn for again
        engine.query("update {schema}.src set x = 2 where id < 150")
        engine.run()
        second = rows()
        assert {k: u for k, (_, u) in second.items()} == {k: u for k, (_, u) in first.items()}
        assert all(
            n == engine.query(f"select sum(x) as n from {{schema}}.src where k = {k}")[0]["n"]
            for k, (n, _) in list(second.items())[:3]
        )
        # groups that are new draw; some leave by the other condition, and draw anew when they come back
        engine.query("insert into {schema}.src select id, 1000 + id % 60, 1 from range(300)")
        engine.query("delete from {schema}.src where k < 30 and id >= 120")
        engine.run()
        third = rows()
        assert {k for k in third if k < 1000} == {k for k in first if k >= 30}
        assert 10 < len([k for k in third if k >= 1000]) < 50
        engine.query("insert into {schema}.src select id, id % 60, 1 from range(120, 300) where id % 60 < 30")
        engine.run(full_refresh=True)
        fourth = rows()
        assert {k for k in fourth if k >= 30} == {k for k in third if k >= 30}
        assert 3 < len([k for k in fourth if k < 30]) < 27


class TestUniqueKey:
    """A changed unique_key can be run; kept values follow where the new or the old key finds the row."""

    def test_keys_come_and_go(self, engine: Any) -> None:
        engine.query(
            "create or replace table {schema}.src using delta as "
            "select id, concat('r', id % 3) as region, id * 10 as no from range(30)"
        )
        said: list[str] = []

        def run(columns: str, key: Any, **arguments: Any) -> dict[Any, Any]:
            engine.sql = f"select {columns}, rand() as split, uuid() as u from {engine.schema}.src"
            engine.config["unique_key"] = key
            said[:] = engine.run(**arguments).response().notes
            return {row["u"]: row["split"] for row in engine.adapter.query(f"select u, split from {engine.table}")}

        engine.model("select id, no, rand() as split, uuid() as u from {schema}.src")
        drawn = run("id, no", "id")
        assert len(drawn) == 30 and said == []
        # a new column in the key: the old key still finds each row
        assert run("id, no, region", ["id", "region"]) == drawn
        assert "unique_key changed: kept values are found by id" in " ".join(said)
        assert run("id, no, region", ["ID", "Region"]) == drawn and engine.steps == []
        # another one under --full-refresh, a renamed one, one of another type
        assert run("id, no, region", ["no"], full_refresh=True) == drawn
        assert run("id, no as number, region", ["number"]) == drawn
        assert run("cast(id as string) as id, region", ["id"]) == drawn
        # repeated under the new key: an error, and nothing was touched
        version = engine.version()
        for full in (False, True):
            with pytest.raises(RunFailed, match=r"unique_key \(region\) does not identify"):
                run("id, region", ["region"], full_refresh=full)
        assert engine.version() == version
        # several rows of the query where the old key told one: each draws its own value
        assert run("cast(id as string) as id", "id") == drawn
        engine.query("insert into {schema}.src values (1, 'other', 10)")
        split = run("cast(id as string) as id, region", ["id", "region"])
        assert len(split) == 31 and len({*split.values()}) == 31 and len({*split} & {*drawn}) == 29
        # fewer rows again: the one that is left has its own
        engine.query("delete from {schema}.src where region = 'r1' and id = 1")
        fewer = run("cast(id as string) as id, region", "id")
        assert len(fewer) == 30 and {*fewer} <= {*split}
        row = "select u from {schema}.mv where id = '1' and region = 'other'"
        assert engine.query(row)[0]["u"] in split
        # neither key is in both
        anew = run("concat('k', no) as k", "k")
        assert len(anew) == 30 and not {*anew} & {*split} and "all rows draw anew" in " ".join(said)


@pytest.mark.parametrize(
    ("statement", "cure"),
    [
        ("rename column r to rr", "rename column rr to r"),
        ("drop column r", "add column r double"),
        ("drop column r", ""),
    ],
)
def test_kept_values_whose_column_somebody_took_away(engine: Any, statement: str, cure: str) -> None:
    engine.query("create or replace table {schema}.src using delta as select id from range(10)")
    engine.model("select id, rand() as r, uuid() as u from {schema}.src")
    engine.run()
    before = values(engine, "r, u")
    table = engine.table
    if FORMAT == "delta":
        engine.query(f"alter table {table} set tblproperties ('delta.columnMapping.mode' = 'name')")
    engine.query(f"alter table {table} {statement}")
    engine.query("insert into {schema}.src values (10)")
    with pytest.raises(RefusedError, match=r"KEPT_COLUMN_GONE.*has lost r, .*reads its values from version \d+"):
        engine.run()
    if cure:
        engine.query(f"alter table {table} {cure}")
        engine.run()
        now = values(engine, "r, u")
        assert len(now) == 11 and all(now[key] == value for key, value in before.items())
    else:
        engine.run(full_refresh=True)
        now = values(engine, "r, u")
        assert len(now) == 11 and all(now[key][1] == value[1] for key, value in before.items())


@pytest.mark.parametrize(
    ("model", "config"),
    [
        ("select id, k, uuid() as u from {schema}.src", {}),
        ("select id, k, v as u from {schema}.src", {"on_source_delete": "keep"}),
        ("select id, k, v as u from {schema}.src", {"freeze_where": "id < 3"}),
        ("select id, k, v as u from {schema}.src where rand() < 0.5", {}),
    ],
)
@pytest.mark.parametrize(
    ("statement", "cure"),
    [("rename column id to ticket", "rename column ticket to id"), ("drop column k", "add column k int")],
)
def test_a_key_column_that_somebody_took_away(
    engine: Any, model: str, config: dict[str, Any], statement: str, cure: str
) -> None:
    """By it the rows are found again that keep their values, or stay."""
    engine.query(
        "create or replace table {schema}.src using delta as select cast(id as int) as id, 1 as k, 'a' as v from range(30)"
    )
    engine.model(model, unique_key=["id", "k"], **config)
    engine.run()
    engine.query("delete from {schema}.src where id in (3, 4)")
    engine.run()
    before = values(engine, "id, k, u")
    if FORMAT == "delta":
        engine.query(f"alter table {engine.table} set tblproperties ('delta.columnMapping.mode' = 'name')")
    engine.query(f"alter table {engine.table} {statement}")
    with pytest.raises(RefusedError, match=r"KEPT_COLUMN_GONE.*has lost (id|k), by which its rows"):
        engine.run()
    engine.query(f"alter table {engine.table} {cure}")
    engine.run()
    assert values(engine, "id, k, u") == before


@delta_only("on Iceberg another schema is no snapshot; test_reshaped has these")
@pytest.mark.parametrize(
    "statements",
    [
        ["add columns (extra int)"],
        ["add columns (later int)"],  # which the model has by the next run, too
        ["rename column x to xx"],
        ["drop column x"],
        ["rename column r to z", "rename column u to r", "rename column z to u"],
    ],
    ids=" ".join,
)
def test_values_that_somebody_wrote_beside_other_columns(engine: Any, statements: list[str]) -> None:
    """The version that has the kept values has other columns than the table."""
    engine.query("create or replace table {schema}.src using delta as select id, 1 as x from range(10)")
    engine.model("select id, x, rand() as r, randn() as u from {schema}.src")
    engine.run()
    before = values(engine, "r, u")
    engine.query(f"alter table {engine.table} set tblproperties ('delta.columnMapping.mode' = 'name')")
    for statement in statements:
        engine.query(f"alter table {engine.table} {statement}")
    engine.query(f"update {engine.table} set r = 0.99, u = -99 where id < 3")
    if "later" in statements[0]:
        engine.sql = engine.sql.replace(" from", ", x + 1 as later from")
    engine.run()
    assert values(engine, "r, u") == before
    assert engine.rows("mv", "id, x") == engine.rows("src", "id, x")


@delta_only("statements that name no columns; MERGE into an Iceberg table names them, and publishes")
@pytest.mark.parametrize("at", ["check_stage", "publish"])
def test_a_column_that_somebody_adds_while_a_run_works(engine: Any, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.query("create or replace table {schema}.src using delta as select id, 1 as x from range(10)")
    engine.model("select id, x, rand() as r from {schema}.src", refresh="incremental")
    engine.run()
    before = values(engine, "r")
    execute, said = MvRun.execute, []

    def late(run: MvRun, step: Any, sql: str | None) -> None:
        if not said and (step.kind == at or (at == "publish" and step.of.publishes)):
            said.append(step.kind)
            engine.adapter.query(f"alter table {engine.table} add columns (extra string)")
        execute(run, step, sql)

    engine.query("update {schema}.src set x = 2 where id < 3")
    with monkeypatch.context() as patch:
        patch.setattr(MvRun, "execute", late)
        with pytest.raises(
            RunFailed, match=r"\[TURN_TAKEN\].*columns of .* were changed by somebody else.*Run it again"
        ):
            engine.run()
    assert said and values(engine, "r") == before
    engine.config = {**engine.config, "refresh": "auto"}  # the next run takes the column away again
    assert engine.run().response().rows_updated == 3
    assert values(engine, "r") == before and engine.rows("mv", "id, x") == engine.rows("src", "id, x")


def test_maps_with_keys_of_bytes_are_not_always_changed(engine: Any) -> None:
    engine.query(
        "create or replace table {schema}.src using delta as select id, map(cast(id as binary), id) as m from range(10)"
    )
    engine.model("select id, m, rand() as r from {schema}.src")
    engine.run()
    engine.query("update {schema}.src set m = map(cast(id as binary), -1) where id = 3")
    assert engine.run().response().rows_updated == 1
    engine.query("update {schema}.src set m = m where id = 4")
    assert engine.run().response().rows_updated == 0


def test_what_stands_in_the_place_of_the_state_table(engine: Any) -> None:
    engine.query("create or replace table {schema}.src using delta as select id from range(20)")
    engine.model("select id, rand() as r from {schema}.src where rand() < 0.5")
    engine.run()
    engine.query("drop table {schema}.mv__state")
    engine.query("create view {schema}.mv__state as select 1 as x")
    try:
        engine.query("insert into {schema}.src values (20)")
        with pytest.raises(RefusedError, match=r"STATE_NOT_OURS"):
            engine.run()
    finally:
        engine.query("drop view {schema}.mv__state")


@pytest.mark.parametrize(
    ("before", "now", "rows", "kept"),
    [
        ("cast(id + h as decimal(10, 2))", "cast(id as bigint)", "h = 0", "h = 0"),
        ("timestamp'2026-01-01' + make_dt_interval(cast(id as int), cast(24 * h as int))",
         "date'2026-01-01' + cast(id as int)", "h = 0", "h = 0"),
        ("concat(if(h = 0, '', '0'), id)", "cast(id as int)", "h = 0", "h = 0"),
    ],
    ids=["decimal", "timestamp", "string"],
)  # fmt: skip
def test_keys_that_become_one_under_another_type(engine: Any, before: str, now: str, rows: str, kept: str) -> None:
    """One row for each key that the query gives now, with the value of the key that was the same."""
    engine.query(
        "create or replace table {schema}.src using delta as select id, h from range(1, 4) "
        "cross join (values (0.0), (0.5)) as h(h)"
    )
    engine.model(f"select {before} as k, id, h, rand() as r from {{schema}}.src", unique_key="k")
    engine.run()
    drawn = {row[0]: row[1] for row in engine.rows_of(f"select id, r from {engine.table} where {kept}")}
    engine.sql = f"select {now} as k, id, h, rand() as r from {engine.schema}.src where {rows}"
    engine.run()
    found = engine.rows_of(f"select id, r from {engine.table}")
    assert len(found) == 3 and dict(found) == drawn
    assert engine.run().plan.strategy == "NO_OP"


def test_a_key_that_the_table_keeps_in_its_own_type(engine: Any) -> None:
    """Under `on_schema_change: ignore` the query's keys are cast to it, where two could become one."""
    engine.query(
        "create or replace table {schema}.src using delta as select cast(id as decimal(10, 2)) as id from range(3)"
    )
    engine.model("select cast(id as bigint) as id, rand() as r from {schema}.src", on_schema_change="ignore")
    engine.run()
    engine.sql = f"select id, rand() as r from {engine.schema}.src"
    engine.query("insert into {schema}.src values (2.50)")
    with pytest.raises(
        RunFailed,
        match=r"VALUE_DOES_NOT_FIT.*column id has a value of the query.s type decimal\(10,2\) that the table.s type bigint",
    ):
        engine.run()
    engine.query("delete from {schema}.src where id = 2.50")
    engine.run()
    assert sorted(row[0] for row in engine.rows_of(f"select id from {engine.table}")) == [0, 1, 2]


def test_kept_values_that_a_new_type_cannot_hold(engine: Any) -> None:
    """They may be the only copy: they are refused to go, until they are let go."""
    source = "create or replace table {schema}.src using delta as select id, {value} as code from range(3)"

    def made_of(value: str) -> None:
        engine.query(source.replace("{value}", value))

    made_of("concat('A', id)")
    engine.model("select id, code from {schema}.src", freeze=["code"])
    engine.run()
    made_of("int(id)")
    for full in (False, True):
        with pytest.raises(
            RunFailed, match=r"VALUE_DOES_NOT_FIT.*kept value of the table's type string .* forget_values"
        ):
            engine.run(full_refresh=full)
        assert engine.rows_of(f"select code from {engine.table} order by id") == [("A0",), ("A1",), ("A2",)]
    made_of("cast(concat('B', id) as varchar(9))")
    engine.run()
    assert engine.rows_of(f"select code from {engine.table} order by id") == [("A0",), ("A1",), ("A2",)]


LOST = (
    ("x", "x * 5000000000L"), ("x > 1", "concat('a', x)"), ("x", "x / 2"), ("date'2026-01-01'", "timestamp'2026-01-01 10:00:00'"),
    ("array(x)", "array(x * 5000000000L)"), ("map('a', x)", "map('a', x * 5000000000L)"), ("named_struct('a', x)", "named_struct('a', x + 0.5D)"),
)  # fmt: skip
"""An expression, and one of another type that gives values which the former's type cannot hold."""
HELD = (
    ("x", "x * 5L"),
    ("x > 1", "string(x > 1)"),
    ("x + 0.5D", "cast(x as decimal(12, 2))"),
    ("map('a', x)", "map('a', x * 5L)"),
)


@pytest.mark.parametrize("policy", ["ignore", "append_new_columns"])
def test_values_that_the_tables_type_cannot_hold(engine: Any, policy: str) -> None:
    """They are refused: a cast would store other values, or none."""
    engine.query(
        "create or replace table {schema}.src using delta tblproperties ('delta.enableChangeDataFeed' = 'true') as "
        "select id, int(id) as x from range(4)"
    )

    def select(changed: str = "", held: int = 0) -> str:
        lost = [now if changed == now else was for was, now in LOST]
        columns = [f"{text} as v{k}" for k, text in enumerate([*lost, *(pair[held] for pair in HELD)])]
        return f"select id, {', '.join(columns)}, rand() as r from {engine.schema}.src"

    engine.model(select(), on_schema_change=policy)
    engine.run()
    there = engine.rows_of(f"select to_json(struct(*)) from {engine.table} order by id")
    for k, (_, now) in enumerate(LOST):
        engine.sql = select(now)
        with pytest.raises(RunFailed, match=f"VALUE_DOES_NOT_FIT.*column v{k} has a value of the query's type"):
            engine.run()
        assert engine.rows_of(f"select to_json(struct(*)) from {engine.table} order by id") == there
    drawn = engine.rows_of(f"select id, r from {engine.table}")
    engine.sql = select(held=1)
    engine.run()
    engine.query("insert into {schema}.src values (9, 9)")
    engine.run()
    values = [f"v{len(LOST) + k}" for k in range(len(HELD))]
    (types,) = engine.rows_of(f"select {', '.join(f'typeof({v})' for v in values)} from {engine.table} limit 1")
    wanted = ", ".join(f"cast({now} as {type_}) as {v}" for (_, now), type_, v in zip(HELD, types, values, strict=True))
    assert engine.rows_of(
        f"select to_json(struct({', '.join(values)})) from {engine.table} order by id"
    ) == engine.rows_of(f"select to_json(struct({wanted})) from {engine.schema}.src order by id")
    assert set(drawn) < set(engine.rows_of(f"select id, r from {engine.table}"))


@pytest.mark.parametrize(
    "sql",
    [
        "select * from ({joined}) q (kind, drawn, id, name)",
        "with q (kind, drawn, id, name) as ({joined}) select * from q",
    ],
)
def test_columns_that_are_named_by_their_place(engine: Any, sql: str) -> None:
    """In a star, what USING compares comes first, whatever stands first in the subquery."""
    engine.query("create or replace table {schema}.src using delta as select id, id % 2 as k from range(6)")
    engine.query("create or replace table {schema}.names using delta as select id as k, 'a' as name from range(9)")
    joined = "select * from (select rand() as u, k, id from {schema}.src) s join {schema}.names using (k)"
    engine.model(sql.replace("{joined}", joined))
    engine.run()
    drawn = values(engine, "drawn")
    engine.query("update {schema}.src set k = 7 where id = 2")
    engine.run()
    assert values(engine, "drawn") == drawn
    assert values(engine, "kind")[2] == (7,)


def test_columns_of_one_draw_that_come_apart(engine: Any) -> None:
    """A new column over a draw whose values are kept is drawn for itself in old rows; that is said, with what brings them together."""
    engine.query("create or replace table {schema}.src using delta as select id from range(5)")
    both = "with d as (select id, rand() as r from {schema}.src) select id, r, r * 3 as r3 from d"
    engine.model(both.replace(", r * 3 as r3", ""))
    engine.run()
    engine.sql = both.replace("{schema}", engine.schema)
    said = " ".join(engine.run().response().notes)
    assert "r3 is drawn, in rows that were there before, from a draw that r" in said and "columns: [r3, r]" in said
    engine.query("insert into {schema}.src values (7)")
    assert "r3" not in " ".join(engine.run().response().notes)
    apart = {id for id, (r, r3) in values(engine, "r, r3").items() if r * 3 != r3}
    assert apart == set(range(5))
    ask_to_forget(engine, engine.table, "mv", ["r3", "r"], None, {})
    engine.run()
    assert all(r * 3 == r3 for r, r3 in values(engine, "r, r3").values())
    # neither is one drawn from another call, nor is a first run or a frozen column
    engine.sql = f"select id, rand() as r, rand() as s from {engine.schema}.src"
    assert "belong together" not in " ".join(engine.run().response().notes)


@pytest.mark.parametrize(
    "sql",
    [
        "select id from {schema}.mv",
        "select id from {schema}.src where id not in (select id from `{schema}`.`MV`)",
        "select id from {schema}.v",
    ],
)
def test_a_query_that_reads_its_own_table(engine: Any, sql: str) -> None:
    engine.query("create or replace table {schema}.src using delta as select id from range(5)")
    engine.model("select id, rand() as r from {schema}.src")
    if "src" in sql:  # a first run, too
        with pytest.raises(RefusedError, match="READS_ITSELF"):
            engine.model(sql)
            engine.run()
        engine.model("select id, rand() as r from {schema}.src")
    engine.run()
    engine.query("create or replace view {schema}.v as select * from {schema}.mv")
    engine.sql = sql.replace("{schema}", engine.schema)
    with pytest.raises(RefusedError, match="READS_ITSELF"):
        engine.run()
    assert len(engine.rows_of(f"select * from {engine.table}")) == 5


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize("refresh", ["incremental", "full"])
def test_the_sign_of_a_zero(engine: Any, kind: str, refresh: str) -> None:
    """0.0 and -0.0 are equal in SQL; the table has the one that the query gives."""
    feed = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
    for key in ("id", "x"):
        engine.query(
            f"create or replace table {{schema}}.src {feed} as select id, cast(if(id = 1, 0, id) as {kind}) as x from range(1, 5)"
        )
        engine.model("select id, x, rand() as r from {schema}.src", unique_key=key, refresh=refresh)
        engine.run()
        drawn = values(engine, "r")
        for zero in ("-0.0d", "0.0d"):
            engine.query(f"update {{schema}}.src set x = cast({zero} as {kind}) where id = 1")
            engine.run()
            assert str(values(engine, "x")[1][0]) == zero[:-1]
            assert values(engine, "r") == drawn
            assert engine.run().plan.strategy in ("NO_OP", "COMPLETE_RECOMPUTE")


def test_a_full_refresh_takes_the_query_s_order_of_columns(engine: Any) -> None:
    """As `table` would have it, and a reader by position expects; a run that only changes rows leaves the table's order."""
    engine.query("create or replace table {schema}.src using delta as select id, id % 3 as k from range(10)")
    engine.model("select id, k, rand() as r from {schema}.src")
    engine.run()
    drawn = engine.rows("mv", "id, r")
    engine.sql = f"select rand() as r, k, id from {engine.schema}.src"
    for full_refresh, order in ((False, ["id", "k", "r"]), (True, ["r", "k", "id"]), (False, ["r", "k", "id"])):
        engine.query("insert into {schema}.src select max(id) + 1, 0 from {schema}.src")
        engine.run(full_refresh=full_refresh)
        assert [row["col_name"] for row in engine.query("describe {schema}.mv")][:3] == order
        assert not drawn - engine.rows("mv", "id, r")
