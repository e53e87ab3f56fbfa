"""The quickstart's project and story, as a new user has them, on reviews made up here."""

from __future__ import annotations

import datetime as dt
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "quickstart"
SCHEMAS = ("quickstart", "quickstart_raw")
TEXTS = (
    "My skin is clear and soft again, I love it. Week {}.",
    "The pain got worse and I felt horrible. Week {}.",
    "I sleep eight hours a night now, great. Week {}.",
    "I took it in the morning. Week {}.",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example as a user would copy it, without what a run left there."""
    ignored = shutil.ignore_patterns(".data", "logs", "target", "spark-warehouse", "__pycache__")
    shutil.copytree(EXAMPLE, tmp_path / "quickstart", ignore=ignored)
    return tmp_path / "quickstart"


@pytest.fixture
def story(folder: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(folder)

    def clean() -> None:
        for schema in SCHEMAS:
            spark.sql(f"drop schema if exists {schema} cascade")
        for name in ("story", "reviews", "run"):
            sys.modules.pop(name, None)

    clean()
    import story

    yield story
    clean()


def made_up(days: int) -> list[Any]:
    """A review a day; every tenth has the text of the one before, so that one question answers both."""
    from reviews import Review

    start = dt.date(2020, 1, 1)
    return [
        Review(
            review_id=100 + i,
            drug=f"drug {i % 3}",
            reviewed_on=start + dt.timedelta(days=7 * i),
            useful_count=i,
            review=TEXTS[(i - (i % 10 == 9)) % 4].format(i - (i % 10 == 9)),
        )
        for i in range(days)
    ]


def test_the_four_days(folder: Path, story: ModuleType, spark: Any) -> None:
    from reviews import laid_out
    from run import describe, summary

    days = (story.LAST_REVIEW - story.FIRST_REVIEW).days + 1
    reviews = laid_out(made_up(days + 7), story.FIRST_REVIEW, story.LAST_REVIEW, per_day=1)
    assert (reviews[0].reviewed_on, reviews[-1].reviewed_on, len(reviews)) == (story.FIRST_REVIEW, story.DAY_1, days)

    said: list[str] = []
    snapshots: list[dict[int, dict[str, Any]]] = []

    def show(played: Any) -> None:
        snapshots.append({r["review_id"]: r.asDict() for r in spark.table("quickstart.review_triage").collect()})

    played = story.play(story.Upstream(spark, reviews), folder, said.append, show)

    assert [failure for one in played for failure in one.failures] == []
    figures = ("rows_inserted", "rows_updated", "rows_deleted", "rows_evicted")
    assert [tuple(one.response[name] for name in figures) for one in played] == [
        (29, 0, 0, 0),
        (1, 0, 1, 1),
        (0, 5, 2, 1),
        (0, 0, 1, 1),
        (0, 0, 0, 0),
        (0, 0, 0, 0),
    ]
    assert [one.response["strategy"] == "NO_OP" for one in played] == [False, False, False, False, True, False]
    assert [one.rows for one in played] == [29, 29, 27, 26, 26, 26]

    # two questions a text: those of day 1 and of the new row, then only those of the two new texts
    in_window = {r.review for r in reviews if dt.date(2026, 1, 30) < r.reviewed_on < story.DAY_1}
    assert len(in_window) < 29
    new = {r.review for r in reviews if r.reviewed_on == story.DAY_1} - in_window
    assert [one.response["ai_calls"] for one in played] == [2 * len(in_window), 2 * len(new), 4, 0, 0, 0]

    # kept values, looked at without the story's own checks
    first, last = snapshots[0], snapshots[-1]
    edited = {key for key in first.keys() & last.keys() if first[key]["review"] != last[key]["review"]}
    assert len(edited) == 2
    for key in first.keys() & last.keys():
        same = ("split", "row_id") if key in edited else ("split", "row_id", "sentiment", "topic")
        assert [first[key][name] for name in same] == [last[key][name] for name in same]
    assert len({row["row_id"] for row in first.values()}) == 29
    assert {row["split"] for row in first.values()} <= {"train", "test"}
    assert snapshots[3] == snapshots[4] == snapshots[5]
    by_text = {row["review"]: row for row in first.values()}
    assert {by_text[t]["sentiment"] for t in by_text if "horrible" in t} == {"negative"}
    assert {by_text[t]["topic"] for t in by_text if "skin" in t} == {"skin"}

    # what the user reads
    lines = [line for one in played for line in describe(one)] + summary(played)
    assert max(map(len, lines)) <= 100
    assert any("-1 (1 evicted), 26 kept in" in line for line in lines)
    assert any("[NO_OP no source changed; the next row enters or leaves at" in line for line in lines)
    assert not any("NOT TRUE" in line for line in lines)


def test_a_wrong_table_is_found_out(story: ModuleType) -> None:
    """The checks of the story are no decoration."""
    before = {1: {"review": "a", "split": "train", "row_id": "x", "sentiment": "positive", "topic": "skin"}}
    redrawn = {1: {**before[1], "row_id": "y"}}
    assert story._check_kept(before, redrawn) == ["review 1: row_id changed"]
    assert story._check_kept(before, {1: {**before[1], "review": "b", "topic": "pain"}}) == []
    row = {**before[1], "drug": "d", "reviewed_on": None, "useful_count": 1}
    assert story._check_rows({1: (1, "d", None, 1, "a")}, {1: row}) == []
    assert story._check_rows({}, {1: row})
    assert story._check_rows({1: (1, "d", None, 1, "a")}, {1: {**row, "topic": None}}) == ["review 1 has no topic"]
    counts = {"rows_inserted": 0, "rows_updated": 0, "rows_deleted": 0}
    assert story._check_counts({}, {1: row}, counts) == ["rows_inserted is 0, true is 1"]
