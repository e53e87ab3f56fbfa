"""What the tables of a project tell about its runs: mv_runs, ai_results, the records in commits. A few statements, all reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spark_mv.ai.paid import paid_sql
from spark_mv.ai.results import TABLE_NAME as AI_RESULTS
from spark_mv.maintenance.format_version import ask_format, check_rows
from spark_mv.query.syntax.source_text import string_literal
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.report.facts import AiUse, Evaluation, RunRow, run_row
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.formats.history import History
from spark_mv.spark.formats.own_tables import EVALUATED
from spark_mv.spark.formats.registry import format_of
from spark_mv.spark.formats.remains import OWNER_PROPERTY
from spark_mv.spark.run.look_up import describe
from spark_mv.spark.run.run_history import TABLE as RUNS

_MOST_EVALUATIONS = 200
Note = Callable[[str], None]


def tables_of(query: Query, schema: str) -> frozenset[str]:
    """The names, in lower case, of the tables of a schema (rendered); none where there is no such schema."""
    try:
        rows = query(f"show tables in {schema}")
    except Exception as error:
        if "SCHEMA_NOT_FOUND" in str(error) or "NoSuchNamespace" in str(error):
            return frozenset()
        raise
    return frozenset(str(row.get("tableName", row.get("tab_name"))).lower() for row in rows)


def runs_of(query: Query, schema: str, models: Sequence[str], limit: int) -> dict[str, tuple[RunRow, ...]]:
    """The newest runs of each of these models (dbt's unique ids), newest first, up to `limit` each. Raises RefusedError for the table of
    a later release."""
    check_rows(f"{schema}.{RUNS}", [tuple(row.values()) for row in query(ask_format(f"{schema}.{RUNS}"))])
    wanted = ", ".join(string_literal(model) for model in models)
    rows = query(
        "select unix_micros(started_at) as started_micros, unix_micros(as_of) as as_of_micros, * from (select *, row_number() "
        f"over (partition by model order by started_at desc) as place from {schema}.{RUNS} where model in ({wanted})) "
        f"where place <= {int(limit)} order by model, place"
    )
    found: dict[str, list[RunRow]] = {}
    for row in rows:
        found.setdefault(str(row["model"]), []).append(run_row(row))
    return {model: tuple(runs) for model, runs in found.items()}


def ai_use(query: Query, schema: str) -> tuple[AiUse, ...]:
    """Answers, tokens and cost of each invocation, by function and model, oldest first."""
    rows = query(
        "select coalesce(invocation_id, '') as invocation_id, coalesce(function, '') as function, coalesce(model, '') as model, "
        "coalesce(model_version, '') as model_version, status, count(*) as answers, coalesce(sum(attempts), 0) as attempts, "
        "coalesce(sum(input_tokens), 0) as input_tokens, coalesce(sum(output_tokens), 0) as output_tokens, coalesce(sum(cost), 0) as cost, "
        f"unix_micros(max(called_at)) as called_micros from ({paid_sql(f'{schema}.{AI_RESULTS}')}) as p "
        "group by 1, 2, 3, 4, 5 order by called_micros, 2, 3"
    )
    return tuple(_use(row) for row in rows)


def _use(row: Mapping[str, Any]) -> AiUse:
    called = row["called_micros"]
    return AiUse(
        invocation_id=str(row["invocation_id"]),
        function=str(row["function"]),
        model=str(row["model"]),
        model_version=str(row["model_version"]),
        status=str(row["status"]),
        answers=int(row["answers"]),
        attempts=int(row["attempts"]),
        input_tokens=int(row["input_tokens"]),
        output_tokens=int(row["output_tokens"]),
        cost=float(row["cost"]),
        called_at=None if called is None else float(called) / 1e6,
    )


def evaluations_of(query: Query, schema: str) -> tuple[Evaluation, ...]:
    """The newest variants that ai_eval has evaluated, with what they had wrong."""
    rows = query(
        f"select unix_micros(evaluated_at) / 1e6 as at, * from {schema}.{EVALUATED} order by evaluated_at desc, variant limit {_MOST_EVALUATIONS}"
    )
    named = ", ".join(sorted({string_literal(str(row["invocation_id"])) for row in rows})) or "''"
    wrong: dict[tuple[str, str], list[tuple[str, str | None, int]]] = {}
    for row in query(
        f"select * from {schema}.{EVALUATED}_confusion where invocation_id in ({named}) and not expected <=> answer order by n desc limit 2000"
    ):
        pair = str(row["expected"]), None if row["answer"] is None else str(row["answer"]), int(row["n"])
        wrong.setdefault((str(row["invocation_id"]), str(row["variant"])), []).append(pair)
    compared: dict[tuple[str, str], list[tuple[str, float, int, int, float]]] = {}
    for row in query(f"select * from {schema}.{EVALUATED}_agreement where invocation_id in ({named}) limit 2000"):
        both = int(row["only_first_correct"]), int(row["only_second_correct"])
        chance = float(row["p_value"])
        key = (str(row["invocation_id"]), str(row["first"]))
        compared.setdefault(key, []).append((str(row["second"]), float(row["agreement"]), *both, chance))
    return tuple(_evaluation(row, wrong, compared) for row in rows)


def _evaluation(row: Mapping[str, Any], wrong: Mapping[Any, Any], compared: Mapping[Any, Any]) -> Evaluation:
    key = str(row["invocation_id"]), str(row["variant"])
    return Evaluation(
        evaluated_at=float(row["at"]),
        invocation_id=key[0],
        variant=key[1],
        call=str(row["call"]),
        model=str(row["model"]),
        model_version=str(row["model_version"]),
        judged_by=str(row["judged_by"]),
        n=int(row["n"]),
        correct=int(row["correct"]),
        accuracy=float(row["accuracy"]),
        accuracy_low=float(row["accuracy_low"]),
        accuracy_high=float(row["accuracy_high"]),
        inputs=int(row["inputs"]),
        unanswered=int(row["unanswered"]),
        cost=float(row["cost"]),
        wrong=tuple(wrong.get(key, ())),
        compared=tuple(compared.get(key, ())),
    )


def history_of(query: Query, relation: str, model: str) -> History | None:
    """The record in the table's newest commit and what came since; None for what is no table that keeps versions, or none of ours (any more)."""
    description = describe(query, relation)
    table_format = None if description is None or description.is_view else format_of(description.provider)
    if description is None or table_format is None:
        return None
    ours = OWNER_PROPERTY in table_format.described(query, relation, description).properties
    return table_format.history(query, relation, model) if ours else None


def columns_of(query: Query, tables: Iterable[str], note: Note) -> dict[str, dict[str, str]]:
    """Table → column → type. A table that cannot be described is noted and left out."""
    found: dict[str, dict[str, str]] = {}
    for table in tables:
        try:
            rows = query(f"describe table {quoted_name(table)}")
        except Exception as error:
            note(f"the columns of {table} could not be read: {error}")
            continue
        columns: dict[str, str] = {}
        for row in rows:
            if not row["col_name"] or str(row["col_name"]).startswith("#"):
                break
            columns[str(row["col_name"])] = str(row["data_type"])
        found[table] = columns
    return found
