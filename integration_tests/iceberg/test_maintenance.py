"""What is done to Iceberg tables between two runs, to a source or to the model's own table: the next run is right, goes the way that
is said, and no kept value is drawn anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from direct import Model, Pool, schema

S = "upkeep"
AT = "2026-02-03 06:00:00"
WINDOW = "at >= current_timestamp() - interval 3 days"
ROWS = f"select id, k, name, at, rand() as drawn from {S}.src where {WINDOW}"
GROUPS = f"select k, count(*) as n, sum(v) as s, uuid() as drawn from {S}.src group by k"
LATEST = (
    f"select id, at, k, uuid() as drawn from (select *, row_number() over (partition by k order by at desc, id desc) as rn "
    f"from {S}.src) where rn = 1"
)
EXPIRE = "older_than => timestamp'2090-01-01 00:00:00', retain_last => 1"
ALL_FILES = "options => map('rewrite-all', 'true')"
INCREMENTAL = ("APPEND_ONLY", "ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION")


@dataclass
class Upkeep:
    """Three models over one source: rows of a window, groups, and the newest row of each group."""

    pool: Pool
    models: tuple[Model, ...]
    drawn: dict[str, dict[Any, Any]] = field(default_factory=dict)
    number: int = 100

    def __call__(self, sql: str) -> list[dict[str, Any]]:
        return self.pool.first.query(sql.replace("{s}", S))

    def call(self, procedure: str, table: str, more: str = "") -> None:
        self(f"call iceberg_catalog.system.{procedure}(table => '{S}.{table}'{', ' if more else ''}{more})")

    def change(self) -> None:
        """Rows come, change and go."""
        self.number += 1
        n = self.number
        self(
            f"insert into {{s}}.src (id, k, v, name, at) values ({n}, {n % 4}, {n}, 'new', timestamp'2026-02-03 01:00:00')"
        )
        self(f"update {{s}}.src set name = 'n{n}', v = v + 1 where id % 40 = {n % 7}")
        self(f"delete from {{s}}.src where id = {n % 30 + 1}")

    def run(self, at: str = AT) -> tuple[set[str], set[str]]:
        """Each model: its table is its query, who stayed kept its draw. The strategies and the codes of reasons."""
        session, strategies, codes = self.pool.first, set(), set()
        for model in self.models:
            run = model.run_incrementally(session, at)
            assert not session.warnings, session.warnings
            strategies.add(run.plan.strategy)
            codes |= {reason.code for c in run.plan.candidates for reason in c.reasons} | {
                r.code for r in run.plan.reasons
            }
            plain = ", ".join(c for c in session.spark.table(model.table).columns if c != "drawn")
            wanted = session.bag(
                f"select {plain} from ({model.sql})".replace("current_timestamp()", f"timestamp'{at}'")
            )
            assert session.bag(f"select {plain} from {model.table}") == wanted, (
                model.name,
                strategies,
                session.statements,
            )
            key = model.config["unique_key"]
            now = {row[key]: row["drawn"] for row in session.query(f"select {key}, drawn from {model.table}")}
            before = self.drawn.get(model.name, {})
            assert {k for k in now if k in before and now[k] != before[k]} == set(), (model.name, strategies, codes)
            self.drawn[model.name] = now
        return strategies, codes

    def goes_on(self) -> None:
        """Changes are followed."""
        self.change()
        strategies, codes = self.run()
        assert strategies <= set(INCREMENTAL), (strategies, codes)

    def recomputes(self, *codes: str) -> None:
        strategies, found = self.run()
        assert "COMPLETE_RECOMPUTE" in strategies and found & set(codes), (strategies, found)


@pytest.fixture(scope="class")
def upkeep(spark: Any) -> Iterator[Upkeep]:
    iceberg = {"file_format": "iceberg"}
    models = (
        Model(S, "rows_", ROWS, {"unique_key": "id", "partition_by": ["days(at)"], **iceberg}),
        Model(S, "groups", GROUPS, {"unique_key": "k", **iceberg}),
        Model(S, "latest", LATEST, {"unique_key": "k", **iceberg}),
    )
    found = Upkeep(Pool(spark, 1, "iceberg"), models)
    with schema(found.pool.first, S):
        found(f"create table {{s}}.src using iceberg as {_source()}")
        yield found


def _source(rows: int = 80) -> str:
    return (
        "select id, cast(id % 4 as int) as k, id as v, concat('n', id) as name, "
        f"timestamp'2026-02-01 00:00:00' + make_interval(0, 0, 0, 0, id % 40) as at from range(1, {rows})"
    )


def test_between_two_runs(upkeep: Upkeep) -> None:
    upkeep.run()
    upkeep("alter table iceberg_catalog.{s}.src add partition field days(at)")
    upkeep.change()
    upkeep.call("rewrite_data_files", "src", ALL_FILES)
    for model in upkeep.models:
        upkeep.call("rewrite_data_files", model.name, ALL_FILES)
    upkeep.goes_on()
    assert upkeep.run()[0] == {"NO_OP"}
    upkeep.change()
    upkeep.call("expire_snapshots", "src", EXPIRE)
    for model in upkeep.models:
        upkeep.call("expire_snapshots", model.name, EXPIRE)
    upkeep.recomputes("HISTORY_GONE")
    upkeep.goes_on()
