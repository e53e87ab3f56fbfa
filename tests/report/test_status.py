"""`spark-mv status`: what each model's record and runs amount to."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))
from project_facts import HOSTILE, NOW, model, project, record, run

from spark_mv.cli import main
from spark_mv.report.condition import Condition, health
from spark_mv.report.facts import FactsError, from_json, run_row, to_json
from spark_mv.report.status import status_data
from spark_mv.report.terminal import print_status

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("facts", "condition"),
    [
        ({}, Condition.FRESH),
        ({"runs": (run(status="error", message="boom"), run(NOW - 9000))}, Condition.FAILED),
        ({"exists": False, "record": None, "runs": (run(status="error"),)}, Condition.FAILED),
        ({"exists": False, "record": None, "runs": ()}, Condition.NEVER_RUN),
        ({"exists": False, "record": None}, Condition.NEVER_RUN),
        ({"record": None}, Condition.NEVER_RUN),
        ({"runs": (run(ai_errors=2),)}, Condition.AI_ERRORS),
        ({"foreign_operation": "DELETE"}, Condition.FOREIGN),
        ({"record": record(next_change_at="2026-02-02 00:00:00.000000")}, Condition.DUE),
        ({"record": record(next_change_at="2026-02-03 00:00:00.000000")}, Condition.FRESH),
        ({"record": record(next_change_at="2026-02-02 00:00:00.000000", clock_solved=False)}, Condition.FRESH),
        ({"record": record(ai_pending=3)}, Condition.PENDING),
        ({"runs": ()}, Condition.FRESH),
    ],
)
def test_condition(facts: dict[str, Any], condition: Condition) -> None:
    found = health(model(**facts), NOW)
    assert found.condition is condition, found.sentence
    assert found.sentence


def test_last_success_without_a_history_is_the_commits_time() -> None:
    assert health(model(runs=()), NOW).succeeded_at == pytest.approx(1769925610.0)
    assert health(model(), NOW).succeeded_at == NOW - 3600


def test_what_needs_somebody_comes_first_and_decides_the_exit_status(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    file.write_text(to_json(project(model("a"), model("z", runs=(run(status="error", message="no table\nmore"),)))))
    found = CliRunner().invoke(main, ["status", "--from", str(file), "--format", "json"])
    assert found.exit_code == 1
    data = json.loads(found.output)
    assert [(m["model"], m["condition"]) for m in data["models"]] == [("z", "failed"), ("a", "up to date")]
    text = CliRunner().invoke(main, ["status", "--from", str(file)])
    assert text.exit_code == 1 and "z: no table" in text.output and "\x1b" not in text.output
    short = tmp_path / "short.html"
    assert CliRunner().invoke(main, ["report", "--from", str(file), "--runs", "1", "-o", str(short)]).exit_code == 0
    file.write_text(to_json(project(model("a"))))
    assert CliRunner().invoke(main, ["status", "--from", str(file)]).exit_code == 0
    file.write_text("{}")
    assert CliRunner().invoke(main, ["status", "--from", str(file)]).exit_code == 2


def test_colours_only_on_a_terminal_and_no_control_characters() -> None:
    hostile = model(HOSTILE, runs=(run(status="error", message=HOSTILE),))
    plain, coloured = io.StringIO(), io.StringIO()
    print_status(project(hostile), NOW, Console(file=plain, width=200))
    print_status(project(hostile), NOW, Console(file=coloured, width=200, force_terminal=True))
    assert "\x1b" not in plain.getvalue() and "\x1b" in coloured.getvalue()
    assert "\x1b[31m\u202e" not in coloured.getvalue() and "\u202e" not in plain.getvalue()


def test_what_a_terminal_has_no_room_for_is_left_out_or_folded() -> None:
    long = model("a_model_whose_name_is_long_enough_to_be_in_the_way_of_others")
    pages = {}
    for width in (60, 80, 400):
        out = io.StringIO()
        print_status(project(long), NOW, Console(file=out, width=width))
        pages[width] = out.getvalue()
    assert "…" not in "".join(pages.values())
    assert "strategy" in pages[400] and "strategy" not in pages[80]
    assert all("next change" in page and "up to date" in page for page in pages.values())


def test_an_error_is_told_with_what_it_announces() -> None:
    out = io.StringIO()
    said = "Compilation Error in model m (models/m.sql)\n  [CONFIG] model m needs a change:\n  - freeze_wher: there is no such setting"
    print_status(project(model(runs=(run(status="error", message=said),))), NOW, Console(file=out, width=200))
    assert "[CONFIG] model m needs a change: freeze_wher: there is no such setting" in out.getvalue()


def test_nothing_to_show() -> None:
    out = io.StringIO()
    print_status(project(), NOW, Console(file=out, width=200))
    assert "no model" in out.getvalue()
    assert status_data(project(), NOW)["models"] == []


def test_facts_survive_json() -> None:
    facts = project(model(), model("other", record=None, runs=()), notes=("x",))
    assert from_json(to_json(facts)) == facts
    for text in ("", "[]", "{}", '{"format_version": 99}', '{"format_version": 1}'):
        with pytest.raises(FactsError):
            from_json(text)


def test_a_row_of_an_earlier_release_lacks_columns() -> None:
    row = {"started_micros": 5_000_000, "as_of_micros": None, "status": "success", "ai_calls": None, "unknown": 1}
    found = run_row(row)
    assert (found.started_at, found.as_of, found.ai_reused, found.ai_calls, found.message) == (
        5.0,
        None,
        None,
        None,
        "",
    )
