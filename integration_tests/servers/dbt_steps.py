"""Run as a program: dbt against a server, step by step, in a process without any other Spark; prints what came of it.

    python dbt_steps.py FOLDER < steps.json

A step is {"sql": statement}, {"query": select}, {"queries": {name: select}}, or {"dbt": [argument, …]}, for {"target": name} where that is
there. The last line of output is `RESULT ` and a JSON list: null; the rows; {name: rows, or what went wrong}, the selects having equal
columns of which the first is the name; or {"success", "nodes": {name: {"status", "message", "response"}}, "error"}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dbt.cli.main import dbtRunner


def main(folder: str) -> None:
    places = ["--project-dir", folder, "--profiles-dir", folder]
    found = []
    for step in json.load(sys.stdin):
        target = ["--target", step["target"]] if "target" in step else []
        found.append(_step(step, [*places, *target]))
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
        rows = _rows(step["query"], places)
        if isinstance(rows, str):
            raise SystemExit(f"{step['query']}: {rows}")
        return rows
    if "queries" in step:
        together = _rows(" union all ".join(step["queries"].values()), places)
        if isinstance(together, str):  # one by one, to see which
            return {name: _rows(query, places) for name, query in step["queries"].items()}
        return {name: [row for row in together if row[0] == name] for name in step["queries"]}
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


def _rows(query: str, places: list[str]) -> list[list[Any]] | str:
    """The rows, or why there are none."""
    done = dbtRunner().invoke(["--quiet", "show", "--inline", query, "--limit", "-1", *places])
    if not done.success:
        return str(done.exception or "failed")
    return [list(row) for row in done.result.results[0].agate_table.rows]


if __name__ == "__main__":
    main(sys.argv[1])
