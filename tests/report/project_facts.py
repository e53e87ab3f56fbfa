"""Facts of projects for the tests of status and report."""

from __future__ import annotations

import json
from typing import Any

from spark_mv.maintenance.record import RunRecord, SourceVersion
from spark_mv.report.facts import AiUse, Evaluation, ModelFacts, ProjectFacts, RunRow

NOW = 1_770_000_000.0  # 2026-02-02 02:40:00 UTC
SQL = """select
    ticket_id,
    ai_analyze_sentiment(body) as sentiment,
    case when rand() < 0.8 then 'train' else 'test' end as split,
    current_timestamp() as seen_at
from desk.tickets
where created_at > current_date() - interval 30 days"""
HOSTILE = "</script><script>alert('x')</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}\x1b[31m\u202e"
CANDIDATES = json.dumps(
    [
        {"strategy": "NO_OP", "applies": False, "cost": None, "reasons": [{"code": "SOURCE_CHANGED", "sentence": "a source changed"}]},
        {"strategy": "ROW_BASED", "applies": True, "cost": 120.0, "reasons": []},
    ]
)  # fmt: skip


def record(**more: Any) -> RunRecord:
    given: dict[str, Any] = {"query": "q", "config": "c", "as_of": "2026-02-01 06:00:00.000000", "time_zone": "UTC"}
    sources = {"desk.tickets": SourceVersion(7, "2026-02-01 05:00:00")}
    return RunRecord(**{**given, "sources": sources, "target_rows": 232, **more})


def run(at: float = NOW - 3600, **more: Any) -> RunRow:
    given: dict[str, Any] = {
        "status": "success", "strategy": "ROW_BASED", "seconds": 2.5, "as_of": at, "invocation_id": f"i{at:.0f}", "candidates": CANDIDATES,
        "estimated_cost": 120.0, "statements": 5, "rows_inserted": 8, "rows_updated": 4, "rows_deleted": 9, "rows_evicted": 8,
        "values_kept": 220, "ai_calls": 16, "ai_errors": 0, "ai_reused": 240, "message": "MERGE +8 ~4 -9 (8 evicted), 16 AI calls",
    }  # fmt: skip
    return RunRow(at, **{**given, **more})


def model(name: str = "tickets", **more: Any) -> ModelFacts:
    given: dict[str, Any] = {
        "relation": f"analytics.{name}", "schema": "analytics", "unique_key": ("ticket_id",), "freeze": ("seen_at",), "sql": SQL,
        "exists": True, "version": 12, "record": record(), "recorded_at": "2026-02-01 06:00:10.0", "runs": (run(),),
        "reads": {"desk.tickets": "source"}, "path": "models/tickets.sql",
    }  # fmt: skip
    return ModelFacts(f"model.desk.{name}", name, **{**given, **more})


def evaluation(variant: str = "small", correct: int = 17, **more: Any) -> Evaluation:
    given: dict[str, Any] = {
        "call": "ai_classify(body, array('a', 'b'))", "model": variant, "model_version": "2", "judged_by": "kind", "n": 20, "correct": correct,
        "accuracy": correct / 20, "accuracy_low": 0.64, "accuracy_high": 0.948, "inputs": 10, "unanswered": 0, "cost": 0.05,
        "wrong": (("good", "bad", 2), ("bad", None, 1)), "compared": (("large", 0.85, 0, 3, 0.25),),
    }  # fmt: skip
    return Evaluation(NOW - 600, "e1", variant, **{**given, **more})


def project(*models: ModelFacts, **more: Any) -> ProjectFacts:
    use = AiUse(f"i{NOW - 3600:.0f}", "ai_analyze_sentiment", "small", "1", "ok", 16, 16, 900, 40, 0.0123, NOW - 3599)
    columns = {"desk.tickets": {"ticket_id": "bigint", "body": "string", "created_at": "timestamp"}}
    return ProjectFacts("desk", "dev", NOW, **{"models": models, "ai": (use,), "columns": columns, **more})
