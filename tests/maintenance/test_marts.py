"""The marts of an ordinary dbt project: the strategy that a run takes after an ordinary day, by `marts.yml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from plan_cases import plan_of

from spark_mv.query.analysis.analyze import analyze

pytestmark = pytest.mark.unit

SPEC = yaml.safe_load((Path(__file__).parent / "marts.yml").read_text(encoding="utf-8"))
ROWS = {name: columns["rows"] for name, columns in SPEC["tables"].items()}
VIEWS = SPEC["views"]
SCHEMAS = {
    **{name: {c: t for c, t in columns.items() if c != "rows"} for name, columns in SPEC["tables"].items()},
    **{name: view["columns"] for name, view in VIEWS.items()},
}
AFTER_A_DAY = {"last": "2026-01-31 12:00:00", "record": {"next_change_at": "2026-02-01 00:00:00.000000"}}


def tables_of(sql: str) -> list[str]:
    """The tables and views that a query reads, and those that the views read."""
    names = [table.name for table in analyze(sql, schemas=SCHEMAS).tables]
    return [*names, *(below for name in names if name in VIEWS for below in tables_of(VIEWS[name]["sql"]))]


def case_of(mart: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    names = list(dict.fromkeys(tables_of(mart["sql"])))
    views = {name: {"view_text": VIEWS[name]["sql"], "version": None} for name in names if name in VIEWS}
    return {
        "sql": mart["sql"],
        "unique_key": mart["key"],
        "columns": mart["columns"],
        "tables": SCHEMAS,
        "rows": mart["rows"],
        "source_rows": {name: ROWS[name] for name in names if name in ROWS},
        "sources": {**{name: {} for name in names}, **views},
        "changed": {name: {**how, "table_rows": ROWS[name]} for name, how in changed.items() if name in names},
        **(AFTER_A_DAY if mart.get("clock") else {}),
    }


@pytest.mark.parametrize("name", SPEC["marts"])
def test_what_a_mart_takes(name: str) -> None:
    mart = SPEC["marts"][name]
    found = {}
    for when, changed in {"a day": mart.get("changed", SPEC["changed"]), **mart.get("when", {})}.items():
        plan = plan_of(case_of(mart, changed))
        found[when] = " ".join([plan.strategy, *(reason.code for reason in plan.reasons[:1])])
    assert found == mart["takes"]
