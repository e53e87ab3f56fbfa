"""The 22 queries of TPC-H as models: orders and their lines come and go, dimensions change, every table stays right."""

from __future__ import annotations

import json
import subprocess
import sysconfig
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from direct import Direct, Model, Pool

QUERIES = Path(__file__).parents[2] / "tests" / "query" / "tpch"
TABLES = json.loads((QUERIES / "tables.json").read_text(encoding="utf-8"))
FEED = "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true'"

# what identifies a row; a query of one total gets a column that does
KEYS = {
    "q01": "l_returnflag l_linestatus", "q02": "p_partkey s_name", "q03": "l_orderkey", "q04": "o_orderpriority",
    "q05": "n_name", "q06": "", "q07": "supp_nation cust_nation l_year", "q08": "o_year", "q09": "nation o_year",
    "q10": "c_custkey", "q11": "ps_partkey", "q12": "l_shipmode", "q13": "c_count", "q14": "", "q15": "s_suppkey",
    "q16": "p_brand p_type p_size", "q17": "", "q18": "o_orderkey", "q19": "", "q20": "s_name", "q21": "s_name",
    "q22": "cntrycode",
}  # fmt: skip

DIMENSIONS = (
    "update {s}.partsupp set ps_supplycost = ps_supplycost + 1, ps_availqty = ps_availqty + 5 where ps_partkey % 307 = {n}",
    "update {s}.customer set c_acctbal = c_acctbal + 1000, c_phone = concat('13', substr(c_phone, 3)) where c_custkey % 211 = {n}",
    "update {s}.supplier set s_nationkey = (s_nationkey + 1) % 25, s_acctbal = s_acctbal - 1 where s_suppkey % 23 = {n}",
    "update {s}.part set p_type = 'PROMO BRUSHED BRASS', p_size = 15 where p_partkey % 199 = {n}",
)

# the others are quotients of totals (q14, q17), the first rows of an order (q02, q03, q10, q18, q21), groups of groups (q13),
# or compare with a subquery whose table changed (q11, q15, q16, q20, q22): any changed row can change any of theirs
FOLLOWED = {"q01", "q04", "q05", "q06", "q07", "q08", "q09", "q12", "q19"}


def model_sql(name: str) -> str:
    text = (QUERIES / f"{name}.sql").read_text(encoding="utf-8").strip()
    return text if KEYS[name] else text.replace("select", "select 'all' as scope,", 1)


def generate(scale: str, folder: Path) -> None:
    """The eight tables as Parquet files."""
    program = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    subprocess.run([str(program), "parquet", "-s", scale, "--output-dir", str(folder)], check=True, capture_output=True)


def load(session: Direct, schema: str, folder: Path) -> None:
    session.query(f"drop schema if exists {schema} cascade")
    session.query(f"create schema {schema}")
    for table, columns in TABLES.items():
        listed = ", ".join(f"cast({name} as {type_}) as {name}" for name, type_ in columns.items())
        session.query(
            f"create table {schema}.{table} using delta tblproperties ({FEED}) as "
            f"select {listed} from parquet.`{folder / table}.parquet`"
        )


def refresh(session: Direct, schema: str, number: int) -> None:
    """One round: new orders with their lines (RF1), old ones deleted (RF2), and a dimension that changes."""
    shift = 100_000_000 * number
    for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        rest = ", ".join(c for c in TABLES[table] if c != key)
        session.query(
            f"insert into {schema}.{table} select {key} + {shift}, {rest} from {schema}.{table} "
            f"where {key} % 997 = {number * 7} and {key} < 100000000"
        )
        session.query(f"delete from {schema}.{table} where {key} % 1009 = {number * 5}")
    session.query(DIMENSIONS[number % len(DIMENSIONS)].format(s=schema, n=number))


@dataclass
class Times:
    strategies: set[str] = field(default_factory=set)
    run: list[float] = field(default_factory=list)
    table: list[float] = field(default_factory=list)


def live(pool: Pool, schema: str, rounds: int, against_table: bool = False) -> dict[str, Times]:
    """All models through all rounds, each compared with its query after each run."""
    models = {
        name: Model(schema, name, model_sql(name), {"unique_key": KEYS[name].split() or ["scope"]}) for name in KEYS
    }
    found = {name: Times() for name in models}

    def run(session: Direct, name: str) -> None:
        session.query(f"use {schema}")
        model, times = models[name], found[name]
        started = time.perf_counter()
        made = model.run_incrementally(session, "2026-01-01 00:00:00")
        if model.runs > 1:
            times.run.append(time.perf_counter() - started)
            times.strategies.add(made.plan.strategy)
        assert not session.warnings, session.warnings
        wanted = session.bag(model.sql)
        got = session.bag(f"select * from {model.table}")
        reasons = {c.strategy: [r.code for r in c.reasons] for c in made.plan.candidates}
        assert got == wanted, (name, made.plan.strategy, reasons, wanted - got, got - wanted)
        if against_table:
            started = time.perf_counter()
            session.query(f"create or replace table {schema}.plain_{name} using delta as {model.sql}")
            times.table.append(time.perf_counter() - started)

    for number in range(rounds + 1):
        if number:
            refresh(pool.first, schema, number)
        pool.each(run, list(models))
    return found


@pytest.fixture
def pool(spark: Any) -> Pool:
    return Pool(spark)


@pytest.mark.slow
def test_two_rounds(pool: Pool, tmp_path: Path) -> None:
    generate("0.01", tmp_path)
    load(pool.first, "tpch_small", tmp_path)
    found = live(pool, "tpch_small", rounds=2)
    print(Counter(s for times in found.values() for s in times.strategies))
    assert {name for name, times in found.items() if "COMPLETE_RECOMPUTE" not in times.strategies} >= FOLLOWED
    pool.first.query("drop schema tpch_small cascade")


@pytest.mark.slow
def test_ten_rounds(spark: Any, tmp_path: Path) -> None:
    pool = Pool(spark, 1)
    generate("0.1", tmp_path)
    load(pool.first, "tpch_tenth", tmp_path)
    found = live(pool, "tpch_tenth", rounds=10, against_table=True)
    for name, times in found.items():
        run, table = sorted(times.run)[len(times.run) // 2], sorted(times.table)[len(times.table) // 2]
        print(f"{name}  {'/'.join(sorted(times.strategies)):20} {run:6.2f} s  table {table:6.2f} s")
    pool.first.query("drop schema tpch_tenth cascade")
