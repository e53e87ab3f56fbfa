"""dbt's own ideas of what has changed, beside models that change with the clock alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner

from spark_mv.maintenance.config import read_config
from spark_mv.spark.run.config_words import declared_words

pytestmark = pytest.mark.unit

_WINDOW = """{{ config(materialized='nondeterministic_mv', unique_key='id', state={'evaluate_volatile_sql': true}) }}
select id, d from {{ ref('people') }} where d > current_date() - interval 3 days"""
FILES = {
    "models/window.sql": _WINDOW,
    "models/plain.sql": "select 1 as id",
    "seeds/people.csv": "id,d\n1,2026-01-01\n",
    "dbt_project.yml": "name: probe\nversion: '1.0'\nprofile: probe\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": json.dumps(
        {"probe": {"target": "t", "outputs": {"t": {"type": "spark_mv", "method": "session", "schema": "s"}}}}
    ),
}


def test_words_of_dbt_state_are_no_unknown_words() -> None:
    words = {"unique_key": "id", "state": {"evaluate_volatile_sql": True, "lag_tolerance": "4 hours"}}
    assert read_config("m", words, declared_words()).unique_key == ("id",)


def test_the_clock_is_no_modification(tmp_path: Path) -> None:
    """`state:modified` compares texts, so a job that selects by it alone would never move a window; the page says what to select beside it."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    def dbt(*words: str) -> Any:
        here = str(tmp_path)
        done = dbtRunner().invoke(["--quiet", *words, "--project-dir", here, "--profiles-dir", here])
        assert done.success, done.exception
        return done.result

    def selected(*words: str) -> list[str]:
        state = ("--state", str(tmp_path / "before"))
        return list(dbt("list", "--resource-type", "model", "--output", "name", *state, "--select", *words))

    dbt("parse", "--target-path", "before")
    assert selected("state:modified+") == []
    assert selected("state:modified+", "config.materialized:nondeterministic_mv") == ["window"]
    (tmp_path / "models" / "plain.sql").write_text("select 2 as id", encoding="utf-8")
    assert sorted(selected("state:modified+", "config.materialized:nondeterministic_mv")) == ["plain", "window"]
    (tmp_path / "models" / "window.sql").write_text(_WINDOW.replace("3 days", "4 days"), encoding="utf-8")
    assert "window" in selected("state:modified")
