"""Table functions that read more than their arguments are sources; names of tables are parts, whatever stands in them."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.syntax.table_name import parts_of, quoted_name

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("select id from s.listed()", ["listed()"]),
        ("select id from s.t, lateral s.listed(t.x) as u(y)", ["s.t", "listed()"]),
        ("select id from table_changes('s.t', 0)", ["table_changes()"]),
        ("with c as (select id from read_files('/x')) select id from c", ["read_files()"]),
        ("select id from range(3)", []),
        ("select id from values (1) as v(id)", []),
        ("select id, y from s.t lateral view explode(x) as y", ["s.t"]),
        ("select id from s.t, lateral explode(t.x) as u(y)", ["s.t"]),
        ("select id from delta.`/a.b/C` join Delta.`/a.b/c` using (id)", ["delta.`/a.b/C`", "Delta.`/a.b/c`"]),
        ("select id from c.s.t join `C`.S.`T` using (id)", ["c.s.t"]),
    ],
)
def test_what_is_read(sql: str, tables: list[str]) -> None:
    found = analyze(sql, unique_key="id", functions={"listed": {"determinism": "deterministic"}})
    assert [table.name for table in found.tables] == tables


@pytest.mark.parametrize("name", ["s.t", "delta.`/a.b/x y`", "c.s.t", "`a``b`.t", "global_temp.v"])
def test_names_are_parts(name: str) -> None:
    assert ".".join(parts_of(quoted_name(name))) == ".".join(parts_of(name))
    assert quoted_name(quoted_name(name)) == quoted_name(name)
