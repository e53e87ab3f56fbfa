"""Scripts cut into statements, where semicolons stand in texts, names and comments too."""

from __future__ import annotations

import pytest

from spark_mv.spark.adapter.statements import split_statements

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("select 1 ;\n -- done", ["select 1"]),
        ("set a = 1; ; select ';'", ["set a = 1", "select ';'"]),
        (r"select 'it\'s;', r'\'; select 2", [r"select 'it\'s;', r'\'", "select 2"]),
        (
            r"set a = b; delete from t where a = 'x' or'it\'s; so' = b",
            ["set a = b", r"delete from t where a = 'x' or'it\'s; so' = b"],
        ),
        ('select "a;b"; select 2', ['select "a;b"', "select 2"]),
        ("select 1 as `a;``b`; select 2", ["select 1 as `a;``b`", "select 2"]),
        ("/* a; /* b; */ c; */ select 1; select 2", ["/* a; /* b; */ c; */ select 1", "select 2"]),
        ("select 1 -- a; b\n; select 2", ["select 1 -- a; b", "select 2"]),
        ("(select 1); (select 2)", ["(select 1)", "(select 2)"]),
        ("/* dbt */ begin select 1; select 2; end", ["/* dbt */ begin select 1; select 2; end"]),
        ("set a = 1; begin select 1; end;", ["set a = 1; begin select 1; end;"]),
        ("-- nothing", ["-- nothing"]),
        ("", [""]),
        ("select 'open", ["select 'open"]),
        ("select 1 /* open ; ", ["select 1 /* open ;"]),
    ],
)
def test_statements(sql: str, parts: list[str]) -> None:
    assert split_statements(sql) == parts
