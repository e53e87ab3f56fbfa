"""AI calls anywhere in a query: the plan's own requests are answered, and its SELECT over these answers is held against the query over
functions that answer at once. So a request that is not made, or is made of another row, shows."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import duckdb
from duck_sql import Untranslated, duck
from engine import Database
from grammar import Drawn
from histories import SCHEMAS, draw_history, draw_menu
from volatile import TRIES, Said

from spark_mv.query.ai_calls.ai_plan import AiPlan, plan_ai

_RESULTS = "ai_results"
_SAYS = {"ai_gen": "G:", "ai_translate": "T:", "ai_fix_grammar": "F:"}
"""What stands before the first argument in the answer of each function that the grammar calls."""
_AT_ONCE = "".join(
    f"create or replace temp macro {name}(x{', to_' if name == 'ai_translate' else ''}) as '{says}' || cast(x as varchar);"
    for name, says in _SAYS.items()
)
_OF_SPARK = (
    "create or replace temp macro to_json_of(s) as regexp_replace(to_json(s)::varchar, '^\\{\"[^\"]*\":null\\}$', '{}');"
    "create or replace temp macro get(list, place) as list[place + 1];"
)
"""to_json leaves out a NULL, get counts from 0."""
_TABLE = (
    f"create or replace temp table {_RESULTS} (result_key varchar, function varchar, arguments_hash varchar, value varchar, status varchar, "
    "called_at timestamp);"
)


def wrong_answers(database: Database, drawn: Drawn, said: Said) -> str:
    """What is wrong with the answers that a query shows; '' if nothing is."""
    plan = plan_ai(drawn.sql, results_table=_RESULTS, identity={"model": "any"}, schemas=SCHEMAS)
    if not plan.rounds:
        said.queries[f"refused: {plan.errors[0].code}" if plan.errors else "no AI call"] += 1
        return ""
    con, wrong = database.con, ""
    con.execute(_AT_ONCE + _OF_SPARK + _TABLE)
    try:
        at_once = duck(drawn.sql)
        for number in range(TRIES):
            history = draw_history(Random(number), tuple(SCHEMAS), draw_menu(Random(number), tuple(SCHEMAS), False), 0)
            database.load([{name: list(rows) for name, rows in history.rows.items()}])
            con.execute(f"delete from {_RESULTS}")
            wanted = Counter(con.execute(at_once).fetchall())
            found = _asked(con, plan)
            if found != wanted and not wrong:
                wrong = f"missing {dict(wanted - found)}, too many {dict(found - wanted)}\n{history}\n{plan.sql}"
    except (Untranslated, duckdb.Error) as error:
        said.untranslated[str(error).splitlines()[0][:120]] += 1
        return ""
    said.queries[f"{len(plan.rounds)} rounds"] += 1
    return wrong


def _asked(con: duckdb.DuckDBPyConnection, plan: AiPlan) -> Counter[tuple[object, ...]]:
    for calls in plan.rounds:
        rows = [row for call in calls for row in con.execute(_said(call.request_sql)).fetchall()]
        answers = [(key, name, of, _answer(name, request), "ok") for key, name, of, request in rows]
        for answer in answers:
            con.execute(f"insert into {_RESULTS} values (?, ?, ?, ?, ?, timestamp '2026-01-01')", answer)
    return Counter(con.execute(_said(plan.sql)).fetchall())


def _said(sql: str) -> str:
    return duck(sql).replace("TO_JSON(", "TO_JSON_OF(")


def _answer(name: str, request: str) -> str:
    (first, *_) = json.loads(request)["row"]
    return f"{_SAYS[name]}{next(iter(first.values()))}"
