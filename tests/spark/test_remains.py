"""What CREATE TABLE is told of files where the table is to be."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.maintenance.errors import TurnTaken
from spark_mv.spark.formats.remains import after_remains

SAYS = Exception(
    "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] Cannot create table ('`s`.`m`'). The associated location ('file:/w/s.db/m') is not empty "
    "and also not a Delta table."
)


def test_the_files_of_a_first_run_that_was_quicker_are_its_table() -> None:
    with pytest.raises(TurnTaken):
        after_remains(lambda sql: [{"col_name": "id"}], "m", "`s`.`m`", SAYS)


def test_files_of_no_table_may_be_replaced_and_other_errors_are_none_of_this() -> None:
    def none_there(sql: str) -> list[dict[str, Any]]:
        raise ValueError("TABLE_OR_VIEW_NOT_FOUND")

    assert after_remains(none_there, "m", "`s`.`m`", SAYS) == 0
    assert after_remains(none_there, "m", "`s`.`m`", Exception("something else")) is None
