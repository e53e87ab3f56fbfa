"""What the planner would send for tables up to 10^12 rows and for 1,000 models, without Spark: `python benchmarks/scale.py`.

Nothing is simulated of the engine: the plans are those that `decide` gives for facts that say how many rows there are and how many
changed. What is simulated are the files of a table, of which Spark reads those whose range of keys fits a statement's condition.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import sqlglot
from sqlglot.tokens import TokenType

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "maintenance"))

from plan_cases import plan_of

from spark_mv.maintenance.key_bound import bound_text
from spark_mv.maintenance.key_range import KeyRange
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.steps.rewrite_rows import FEW_KEYS, Rewrite, RowCounts, rewrite_of

ROWS_PER_FILE = 1_000_000
_ROW = {"columns": {"id": "bigint", "x": "int"}}
_WINDOW = {"columns": {"id": "bigint", "x": "int", "ts": "timestamp"}, "as_of": "2026-02-01 13:00:00"}
_MOVED = {"record": {"next_change_at": "2026-02-01 12:30:00.000000"}}
SHAPES: Mapping[str, dict[str, Any]] = {
    "rows, new ones": {"sql": "select id, x, rand() as r from t where x > 0", "columns": {"id": "bigint", "x": "int", "r": "double"}, "inserts": True},
    "rows, edited ones": {"sql": "select id, x from t where x > 0", **_ROW},
    "a window that moved": {"sql": "select id, x, ts from t where ts > current_timestamp() - interval 30 days", **_WINDOW, **_MOVED},
    "a join": {"sql": "select t.id, t.x, u.y from t join u on u.k = t.k", "columns": {"id": "bigint", "x": "int", "y": "double"}},
    "groups": {"sql": "select k, count(*) as n, sum(x) as s from t group by k", "unique_key": ["k"], "columns": {"k": "int", "n": "bigint", "s": "bigint"}},
    "windows per key": {"sql": "select id, x, sum(x) over (partition by k order by id) as s from t", "columns": {"id": "bigint", "x": "int", "s": "bigint"}},
}  # fmt: skip


def plan(shape: str, rows: int, changed: int) -> Plan:
    """As a run decides it where `changed` rows of a source of `rows` are new or edited."""
    case = dict(SHAPES[shape])
    what: dict[str, Any] = {"rows": changed, "table_rows": rows}
    if case.pop("inserts", False):
        what["inserts"] = True
    return plan_of({**case, "rows": rows, "changed": {"t": what}})


def texts(value: Any) -> Iterator[str]:
    """All texts in a step's arguments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from texts(one)


def literals(text: str) -> int:
    return sum(
        token.token_type in (TokenType.NUMBER, TokenType.STRING) for token in sqlglot.tokenize(text, read="spark")
    )


def plans() -> None:
    print("| shape | rows | changed | strategy | steps | SQL, bytes | literals | record, bytes |")
    print("|---|---|---|---|---|---|---|---|")
    for shape in SHAPES:
        for rows, changed in ((10**6, 10**3), (10**9, 10**6), (10**12, 10**3), (10**12, 10**9)):
            found = plan(shape, rows, changed)
            sent = [text for step in found.steps for text in texts(step.args)]
            record = len(found.record.to_json()) if found.record else 0
            print(
                f"| {shape} | 10^{len(str(rows)) - 1} | 10^{len(str(changed)) - 1} | {found.strategy} | {len(found.steps)} | "
                f"{sum(map(len, sent)):,} | {sum(map(literals, sent))} | {record:,} |"
            )


def publishing(rows: int = 10**12) -> None:
    """How the files of a table of ascending keys are left out, one file a million keys."""
    files = rows // ROWS_PER_FILE
    print(f"\n{files:,} files of {ROWS_PER_FILE:,} rows, keys ascending by file:\n")
    print("| changed rows | where they lie | statement | literals | files that its condition lets through |")
    print("|---|---|---|---|---|")
    drawn = random.Random(1)
    for changed in (1_000, FEW_KEYS, FEW_KEYS + 1, 10**6):
        for where, low, high in (("the newest keys", rows - 10 * changed, rows), ("anywhere", 0, rows)):
            keys = sorted(drawn.randrange(low, high) for _ in range(changed))
            known = KeyRange(bound=bound_text(rows), floor=bound_text(0), lowest=keys[0], highest=keys[-1])
            way = rewrite_of(RowCounts(0, changed, 0, rows), known, ("id",), True)
            in_range = keys[-1] // ROWS_PER_FILE - keys[0] // ROWS_PER_FILE + 1
            if way is Rewrite.LIST:
                said, count, through = Rewrite.LISTED.value, changed, len({key // ROWS_PER_FILE for key in keys})
            else:  # a join: Spark prunes by the keys that it has broadcast, where the plan lets it; here nothing is counted on
                count, through = 2 * bool(known.range("id")), in_range
                said = way.value
            print(f"| {changed:,} | {where} | {said} | {count:,} | {through:,} |")


def models(count: int = 1_000) -> None:
    """Planning of a project: each model has a text of its own, so that nothing is remembered from another."""
    began, steps, records, largest = process_time(), 0, 0, 0
    shapes = list(SHAPES)
    for number in range(count):
        case = dict(SHAPES[shapes[number % len(shapes)]])
        case.pop("inserts", None)
        found = plan_of(
            {
                **case,
                "sql": f"{case['sql']} -- {number}",
                "rows": 10**9,
                "changed": {"t": {"rows": 1000, "table_rows": 10**9}},
            }
        )
        sent = sum(len(text) for step in found.steps for text in texts(step.args))
        steps, largest = steps + len(found.steps), max(largest, sent)
        records += len(found.record.to_json()) if found.record else 0
    print(
        f"\n{count:,} models: {process_time() - began:.1f} CPU seconds of planning (the last run of each planned too, for its record), "
        f"{steps:,} steps, {records:,} bytes of records, at most {largest:,} bytes of SQL for one model"
    )


if __name__ == "__main__":
    plans()
    publishing()
    models()
