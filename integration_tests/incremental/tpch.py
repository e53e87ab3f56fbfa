"""TPC-H: its tables at a scale, rounds of its refreshes, its 22 queries, and 78 models as a project has them over its tables."""

from __future__ import annotations

import json
import re
import subprocess
import sysconfig
from pathlib import Path

from direct import Direct

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

DRAWN = re.compile(r"(?:rand|uuid)\(\)[^,]* as (\w+)")
SAMPLED = re.compile(r"rand\(\) < 0\.\d(?! then)")

DIMENSIONS = (
    "update {s}.partsupp set ps_supplycost = ps_supplycost + 1, ps_availqty = ps_availqty + 5 where ps_partkey % 307 = {n}",
    "update {s}.customer set c_acctbal = c_acctbal + 1000, c_phone = concat('13', substr(c_phone, 3)) where c_custkey % 211 = {n}",
    "update {s}.supplier set s_nationkey = (s_nationkey + 1) % 25, s_acctbal = s_acctbal - 1 where s_suppkey % 23 = {n}",
    "update {s}.part set p_type = 'PROMO BRUSHED BRASS', p_size = 15 where p_partkey % 199 = {n}",
)


def queries() -> dict[str, tuple[list[str], str]]:
    """The unique_key and the text of each of the 22 queries."""
    found = {}
    for name, key in KEYS.items():
        text = (QUERIES / f"{name}.sql").read_text(encoding="utf-8").strip()
        found[name] = (key.split() or ["scope"], text if key else text.replace("select", "select 'all' as scope,", 1))
    return found


def models() -> dict[str, tuple[list[str], str]]:
    """The unique_key and the text of each model of models.sql."""
    found = {}
    for block in (QUERIES / "models.sql").read_text(encoding="utf-8").split("\n-- ")[1:]:
        name, bar, key_and_text = block.partition(" | ")
        if bar:
            key, text = key_and_text.split("\n", 1)
            found[name] = (key.split(", "), text.strip())
    return found


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


def refresh(session: Direct, schema: str, number: int, dimension: str = "") -> None:
    """One round: new orders with their lines (RF1), old ones deleted (RF2), and a dimension that changes (or this statement)."""
    shift = 100_000_000 * number
    for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        rest = ", ".join(c for c in TABLES[table] if c != key)
        session.query(
            f"insert into {schema}.{table} select {key} + {shift}, {rest} from {schema}.{table} "
            f"where {key} % 997 = {number * 7} and {key} < 100000000"
        )
        session.query(f"delete from {schema}.{table} where {key} % 1009 = {number * 5}")
    session.query(dimension or DIMENSIONS[number % len(DIMENSIONS)].format(s=schema, n=number))


def on_day(text: str, day: str) -> str:
    """The query as it is on a day: 1998-08-02."""
    return text.replace("current_date()", f"date'{day}'")


def without_draws(text: str) -> tuple[str, str]:
    """The query without a random filter, and what to select of it and of its table so that nothing drawn is among it."""
    drawn = DRAWN.findall(text)
    return SAMPLED.sub("true", text), f"* except ({', '.join(drawn)})" if drawn else "*"
