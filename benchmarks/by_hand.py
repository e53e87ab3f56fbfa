"""What a change of a small table costs by hand, with nothing of this package: `python benchmarks/by_hand.py [--rows 100000] [--rounds 5]`.

The sources and the change are those of small.py, the model is its `projection`. Beside `create or replace table … as`: reading the
changed rows from the source's change feed, a MERGE of these rows once they are in memory, and the same as a DELETE by literal keys
and an INSERT. What follows changes reads the feed and does one of the two, so these are a floor for it. Medians of one warm session.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
from small import MODELS, Timed, change, sources, timed

SQL = MODELS["projection"][1]
COLUMNS = ("o_id", "o_customer", "status", "gross", "o_at")
MERGE = f"""merge into bench.merged t using (select * from feed where _change_type <> 'update_preimage') s on t.o_id = s.o_id
when matched and s._change_type = 'delete' then delete
when matched then update set {", ".join(f"{c} = s.{c}" for c in COLUMNS[1:])}
when not matched and s._change_type <> 'delete' then insert ({", ".join(COLUMNS)}) values ({", ".join(f"s.{c}" for c in COLUMNS)})"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    words = parser.parse_args()
    with sources(words.rows) as session:
        for table in ("merged", "replaced"):
            session.query(
                f"create table bench.{table} using delta tblproperties (delta.enableDeletionVectors = true) as {SQL}"
            )
        times: dict[str, list[float]] = {}
        for number in range(1, words.rounds + 4):
            found = one_round(session, words.rows, number)
            for what, seconds in found.items() if number > 3 else ():  # three to warm up
                times.setdefault(what, []).append(seconds)
        table_seconds = median(times["table"])
        for what, each in times.items():
            print(f"{what:45} {median(each):6.2f}s {median(each) / table_seconds:6.2f}x")


def one_round(session: Timed, rows: int, number: int) -> dict[str, float]:
    since, spark = version(session), session.spark
    change(session, rows, number)
    seconds = {"table": timed(lambda: session.query(f"create or replace table bench.t using delta as {SQL}"))[0]}
    read = SQL.replace(" from bench.orders", f", _change_type from table_changes('bench.orders', {since + 1})")
    seconds["the changed rows, from the feed"], feed = timed(lambda: spark.sql(read).collect())
    spark.createDataFrame(feed, spark.sql(read).schema).createOrReplaceTempView("feed")
    seconds["MERGE of these rows"], _ = timed(lambda: session.query(MERGE))
    gone = ", ".join(str(row.o_id) for row in feed if row._change_type in ("delete", "update_postimage"))
    came = "_change_type in ('insert', 'update_postimage')"
    seconds["or DELETE by their keys"], _ = timed(
        lambda: session.query(f"delete from bench.replaced where o_id in ({gone})")
    )
    insert = f"insert into bench.replaced select {', '.join(COLUMNS)} from feed where {came}"
    seconds["and INSERT"], _ = timed(lambda: session.query(insert))
    if session.bag("select * from bench.merged") != session.bag("select * from bench.replaced"):
        raise SystemExit("the two ways differ")
    return seconds


def version(session: Timed) -> int:
    return int(session.query("describe history bench.orders limit 1")[0]["version"])


if __name__ == "__main__":
    main()
