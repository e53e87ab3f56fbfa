"""What a run sends does not grow with its tables: the bounds that docs/how-to/clusters.md names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from plan_cases import plan_of

from spark_mv.maintenance.steps.rewrite_rows import FEW_KEYS, listable

pytestmark = pytest.mark.unit

CASES: Mapping[str, dict[str, Any]] = {
    "rows": {
        "sql": "select id, x, rand() as r from t where x > 0",
        "columns": {"id": "bigint", "x": "int", "r": "double"},
    },
    "window": {
        "sql": "select id, x, ts from t where ts > current_timestamp() - interval 30 days",
        "columns": {"id": "bigint", "x": "int", "ts": "timestamp"},
        "as_of": "2026-02-01 13:00:00",
        "record": {"next_change_at": "2026-02-01 12:30:00.000000"},
    },
    "join": {
        "sql": "select t.id, t.x, u.y from t join u on u.k = t.k",
        "columns": {"id": "bigint", "x": "int", "y": "double"},
    },
    "groups": {
        "sql": "select k, count(*) as n, sum(x) as s from t group by k",
        "unique_key": ["k"],
        "columns": {"k": "int", "n": "bigint", "s": "bigint"},
    },
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan_is_as_long_for_a_trillion_rows(name: str) -> None:
    def sent(rows: int, changed: int) -> tuple[str, list[tuple[str, int]], int]:
        plan = plan_of({**CASES[name], "rows": rows, "changed": {"t": {"rows": changed, "table_rows": rows}}})
        assert plan.record is not None
        texts = [(step.kind, len("".join(v for v in step.args.values() if isinstance(v, str)))) for step in plan.steps]
        return plan.strategy, texts, len(plan.record.to_json())

    strategy, steps, record = sent(10**7, 10**3)
    for rows, changed in ((10**12, 10**3), (10**12, 10**9)):
        large = sent(rows, changed)
        assert large[:2] == (strategy, steps)
        assert large[2] < record + 100  # longer numbers
    assert record < 2_000


def test_keys_are_listed_up_to_a_number() -> None:
    assert listable(("id",), FEW_KEYS) and not listable(("id",), FEW_KEYS + 1)
