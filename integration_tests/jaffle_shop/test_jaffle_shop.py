"""A project of dbt's classic shape, built and documented twice, each command in a process of its own, the second time from a fresh
checkout: what the project has is the warehouse."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parent / "project"

SEEDS = {"raw_customers", "raw_orders", "raw_payments"}
VIEWS = {"stg_customers", "stg_orders", "stg_payments"}
TABLES = {"customers", "orders", "mailing_groups"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return checked_out(tmp_path / "jaffle_shop")


def checked_out(folder: Path) -> Path:
    """The project's files in the folder, and of what was there before, the warehouse alone."""
    for path in folder.iterdir() if folder.exists() else ():
        if path.name != "spark-warehouse":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    ignored = shutil.ignore_patterns("logs", "target", "spark-warehouse")
    shutil.copytree(PROJECT, folder, ignore=ignored, dirs_exist_ok=True)
    return folder


def dbt(folder: Path, *command: str) -> str:
    """The output of one dbt command, as a user would type it in the project's folder."""
    program = Path(sys.executable).with_name("dbt")
    answer = subprocess.run(
        [str(program), "--no-use-colors", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / "target" / name).read_text(encoding="utf-8"))


def statuses(folder: Path) -> Counter[tuple[str, str]]:
    results = read(folder, "run_results.json")["results"]
    return Counter((result["unique_id"].split(".")[0], result["status"]) for result in results)


def shown(folder: Path, sql: str) -> list[dict[str, Any]]:
    text = dbt(folder, "--quiet", "show", "--limit", "-1", "--output", "json", "--inline", sql)
    return list(json.loads(text)["show"])


def total_paid() -> float:
    with (PROJECT / "seeds" / "raw_payments.csv").open(encoding="utf-8") as file:
        return sum(int(row["amount"]) for row in csv.DictReader(file)) / 100


def test_built_and_documented_twice_from_processes_of_their_own(folder: Path) -> None:
    catalogs = []
    responses = []
    for _ in range(2):
        checked_out(folder)
        dbt(folder, "build")
        assert statuses(folder) == {("seed", "success"): 3, ("model", "success"): 6, ("test", "pass"): 20}
        by_model = {r["unique_id"]: r["adapter_response"] for r in read(folder, "run_results.json")["results"]}
        responses.append(by_model["model.jaffle_shop.mailing_groups"])
        dbt(folder, "docs", "generate")
        catalogs.append(read(folder, "catalog.json"))

    # the seeds were loaded anew, so the second run had to look; nobody was drawn again
    assert responses[0]["rows_inserted"] > 0
    assert responses[1].get("rows_inserted", 0) == responses[1].get("rows_updated", 0) == 0

    for catalog in catalogs:
        assert catalog["errors"] is None
        found = {key.split(".")[-1]: entry for key, entry in catalog["nodes"].items()}
        assert set(found) == SEEDS | VIEWS | TABLES
        assert {name for name, entry in found.items() if entry["metadata"]["type"] == "view"} == VIEWS
        assert found["orders"]["metadata"]["comment"] == "Orders with what was paid for them, by method."
        amount = found["orders"]["columns"]["amount"]
        assert amount["comment"] == "All payments of the order together."
        assert amount["type"].startswith("decimal(") and amount["index"] == len(found["orders"]["columns"])
        assert found["stg_orders"]["columns"]["status"]["comment"].startswith("How far the order is")
        assert found["raw_orders"]["columns"]["order_date"]["type"] == "date"
        assert list(found["mailing_groups"]["columns"]) == ["customer_id", "mailing", "joined_at"]
    assert catalogs[0]["nodes"].keys() == catalogs[1]["nodes"].keys()

    (row,) = shown(
        folder,
        "select count(*) as customers, sum(number_of_orders) as orders, cast(sum(lifetime_value) as double) as paid, "
        "(select count(*) from {{ ref('mailing_groups') }}) as mailed, "
        "count(first_order) as ordering, "
        "max(case when customer_id = 4 then last_name end) as with_quote from {{ ref('customers') }}",
    )
    assert (row["customers"], row["orders"], row["paid"]) == (20, 40, pytest.approx(total_paid()))
    assert row["mailed"] == row["ordering"]
    assert row["with_quote"] == "O'Hara"
