"""Four days in the life of a table: what happens upstream, what dbt does, and whether it did what it promises.

The claims are checked against the data, not against what dbt says: the rows against a plain query at that day's date,
the kept values against what the table held before, the AI calls against the texts that were never seen before.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from reviews import Review

SOURCE, TARGET = "quickstart_raw.drug_reviews", "quickstart.review_triage"
DAY_1 = dt.date(2026, 3, 1)
FIRST_REVIEW, LAST_REVIEW = dt.date(2026, 1, 20), DAY_1  # those of DAY_1 arrive on day 2
WINDOW = dt.timedelta(days=30)
KEPT = ("split", "row_id")
ASKED = ("sentiment", "topic")


@dataclass(frozen=True)
class Played:
    """One run of dbt and what was found afterwards. `failures` is empty where all claims hold."""

    name: str
    title: str
    as_of: str
    line: str
    response: dict[str, Any]
    rows: int
    stayed: int
    rewritten: int
    failures: tuple[str, ...] = ()


@dataclass
class Upstream:
    """The source table, as some other system writes it."""

    spark: Any
    reviews: list[Review]
    format: str = "delta"
    seen: set[str] = field(default_factory=set)

    def day_1(self) -> str:
        for schema in {SOURCE.split(".")[0], TARGET.split(".")[0]}:
            self.spark.sql(f"create schema if not exists {schema}")
        old = [r for r in self.reviews if r.reviewed_on < DAY_1]
        self._append(old)
        return f"First load. The source holds {len(old)} reviews, of {old[0].reviewed_on} to {old[-1].reviewed_on}."

    def day_2(self) -> str:
        new = [r for r in self.reviews if r.reviewed_on == DAY_1]
        self._append(new)
        return f"New rows: the batch of {DAY_1} arrived, {len(new)} reviews."

    def day_3(self) -> str:
        recent = [r for r in self.reviews if r.reviewed_on >= DAY_1 - dt.timedelta(days=14)]
        read, rewritten, withdrawn = recent[0:3], recent[3:5], recent[5]
        self.spark.sql(f"update {SOURCE} set useful_count = useful_count + 1 where review_id in ({_ids(read)})")
        self.spark.sql(
            f"update {SOURCE} set review = concat(review, ' Update: it stopped working after a month, I feel awful.') "
            f"where review_id in ({_ids(rewritten)})"
        )
        self.spark.sql(f"delete from {SOURCE} where review_id = {withdrawn.review_id}")
        return (
            f"Edited rows: {len(read)} reviews were useful to one more reader, {len(rewritten)} got a new text. "
            "A deleted row."
        )

    def day_4(self) -> str:
        return "No input at all. Only the clock moved."

    def nothing(self) -> str:
        return "Nothing happened."

    def wanted(self, day: dt.date) -> dict[int, tuple[Any, ...]]:
        """What a plain query has in the window on that day, by id."""
        rows = self.spark.sql(
            f"select review_id, drug, reviewed_on, useful_count, review from {SOURCE} "
            f"where reviewed_on > date'{day - WINDOW}'"
        ).collect()
        return {row[0]: tuple(row) for row in rows}

    def _append(self, reviews: list[Review]) -> None:
        rows = [(r.review_id, r.drug, r.reviewed_on, r.useful_count, r.review) for r in reviews]
        schema = "review_id bigint, drug string, reviewed_on date, useful_count int, review string"
        self.spark.createDataFrame(rows, schema).createOrReplaceTempView("arrived")
        self.spark.sql(f"create table if not exists {SOURCE} ({schema}) using {self.format}")
        self.spark.sql(f"insert into {SOURCE} select * from arrived")


class RunError(Exception):
    """`dbt run` failed; the text is dbt's."""


class Dbt:
    """`dbt run` in this process, of the profile's target. Remembers the line that dbt prints for the model; `say` hears of progress."""

    def __init__(self, folder: Path, target: str, say: Callable[[str], None]) -> None:
        self.folder, self.target, self.say, self.line = folder, target, say, ""

    def run(self, as_of: str, *flags: str) -> dict[str, Any]:
        """The model's adapter response. Raises RunError if the run fails."""
        command = [
            "run",
            "--quiet",
            "--no-use-colors",
            "--printer-width",
            "60",
            "--vars",
            json.dumps({"as_of": as_of, "allow_future_as_of": True}),
        ]
        folders = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder), "--target", self.target]
        self.line = ""
        result = dbtRunner(callbacks=[self._hear]).invoke([*command, *folders, *flags])
        if result.exception:
            raise RunError(str(result.exception))
        (node,) = result.result
        if not result.success:
            raise RunError(node.message)
        return dict(node.adapter_response)

    def _hear(self, event: Any) -> None:
        if event.info.name == "LogModelResult":
            self.line = event.info.msg
        elif event.info.name == "AdapterEventInfo" and "AI" in event.info.msg:
            self.say(event.info.msg.removeprefix("Spark adapter: "))


