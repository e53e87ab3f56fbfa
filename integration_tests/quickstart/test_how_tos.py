"""The models of the documentation, run twice: each runs as it is written, and what its page claims of the second run is so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from blocks import Block, blocks
from dbt.cli.main import dbtRunner

SCHEMA = "how_tos"
SEEDS = {
    "tickets": "ticket_id,body,created_at\n1,The printer is on fire,2026-02-27\n2,I love it,2026-02-28\n3,Where is my refund?,2026-02-28\n4,Open the door,2026-03-01\n",
    "orders": "order_id,customer_id,amount_cents,cents,ordered_at,ordered_on,status\n"
    + "".join(
        f"{i},{i % 7},{i},{i},2026-02-{1 + i % 28:02d} 10:00:00,2026-02-{1 + i % 28:02d},{'open' if i % 3 else 'closed'}\n"
        for i in range(60)
    ),
    "customers": "customer_id,segment\n" + "".join(f"{i},s{i % 2}\n" for i in range(7)),
    "order_versions": "order_id,status,amount_cents,updated_at,load_id\n"
    + "".join(f"{i % 20},new,{i},2026-02-20,{i}\n" for i in range(40)),
    "events": "event_id,happened_at,payload\n"
    + "".join(f"{i},2026-02-{20 + i % 9} 08:00:00,p{i}\n" for i in range(40)),
}
PROFILE = {
    "type": "spark_mv",
    "method": "session",
    "schema": SCHEMA,
    "run_history": False,
    "choose_by": "rows",
    "second_reading": False,
    "ai": {"provider": "scripted", "keep_requests": True, "price_per_1k_input_tokens": 0.0002},
}


def name_of(block: Block) -> str:
    return f"{Path(block.page).stem.replace('-', '_').lower()}_{block.line}"


MODELS = {
    name_of(block): block
    for block in blocks("sql")
    if not block.check.startswith(("refused", "plain dbt")) and not block.title
}
PYTHON = {name_of(block): block for block in blocks("python")}
CLAIMED = {name: block.check.split()[1] for name, block in MODELS.items() if block.check.startswith("strategy ")}


@pytest.fixture
def folder(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with every model of the documentation, over small tables; models with a claim may not recompute."""
    settled = {name: {"+refresh": "incremental"} for name in CLAIMED}
    sources = [{"name": "desk", "schema": SCHEMA, "tables": [{"name": "tickets"}]}]
    files = {
        "dbt_project.yml": yaml.safe_dump({"name": "site", "profile": "site", "models": {"site": settled}}),
        "profiles.yml": yaml.safe_dump({"site": {"target": "dev", "outputs": {"dev": PROFILE}}}),
        "models/sources.yml": yaml.safe_dump({"sources": sources}),
        **{f"seeds/{name}.csv": text for name, text in SEEDS.items()},
        **{f"models/{name}.sql": block.text for name, block in MODELS.items()},
        **{f"models/{name}.py": block.text for name, block in PYTHON.items()},
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    spark.sql(f"drop schema if exists {SCHEMA} cascade")
    yield tmp_path
    spark.sql(f"drop schema if exists {SCHEMA} cascade")


def dbt(folder: Path, *words: str, as_of: str = "") -> dict[str, dict[str, Any]]:
    """The adapter response of each node."""
    variables = ["--vars", json.dumps({"as_of": as_of})] if as_of else []
    result = dbtRunner().invoke(
        [*words, *variables, "--quiet", "--project-dir", str(folder), "--profiles-dir", str(folder)]
    )
    failed = {
        one.node.name: one.message
        for one in getattr(result.result, "results", ())
        if one.status not in ("success", "pass")
    }
    assert result.success, (words, failed, result.exception)
    return {
        one.node.name: dict(one.adapter_response)
        for one in getattr(result.result, "results", ())
        if getattr(one, "node", None)
    }


def test_every_model_of_the_documentation_runs(folder: Path, spark: Any) -> None:
    dbt(folder, "seed")
    first = dbt(folder, "run", as_of="2026-03-01 06:00:00")
    assert first.keys() == MODELS.keys() | PYTHON.keys() and len(PYTHON) == 1
    (scored,) = PYTHON
    draws = f"select ticket_id, score, split from {SCHEMA}.{scored} where ticket_id <> 3 order by ticket_id"
    drawn = spark.sql(draws).collect()
    assert len(drawn) == 3

    spark.sql(f"insert into {SCHEMA}.events values (100, timestamp'2026-02-25 09:00:00', 'late')")
    spark.sql(f"insert into {SCHEMA}.order_versions values (3, 'paid', 7, date'2026-02-27', 100)")
    order = "60, 3, 500, 500, timestamp'2026-02-28 12:00:00', date'2026-02-28', 'open'"
    spark.sql(f"insert into {SCHEMA}.orders values ({order})")
    spark.sql(f"delete from {SCHEMA}.tickets where ticket_id = 3")
    second = dbt(folder, "run", as_of="2026-03-02 06:00:00")
    assert {name: second[name]["strategy"] for name in CLAIMED} == CLAIMED
    assert spark.sql(draws).collect() == drawn and spark.table(f"{SCHEMA}.{scored}").count() == 3

    late = next(name for name, block in MODELS.items() if "late-rows" in block.page)
    assert spark.table(f"{SCHEMA}.{late}").where("event_id = 100").count() == 1
    newest = next(name for name, block in MODELS.items() if "deduplicate" in block.page)
    assert [row["status"] for row in spark.table(f"{SCHEMA}.{newest}").where("order_id = 3").collect()] == ["paid"]
    for name in (name for name, block in MODELS.items() if "tickets" in block.text):
        assert spark.table(f"{SCHEMA}.{name}").where("ticket_id = 3").count() == 0, name
        assert second[name]["ai_calls"] == 0, name

    # erasing a person: once no row refers to an answer, it can be removed
    asked = f"select count(*) from {SCHEMA}.ai_results where request like '%refund%'"
    assert spark.sql(asked).first()[0] > 0
    dbt(folder, "run-operation", "prune_ai_results", "--args", "{older_than_days: 0}")
    assert spark.sql(asked).first()[0] == 0
