"""What CREATE TABLE is told of files where the table is to be."""

from __future__ import annotations

from typing import Any

import pytest
from sqlglot import exp, parse_one

from spark_mv.ai.batches.store import create_batches_sql
from spark_mv.ai.results import create_sql
from spark_mv.ai.similar_table import create_similar_sql
from spark_mv.maintenance.errors import TurnTaken
from spark_mv.spark.formats.own_tables import make_table
from spark_mv.spark.formats.remains import after_remains

SAYS = Exception(
    "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] Cannot create table ('`s`.`m`'). The associated location ('file:/w/s.db/m') is not empty "
    "and also not a Delta table."
)


def test_the_files_of_a_first_run_that_was_quicker_are_its_table() -> None:
    with pytest.raises(TurnTaken):
        after_remains(lambda sql: [{"col_name": "id"}], "m", "`s`.`m`", SAYS)


def none_there(sql: str) -> list[dict[str, Any]]:
    missing = "[DELTA_MISSING_DELTA_TABLE] `/w/s.db/m` is not a Delta table."
    raise ValueError(missing if "detail" in sql else "[TABLE_OR_VIEW_NOT_FOUND]")


def test_a_log_that_cannot_be_read_is_not_replaced() -> None:
    def damaged(sql: str) -> list[dict[str, Any]]:
        raise ValueError("[FAILED_READ_FILE.NO_HINT]" if "detail" in sql else "[TABLE_OR_VIEW_NOT_FOUND]")

    with pytest.raises(ValueError, match="FAILED_READ_FILE"):
        after_remains(damaged, "m", "`s`.`m`", SAYS)


def test_files_of_no_table_may_be_replaced_and_other_errors_are_none_of_this() -> None:
    assert after_remains(none_there, "m", "`s`.`m`", SAYS) == 0
    assert after_remains(none_there, "m", "`s`.`m`", Exception("something else")) is None


STATEMENTS = {
    "answers": create_sql("`s`.`ai_results`"),
    "similar": create_similar_sql("`s`.`ai_results`"),
    "batches": create_batches_sql("`s`.`ai_results`"),
    "runs": "create table if not exists `s`.`mv (runs)` (a INT, b DECIMAL(10, 2)) using delta comment 'What' tblproperties ('x' = 'y')",
    "evaluated": "CREATE TABLE IF NOT EXISTS `s`.`e` (a INT COMMENT 'one (of many)', b ARRAY<STRING> COMMENT 'x') USING delta",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_table_that_models_share_is_made_in_the_place_of_remains(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_mv.spark.formats.own_tables._PAUSES", (0.0,))
    sent: list[str] = []

    def query(sql: str) -> list[dict[str, Any]]:
        if sql == STATEMENTS[name]:
            raise SAYS
        if sql.startswith("describe"):
            return none_there(sql)
        sent.append(sql)
        return []

    make_table(query, "t", STATEMENTS[name])
    (made,) = (parse_one(sql, read="spark") for sql in sent)
    asked = parse_one(STATEMENTS[name], read="spark")
    assert made.find(exp.Table) == asked.find(exp.Table)
    assert made.args["properties"] == asked.args["properties"]
    fields = made.find(exp.FromJson)
    assert fields is not None
    columns = parse_one(f"CREATE TABLE t ({fields.expression.this})", read="spark")
    assert list(columns.find_all(exp.ColumnDef)) == list(asked.find_all(exp.ColumnDef))