def play(
    upstream: Upstream, folder: Path, say: Callable[[str], None], show: Callable[[Played], None] = lambda played: None
) -> list[Played]:
    """Play the days, and two encores on the last of them. `show` is called after each run."""
    dbt, played = Dbt(folder, "dev" if upstream.format == "delta" else upstream.format, say), []
    days: list[tuple[str, int, str, Callable[[], str], tuple[str, ...]]] = [
        ("day 1", 0, "06:00:00", upstream.day_1, ()),
        ("day 2", 1, "06:00:00", upstream.day_2, ()),
        ("day 3", 2, "06:00:00", upstream.day_3, ()),
        ("day 4", 3, "06:00:00", upstream.day_4, ()),
        ("day 4, noon", 3, "12:00:00", upstream.nothing, ()),
        ("day 4, --full-refresh", 3, "12:00:00", upstream.nothing, ("--full-refresh",)),
    ]
    for name, offset, time, happens, flags in days:
        day = DAY_1 + dt.timedelta(days=offset)
        title = happens()
        say(f"{name}: dbt run as of {day} {time} …")
        before = _table(upstream.spark)
        response = dbt.run(f"{day} {time}", *flags)
        after = _table(upstream.spark)
        wanted = upstream.wanted(day)
        failures = [*_check_rows(wanted, after), *_check_kept(before, after), *_check_counts(before, after, response)]
        failures += _check_calls(upstream, wanted, response)
        both = before.keys() & after.keys()
        rewritten = sum(before[key]["review"] != after[key]["review"] for key in both)
        result = Played(
            name, title, f"{day} {time}", dbt.line, response, len(after), len(both), rewritten, tuple(failures)
        )
        played.append(result)
        show(result)
    return played


def _check_rows(wanted: dict[int, tuple[Any, ...]], after: dict[int, dict[str, Any]]) -> list[str]:
    """The table holds exactly what the query gives on that day; every row has a value in every column."""
    got = {
        key: (key, row["drug"], row["reviewed_on"], row["useful_count"], row["review"]) for key, row in after.items()
    }
    found = [] if got == wanted else [f"the table's {len(got)} rows are not the {len(wanted)} that the query gives"]
    empty = [
        f"review {key} has no {name}" for key, row in after.items() for name in (*KEPT, *ASKED) if row[name] is None
    ]
    return found + empty[:3]


def _check_kept(before: dict[int, dict[str, Any]], after: dict[int, dict[str, Any]]) -> list[str]:
    """Draws stay for good, answers as long as the text stays."""
    lost = []
    for key in before.keys() & after.keys():
        names = KEPT if before[key]["review"] != after[key]["review"] else (*KEPT, *ASKED)
        lost += [f"review {key}: {name} changed" for name in names if before[key][name] != after[key][name]]
    return lost[:3]


def _check_counts(
    before: dict[int, dict[str, Any]], after: dict[int, dict[str, Any]], response: dict[str, Any]
) -> list[str]:
    """dbt's figures are those of the two states of the table."""
    data = ("drug", "reviewed_on", "useful_count", "review")
    both = before.keys() & after.keys()
    true = {
        "rows_inserted": len(after.keys() - before.keys()),
        "rows_updated": sum(any(before[key][name] != after[key][name] for name in data) for key in both),
        "rows_deleted": len(before.keys() - after.keys()),
    }
    return [f"{name} is {response[name]}, true is {count}" for name, count in true.items() if response[name] != count]


def _check_calls(upstream: Upstream, wanted: dict[int, tuple[Any, ...]], response: dict[str, Any]) -> list[str]:
    """Each column asks once for each text that was never in the window before, and never again."""
    texts = {row[4] for row in wanted.values()}
    new = len(texts - upstream.seen) * len(ASKED)
    upstream.seen |= texts
    paid = upstream.spark.sql(f"select count(*) from {TARGET.split('.')[0]}.ai_results").first()[0]
    found = (
        [] if response["ai_calls"] == new else [f"{response['ai_calls']} AI calls were made for {new} new questions"]
    )
    if paid != len(upstream.seen) * len(ASKED):
        found.append(f"{paid} answers are kept for {len(upstream.seen) * len(ASKED)} questions ever asked")
    return found


def _table(spark: Any) -> dict[int, dict[str, Any]]:
    if not spark.catalog.tableExists(TARGET):
        return {}
    return {row["review_id"]: row.asDict() for row in spark.table(TARGET).collect()}


def _ids(reviews: list[Review]) -> str:
    return ", ".join(str(r.review_id) for r in reviews)
