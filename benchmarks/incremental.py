"""What a run costs against a rebuild, against dbt's incremental merge and against a MERGE written by hand.

`make bench` or `python benchmarks/incremental.py [--rows 10_000_000] [--changed 10_000] [--rounds 5] [--warm-up 10]
[--memory 6g] [--text 0] [--no-incremental] [--format delta] [SCENARIO …]`. One process, one warm session, one set of data: only the ratios
of one run mean something. Each figure is the median of all rounds. The session is warmed by rounds of all scenarios on a tenth of the rows.
`--format iceberg [--format-version 3] [--copy-on-write]` makes all tables Iceberg tables; the ways by hand that read Delta's change feed are left out.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "integration_tests" / "incremental"))
from direct import Direct, Model

from spark_mv.spark.formats.registry import FORMATS
from spark_mv.spark.session.iceberg import FORMATS as SETTING
from spark_mv.spark.session.session import open_session

PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
DRAW = ", rand() as split"
DAY0 = "2026-01-01 00:00:00"
#: narrow rows: the hard case, because little is saved per row that is not written; with --text they carry a text as well
SELECT = "select id, customer, amount * 1.2 as gross, ts{text}{draw} from bench.{source} where ts >= current_timestamp() - interval 365 days"
#: money as decimals, whose sums can be adjusted; sums of doubles are added up again per group
GROUPED = (
    "select customer, count(*) as orders, sum(cast(amount as decimal(18, 2))) as amount from bench.orders "
    "where ts >= current_timestamp() - interval 30 days and ts <= current_timestamp() group by customer"
)


SCENARIOS = ("new", "scattered", "clustered", "nothing", "leaving", "moving_on", "aggregate", "ageing", "tenth")


def later(start: str, hours: int) -> str:
    return str(datetime.fromisoformat(start) + timedelta(hours=hours))


class Bench:
    """`times[scenario][method]` are seconds. Statements name the schema `bench`; `schema` takes its place."""

    def __init__(
        self,
        spark: Any,
        rows: int,
        rounds: int,
        share: int | None = None,
        incremental: bool = True,
        text: int = 0,
        schema: str = "bench",
        table_format: str = "delta",
        properties: Mapping[str, str] = PROPERTIES,
    ) -> None:
        self.session, self.rows, self.rounds, self.schema = Direct(spark, table_format), rows, rounds, schema
        self.table_format, self.properties = table_format, properties
        self.incremental, self.text = incremental, text
        self.body = ", body" if text else ""
        self.share = share or rows // 1000
        self.times: dict[str, dict[str, list[float]]] = {}
        self.said: dict[tuple[str, str], str] = {}

    def query(self, sql: str) -> list[dict[str, Any]]:
        return self.session.query(self.here(sql))

    def here(self, sql: str) -> str:
        return sql.replace("bench.", f"{self.schema}.")

    def timed(self, scenario: str, method: str, work: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        result = work()
        self.times.setdefault(scenario, {}).setdefault(method, []).append(time.perf_counter() - started)
        if result is not None and hasattr(result, "plan"):
            publishing = {
                "insert into": "INSERT", "merge into": "MERGE", "delete from": "DELETE", "alter table": "record only",
            }  # fmt: skip
            sent = [word for s in self.session.statements for start, word in publishing.items() if s.startswith(start)]
            how = "REPLACE WHERE" if any("\nreplace where" in s for s in self.session.statements) else "".join(sent)
            how = "REPLACE USING" if result.counts.get("by_join") else how
            self.said[scenario, method] = f"{result.plan.strategy} {how}".strip()
        return result

    def make_source(self, name: str, rows: int, days: int = 300, end: str = DAY0) -> None:
        """Rows spread evenly over the days before `end`."""
        self.query(
            f"{self.make(name)} "
            f"select id, cast(pmod(xxhash64(id), 1000) as int) as customer, pmod(xxhash64(id, 1), 1000000) / 100.0D as amount, "
            f"timestamp'{end}' - make_dt_interval(0, 0, 0, ({rows} - id) * {days}.0 * 86400 / {rows}) as ts{self.texts()} "
            f"from range(0, {rows}, 1, 8)"
        )

    def texts(self) -> str:
        """Of so many characters each, of which a hash has 128; none is another's."""
        parts = ", ".join(f"sha2(concat(id, '/{k}'), 512)" for k in range(-(-self.text // 128)))
        return f", substr(concat({parts}), 1, {self.text}) as body" if self.text else ""

    def select(self, source: str, draw: str = DRAW) -> str:
        return SELECT.format(draw=draw, source=source, text=self.body)

    def plain(self, as_of: str, draw: str = "") -> str:
        """The query at an instant."""
        return self.select("src", draw).replace("current_timestamp()", f"timestamp'{as_of}'")

    def drawn(self, as_of: str) -> str:
        """The query as dbt's own materializations evaluate it: every value is drawn anew."""
        return self.plain(as_of, DRAW)

    def grouped(self, as_of: str) -> str:
        return GROUPED.replace("current_timestamp()", f"timestamp'{as_of}'")

    # --- the other ways

    def table(self, name: str, sql: str) -> None:
        self.query(f"{self.make(name)} {sql}")

    def make(self, name: str) -> str:
        """The statement that makes a table, up to its query."""
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in self.properties.items())
        where = FORMATS[self.table_format].made_as(self.session.spark, f"bench.{name}")
        return f"create or replace table {where} using {self.table_format} tblproperties ({listed}) as"

    def merge(self, name: str, sql: str) -> None:
        """What dbt-spark's `incremental` with the merge strategy sends."""
        self.query(f"create or replace temporary view {name}__dbt_tmp as {sql}")
        self.query(
            f"merge into bench.{name} t using {name}__dbt_tmp s on t.id = s.id "
            "when matched then update set * when not matched then insert *"
        )

    def expert(self, low: int) -> None:
        """The change feed, staged; then only what changes is set."""
        self.query("drop table if exists bench.expert_stage")
        self.query(
            f"create table bench.expert_stage using parquet as "
            f"select id, customer, amount * 1.2 as gross, ts{self.body}, _change_type from table_changes('bench.src', {low + 1}) "
            "where _change_type <> 'update_preimage'"
        )
        self.query(
            "merge into bench.expert t using bench.expert_stage s on t.id = s.id "
            "when matched and s._change_type = 'delete' then delete "
            "when matched then update set t.gross = s.gross, t.customer = s.customer "
            f"when not matched then insert (id, customer, gross, ts{self.body}, split) "
            f"values (s.id, s.customer, s.gross, s.ts{', s.body' if self.text else ''}, rand())"
        )

    def key_pass(self) -> None:
        """Half of the floor: look the keys up in the table once."""
        self.query("select count(*) from bench.expert t join bench.expert_stage s on t.id = s.id")

    def insert(self) -> None:
        """The other half: write the changed rows somewhere."""
        self.query(f"insert into bench.floor select id, customer, gross, ts{self.body}, rand() from bench.expert_stage")

    def leave(self, at: str) -> None:
        """The floor where rows only leave."""
        self.query(f"delete from bench.expert where ts < timestamp'{at}' - interval 365 days")

    def move_groups(self, before: str, at: str) -> None:
        """The floor of a moving aggregate: one MERGE that adds what came to each group and takes away what went."""
        days = "interval 30 days"
        sides = " union all ".join(
            f"select customer, {sign}count(*) as n, {sign}sum(cast(amount as decimal(18, 2))) as a from bench.orders where {rows} group by customer"
            for sign, rows in (
                ("", f"ts > timestamp'{before}' and ts <= timestamp'{at}'"),
                ("-", f"ts >= timestamp'{before}' - {days} and ts < timestamp'{at}' - {days}"),
            )
        )
        self.query(
            "merge into bench.moved_by_hand t using "
            f"(select customer, sum(n) as n, cast(sum(a) as decimal(28, 2)) as a from ({sides}) group by customer) s "
            "on t.customer = s.customer when matched and t.orders + s.n = 0 then delete "
            "when matched then update set orders = t.orders + s.n, amount = t.amount + s.a "
            "when not matched then insert (customer, orders, amount) values (s.customer, s.n, s.a)"
        )

    def version(self) -> int:
        return int(self.query("describe history bench.src limit 1")[0]["version"])

    def model_of(self, name: str, sql: str, key: str = "id") -> Model:
        own = {} if self.table_format == "delta" else {"tblproperties": dict(self.properties)}
        return Model(self.schema, name, self.here(sql), {"unique_key": key, **own})

    # --- what is measured

    def prepare(self) -> None:
        self.query(f"drop schema if exists {self.schema} cascade")
        self.query(f"create schema {self.schema}")
        self.make_source("src", self.rows)
        self.model = self.model_of("ours", self.select("src"))
        self.model.run(self.session, DAY0)

    def prepare_others(self) -> None:
        """The tables of the other ways to follow changed rows."""
        if not self.session.spark.catalog.tableExists(f"{self.schema}.floor"):
            for name in ("merged", "expert")[not self.incremental :]:
                self.table(name, self.drawn(DAY0))
            self.table("floor", "select * from bench.expert limit 0")

    def changes(self, scenario: str, statement: str, with_merge: bool) -> None:
        self.prepare_others()
        by_feed = self.table_format == "delta"
        for number in range(self.rounds + 1):  # the first round warms up
            low = self.version() if by_feed else 0
            self.query(statement.format(n=number, rows=self.rows, new=10 * self.rows + number * self.share))
            if number == 1:
                self.times.pop(scenario, None)
            self.timed(scenario, "ours", lambda: self.model.run(self.session, DAY0))
            self.timed(scenario, "table", lambda: self.table("rebuilt", self.drawn(DAY0)))
            if by_feed:
                self.timed(scenario, "expert's MERGE", lambda low=low: self.expert(low))
                self.timed(scenario, "key pass", self.key_pass)
                self.timed(scenario, "INSERT alone", self.insert)
            if with_merge and self.incremental and number:
                self.timed(scenario, "dbt incremental", lambda: self.merge("merged", self.drawn(DAY0)))
        self.check(self.model.table, self.plain(DAY0))
        self.report(scenario)

    def run(self, scenarios: Sequence[str] = ()) -> None:
        self.prepare()
        for name in scenarios or SCENARIOS:
            getattr(self, name)()

    def new(self) -> None:
        insert = f"insert into bench.src select {{new}} + id, 1, 2.5, timestamp'2025-12-31'{self.texts()} from range({self.share})"
        self.changes(f"{self.share:,} new rows", insert, True)

    def scattered(self) -> None:
        every = self.rows // self.share
        update = f"update bench.src set amount = amount + 1 where id % {every} = {{n}} and id < {self.rows}"
        self.changes(f"{self.share:,} scattered updates", update, True)

    def clustered(self) -> None:
        start = f"{{n}} * {self.share} * 3"
        update = f"update bench.src set amount = amount + 1 where id between {start} and {start} + {self.share - 1}"
        self.changes(f"{self.share:,} clustered updates", update, False)

    def nothing(self) -> None:
        for _ in range(self.rounds):
            self.timed("nothing changed", "ours", lambda: self.model.run(self.session, DAY0))
            self.timed("nothing changed", "table", lambda: self.table("rebuilt", self.drawn(DAY0)))
        self.report("nothing changed")

    def leaving(self) -> None:
        """300 days of data in a window of 365: 66 days on, rows begin to leave, about 0.1 % in 7 hours."""
        self.prepare_others()
        at = "2026-03-07 06:00:00"
        self.model.run(self.session, at)
        self.leave(at)
        for number in range(self.rounds):
            at = later("2026-03-07 13:00:00", 2 * number)
            self.timed("rows leave the window", "ours", lambda at=at: self.model.run(self.session, at))
            self.timed("rows leave the window", "table", lambda at=at: self.table("rebuilt", self.drawn(at)))
            self.timed("rows leave the window", "DELETE alone", lambda at=at: self.leave(at))
        self.check(self.model.table, self.plain(at))
        self.report("rows leave the window")

    def moving_on(self) -> None:
        for number in range(self.rounds):
            at = later("2026-03-10 00:30:00", 2 * number)
            self.query(
                f"insert into bench.src select {100 * self.rows + number * self.share} + id, 1, 2.5, "
                f"timestamp'{at}'{self.texts()} from range({self.share})"
            )
            self.timed("rows come, others leave", "ours", lambda at=at: self.model.run(self.session, at))
            self.timed("rows come, others leave", "table", lambda at=at: self.table("rebuilt", self.drawn(at)))
        self.check(self.model.table, self.plain(at))
        self.report("rows come, others leave")

    def aggregate(self) -> None:
        """The window holds all the rows of a source of this size."""
        days = 30 + self.rounds + 1
        self.make_source("orders", self.rows * days // 30, days, later(DAY0, 24 * (self.rounds + 1)))
        model, scenario = self.model_of("moving", GROUPED, "customer"), "30-day aggregate, one day on"
        model.run(self.session, DAY0)
        self.table("moved_by_hand", self.grouped(DAY0))
        for number in range(1, self.rounds + 2):
            before, at = (later(DAY0, 24 * passed) for passed in (number - 1, number))
            if number == 2:
                self.times.pop(scenario, None)
            self.timed(scenario, "ours", lambda at=at: model.run(self.session, at))
            self.timed(scenario, "table", lambda at=at: self.table("regrouped", self.grouped(at)))
            self.timed(scenario, "MERGE by hand", lambda before=before, at=at: self.move_groups(before, at))
        self.check(model.table, self.grouped(at))
        self.check(self.here("bench.moved_by_hand"), self.grouped(at))
        self.report(scenario)

    def ageing(self) -> None:
        """A column that follows the clock as long as a row is open. The first day on is recomputed completely: how many rows are is not known."""
        open_ = f"if(id % {self.rows // self.share} = 0, current_date(), cast(ts as date))"
        sql = f"select id, customer, datediff({open_}, date'2025-01-01') as days{{draw}} from bench.src"
        scenario = f"{self.share:,} open rows, one day on"
        model, whole = (self.model_of(name, sql.format(draw=DRAW)) for name in ("ageing", "ageing_whole"))
        for one in (model, whole):
            one.run(self.session, DAY0)
        for number in range(1, self.rounds + 3):
            at = later(DAY0, 24 * number)
            if number == 3:
                self.times.pop(scenario, None)
            self.timed(scenario, "ours", lambda at=at: model.run(self.session, at))
            self.timed(scenario, "refresh: full", lambda at=at: whole.run(self.session, at, "full"))
            here = sql.format(draw=DRAW).replace("current_date()", f"date'{at[:10]}'")
            self.timed(scenario, "table", lambda here=here: self.table("reaged", here))
        self.check(model.table, sql.format(draw="").replace("current_date()", f"date'{at[:10]}'"))
        self.report(scenario)

    def tenth(self) -> None:
        """The same number of changed rows on a table of a tenth of the size."""
        self.make_source("tenth", self.rows // 10)
        model = self.model_of("small", self.select("tenth"))
        model.run(self.session, DAY0)
        new = f"insert into bench.tenth select {10 * self.rows} + {{start}} + id, 1, 2.5, timestamp'2025-12-31'{self.texts()} "
        for what, statement in (
            ("new rows", new + f"from range({self.share})"),
            ("clustered updates", "update bench.tenth set amount = amount + 1 where id between {start} * 3 "
             f"and {{start}} * 3 + {self.share - 1}"),
        ):  # fmt: skip
            scenario = f"{self.share:,} {what}, a tenth of the table"
            for number in range(self.rounds + 1):
                self.query(statement.format(start=number * self.share))
                if number == 1:
                    self.times.pop(scenario, None)
                self.timed(scenario, "ours", lambda: model.run(self.session, DAY0))
            self.report(scenario)

    def check(self, table: str, sql: str) -> None:
        columns = ", ".join(c for c in self.session.spark.sql(self.here(sql)).columns)
        for left, right in (
            (f"select {columns} from {table}", sql),
            (sql, f"select {columns} from {table}"),
        ):
            found = self.query(f"select count(*) as n from ({left} except all {right})")[0]["n"]
            if found:
                raise SystemExit(f"{table} is wrong: {found} rows differ")

    def report(self, scenario: str) -> None:
        methods = self.times[scenario]
        ours = median(methods["ours"])
        print(f"\n{scenario}  ({self.said.get((scenario, 'ours'), '')})")
        for method, seconds in sorted(methods.items(), key=lambda item: median(item[1])):
            low, high = min(seconds), max(seconds)
            print(
                f"  {method:20} {median(seconds):8.2f} s  ({low:.2f} to {high:.2f})  {median(seconds) / ours:6.1f} x",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--changed", type=int, help="rows that change in a round (default: 0.1 %%)")
    parser.add_argument("--warm-up", type=int, default=10, help="rounds on a tenth of the rows before the first figure")
    parser.add_argument("--memory", default="6g")
    parser.add_argument("--text", type=int, default=0, help="characters of a text that each row carries")
    parser.add_argument(
        "--no-incremental", action="store_true", help="leave dbt's incremental out, which takes minutes"
    )
    parser.add_argument("--format", choices=("delta", "iceberg"), default="delta", help="of all tables")
    parser.add_argument("--format-version", default="2", choices=("2", "3"), help="of Iceberg's tables")
    parser.add_argument(
        "--copy-on-write", action="store_true", help="Iceberg: rows that change or go rewrite their files"
    )
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], metavar="SCENARIO", help=", ".join(SCENARIOS))
    words = parser.parse_args()
    properties = PROPERTIES
    if words.format == "iceberg":
        mode = "copy-on-write" if words.copy_on_write else "merge-on-read"
        modes = {f"write.{verb}.mode": mode for verb in ("merge", "update", "delete")}
        properties = {"format-version": words.format_version, **modes}
    home = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-bench-"))
    try:
        settings = {"spark.driver.memory": words.memory}
        if words.format == "iceberg":
            settings[SETTING] = "delta,iceberg"
        spark = open_session(settings, home / "warehouse", home / "spark.log")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        print(
            f"{words.rows:,} rows{f' with a text of {words.text}' if words.text else ''}, {words.rounds} rounds, Spark {spark.version}, {platform.machine()}, "
            f"{words.format}{f' {properties}' if words.format == 'iceberg' else ''}"
        )
        if words.warm_up:
            print("warming up ...", flush=True)
            with redirect_stdout(None):
                warm = Bench(
                    spark, words.rows // 10, words.warm_up, None, False, words.text, "warm", words.format, properties
                )
                warm.run(words.scenarios)
            spark.sql("drop schema warm cascade")
        bench = Bench(
            spark,
            words.rows,
            words.rounds,
            words.changed,
            not words.no_incremental,
            words.text,
            table_format=words.format,
            properties=properties,
        )
        bench.run(words.scenarios)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
