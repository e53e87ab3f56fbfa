"""Run as a program: dbt against a server, step by step, in a process without any other Spark; prints what came of it.

    python dbt_steps.py FOLDER < steps.json

A step is {"sql": statement}, {"query": select}, or {"dbt": [argument, …]}. The last line of output is `RESULT ` and a
JSON list: null, the rows, or {"success", "nodes": {name: {"status", "message", "response"}}, "error"}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dbt.cli.main import dbtRunner


def main(folder: str) -> None:
    places = ["--project-dir", folder, "--profiles-dir", folder]
    found = [_step(step, places) for step in json.load(sys.stdin)]
    print("RESULT " + json.dumps(found, default=str))


def _step(step: dict[str, Any], places: list[str]) -> Any:
    if "sql" in step:
        done = dbtRunner().invoke(
            ["run-operation", "execute_sql", "--args", json.dumps({"text": step["sql"]}), *places]
        )
        if not done.success:
            raise SystemExit(f"{step['sql']}: {done.exception or 'failed'}")
        return None
    if "query" in step:
        done = dbtRunner().invoke(["--quiet", "show", "--inline", step["query"], "--limit", "-1", *places])
        if not done.success:
            raise SystemExit(f"{step['query']}: {done.exception or 'failed'}")
        return [list(row) for row in done.result.results[0].agate_table.rows]
    done = dbtRunner().invoke([*step["dbt"], *places])
    results = getattr(done.result, "results", None) or []
    nodes = {
        result.node.name: {
            "status": str(result.status),
            "message": result.message,
            "response": result.adapter_response,
        }
        for result in results
        if hasattr(result, "node")  # an operation's has none
    }
    return {"success": done.success, "nodes": nodes, "error": str(done.exception or "")}


if __name__ == "__main__":
    main(sys.argv[1])
