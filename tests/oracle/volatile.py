"""Draws anywhere in a query: what the engine says of them, held against what they do. No rule of the engine is used for it:
a query is evaluated twice, and what differs was drawn; what is the same for two keys is one draw for both.

AI calls anywhere: all of them must be taken out, each with its place.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from random import Random

import duckdb
from duck_sql import Untranslated, duck
from engine import Database
from grammar import Drawn
from histories import SCHEMAS, draw_history, draw_menu
from noticing import misplaced, refusal, shared_draws, verdict

from spark_mv.query.ai_calls.ai_plan import plan_ai
from spark_mv.query.functions.level import Level

TRIES = 6
_AI = re.compile(r"\bai_\w+\s*\(")


@dataclass
class Said:
    """What was said of the queries, by how many."""

    queries: Counter[str] = field(default_factory=Counter)
    untranslated: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"{self.queries.total()} queries: {dict(self.queries.most_common())}, not said in DuckDB: {dict(self.untranslated)}"


def wrong_verdict(database: Database, drawn: Drawn, said: Said) -> str:
    """What is wrong with the verdict on a query with draws; '' if nothing is."""
    analysis = verdict(drawn.sql, drawn.key)
    if analysis.errors:
        said.queries[f"refused: {analysis.errors[0].code}"] += 1
        return ""
    if Level.NONDETERMINISTIC not in analysis.levels:
        said.queries["no draw"] += 1
        return ""
    try:
        if analysis.rows_level is Level.NONDETERMINISTIC:
            kept = not refusal(drawn.sql, drawn.key)
            said.queries["rows are kept" if kept else "refused by a run"] += 1
            return shared_draws(database, drawn.sql, drawn.key) if kept else misplaced(drawn.sql, drawn.key)
        if Level.ORDER_DEPENDENT in analysis.levels:
            said.queries["order-dependent"] += 1
            return ""
        said.queries["drawn columns" if any(c.kept for c in analysis.columns) else "draws that do not show"] += 1
        return _differs(database, drawn)
    except (Untranslated, duckdb.Error) as error:
        said.untranslated[str(error).splitlines()[0][:80]] += 1
        return ""


def _differs(database: Database, drawn: Drawn) -> str:
    """Two evaluations that differ in what is said to be no draw."""
    analysis = verdict(drawn.sql, drawn.key)
    text = duck(drawn.sql)
    columns = [k for k, c in enumerate(analysis.columns) if not c.kept and c.level is not Level.NONDETERMINISTIC]
    for number in range(TRIES):
        history = draw_history(Random(number), tuple(SCHEMAS), draw_menu(Random(number), tuple(SCHEMAS), False), 0)
        database.load([{name: list(rows) for name, rows in history.rows.items()}])
        first, second = (
            Counter(repr([row[k] for k in columns]) for row in database.con.execute(text).fetchall()) for _ in range(2)
        )
        if first != second:
            return f"{dict(first - second)} or {dict(second - first)}\n{history}"
    return ""


def calls_left(drawn: Drawn, said: Said) -> str:
    """An AI call that nobody would answer: it is still there when all are said to be taken out."""
    calls = len(_AI.findall(drawn.sql))
    if not calls:
        said.queries["no AI call"] += 1
        return ""
    plan = plan_ai(drawn.sql, results_table="answers", identity={"model": "any"}, schemas=SCHEMAS)
    if plan.errors:
        said.queries[f"refused: {plan.errors[0].code}"] += 1
        return "" if plan.errors[0].line and plan.errors[0].message else f"{plan.errors[0]} has no place"
    said.queries[f"{len(plan.rounds)} rounds"] += 1
    left = [text for text in (plan.sql, *(call.request_sql for call in plan.calls)) if _AI.search(text)]
    if left:
        return f"still there: {left[0]}"
    try:
        for text in (plan.sql, *(call.request_sql for call in plan.calls)):
            duck(text)
    except Untranslated as error:
        said.untranslated[str(error).splitlines()[0][:80]] += 1
    wrong = [
        call
        for call in plan.calls
        if not drawn.sql.splitlines()[call.line - 1][call.column - 1 :].startswith(call.function)
    ]
    return f"{wrong[0].function} is not at line {wrong[0].line}, column {wrong[0].column}" if wrong else ""
