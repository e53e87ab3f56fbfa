"""`on_source_delete: keep`: which rows of the query, of all instants, say that a remembered row's window ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from spark_mv.maintenance.strategies.state_steps import _with_ended
from spark_mv.query.syntax.reserved import relation

pytestmark = pytest.mark.unit

OLD, NEW = (1, "old", "2026-01-01", "2026-02-01"), (1, "new", "2026-02-01", "2026-02-10")


@pytest.mark.parametrize(
    ("source", "remembered", "staged"),
    [
        ([OLD], NEW, []),  # an older version of the key is no word about the one that the source has lost
        ([], NEW, []),
        ([OLD, NEW], NEW, ["new"]),
        ([(1, "ended", "2026-02-01", "2026-02-04")], NEW, ["ended"]),
        ([(1, "ended", "2026-02-01", "2026-02-04"), (1, "before", "2026-02-01", "2026-02-03")], NEW, ["ended"]),
        ([(2, "nobody's", "2026-02-01", "2026-02-04")], NEW, []),
    ],
)
def test_what_ends(source: list[Any], remembered: Any, staged: list[str]) -> None:
    con = duckdb.connect()
    for name, rows in (("src", source), ("state", [remembered])):
        con.execute(f"create table {name} (id int, v varchar, __mv_valid_from timestamp, __mv_valid_to timestamp)")
        if rows:
            con.executemany(f"insert into {name} values (?, ?, ?, ?)", rows)
    known: Any = SimpleNamespace(
        config=SimpleNamespace(unique_key=("id",)),
        relation="state",
        rewritten=SimpleNamespace(unclocked_sql="select * from src", as_of_literal="TIMESTAMP'2026-02-05'"),
    )
    sql = _with_ended(known, ["id", "v", "__mv_valid_from", "__mv_valid_to"]).replace(relation("state"), "state")
    assert [row[1] for row in con.execute(sql.replace("`", '"')).fetchall()] == staged
