"""`spark-mv explain` end to end: a file in, JSON or text out, exit status 2 only for unreadable input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_mv.cli import main

pytestmark = pytest.mark.unit
SQL = """select o.id,
       ai_classify(o.body, array('a', 'b')) as topic,
       rand() as draw
from orders as o
where o.created > current_date - 30
"""
TABLES = {"orders": {"id": "bigint", "body": "string", "created": "date"}}


def _run(folder: Path, sql: str, *options: str, tables: Any = None) -> Any:
    (folder / "orders_mv.sql").write_text(sql, encoding="utf-8")
    arguments = ["explain", str(folder / "orders_mv.sql"), *options]
    if tables is not None:
        (folder / "tables.json").write_text(json.dumps(tables), encoding="utf-8")
        arguments += ["--schema", str(folder / "tables.json")]
    return CliRunner().invoke(main, arguments)


def test_json(tmp_path: Path) -> None:
    result = _run(tmp_path, SQL, "--unique-key", "id", "--format", "json", tables=TABLES)
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    assert data["model"] == "orders_mv"
    assert [(c["name"], c["level"], c["kept"]) for c in data["columns"]] == [
        ("id", "deterministic", False),
        ("topic", "ai", False),
        ("draw", "nondeterministic", True),
    ]
    assert data["columns"][1]["cause"] == {"function": "ai_classify", "line": 2, "column": 8, "path": []}
    (predicate,) = data["predicates"]
    assert predicate["text"] == "o.created > current_date - 30"
    assert predicate["clock"] and predicate["solved"]
    assert predicate["valid_from"] is None
    assert predicate["valid_to"] == "CAST(date_add(o.created, 30) AS TIMESTAMP)"
    assert [s["name"] for s in data["strategies"] if s["applies"]] == ["NO_OP", "ROW_BASED", "COMPLETE_RECOMPUTE"]
    append = next(s for s in data["strategies"] if s["name"] == "APPEND_ONLY")
    assert append["reason_codes"] == ["BOUND_CROSSED"] and append["applies_when"] == ["orders only gains rows"]
    assert data["errors"] == [] and data["supposed_tables"] == []


def test_the_first_rows_of_an_order_are_followed_where_the_types_allow_it(tmp_path: Path) -> None:
    def said(columns: dict[str, str] | None) -> dict[str, Any]:
        tables = {"b": columns} if columns else None
        sql = "select id, v from (select id, v from b) x order by v desc, id limit 10"
        strategies = json.loads(_run(tmp_path, sql, "-k", "id", "--format", "json", tables=tables).output)["strategies"]
        return next(s for s in strategies if s["name"] == "ROW_BASED")

    assert said({"id": "bigint", "v": "decimal(9,2)"})["applies"]
    floating, unknown = said({"id": "bigint", "v": "double"}), said(None)
    assert not floating["applies"] and "v is of type double" in floating["reasons"][0]["sentence"]
    assert not unknown["applies"] and "not known here" in unknown["reasons"][0]["sentence"]


def test_what_a_run_refuses_is_an_error(tmp_path: Path) -> None:
    sql = "with c as (select * from t where rand() < 0.5) select id, count(*) as n from c group by id"
    data = json.loads(_run(tmp_path, sql, "-k", "id", "--format", "json").output)
    assert [e["code"] for e in data["errors"]] == ["NOT_KEPT"] and "unique_key" in data["errors"][0]["message"]
    assert not any(s["applies"] for s in data["strategies"]) and data["supposed_tables"] == []


def test_missing_key_is_an_error_and_the_rest_is_reported(tmp_path: Path) -> None:
    data = json.loads(_run(tmp_path, SQL, "--format", "json").output)
    assert [e["code"] for e in data["errors"]] == ["MISSING_UNIQUE_KEY"]
    assert len(data["columns"]) == 3


def test_bad_sql_is_part_of_the_answer(tmp_path: Path) -> None:
    result = _run(tmp_path, "select from where", "--unique-key", "id", "--format", "json")
    assert result.exit_code == 0
    data = json.loads(result.output)
    assert data["errors"][0]["code"] == "PARSE_ERROR"
    assert not any(s["applies"] for s in data["strategies"])


def test_text(tmp_path: Path) -> None:
    result = _run(tmp_path, SQL, "--unique-key", "id", tables=TABLES)
    assert result.exit_code == 0
    assert "ai_classify (line 2, column 8)" in result.output
    assert "until CAST(date_add(o.created, 30) AS TIMESTAMP)" in result.output


def test_composite_key(tmp_path: Path) -> None:
    for options in (["-k", "a,b"], ["-k", "a", "-k", "b"]):
        data = json.loads(_run(tmp_path, "select a, b from t", *options, "--format", "json").output)
        assert data["unique_key"] == ["a", "b"] and not data["errors"]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        # without --schema, the columns of a star are those that the query names elsewhere
        ("select * from a union all select x, y from a", "the columns of an arm of a set operation are not known"),
        (
            "select x, count(*) as n from (select * from a union all select x, y from b) group by x",
            "the columns of an arm",
        ),
        # without a key of the SELECT's own, every column is taken for one, those without a name among them
        (
            "with c as (select x from a), d as (select * from c union all select x from b) select count(*) from d",
            "an aggregate",
        ),
    ],
)
def test_what_is_not_known_is_said_of_the_strategy(tmp_path: Path, sql: str, why: str) -> None:
    result = _run(tmp_path, sql, "-k", "nowhere", "--format", "json")
    assert result.exception is None, result.exception
    refused = [s["reasons"] for s in json.loads(result.output)["strategies"] if not s["applies"]]
    assert any(reason["sentence"].startswith(why) for reasons in refused for reason in reasons), refused


@pytest.mark.parametrize("content", ["not json", "[1]", '{"t": 3}'])
def test_unreadable_schema(tmp_path: Path, content: str) -> None:
    (tmp_path / "tables.json").write_text(content, encoding="utf-8")
    result = _run(tmp_path, SQL, "--schema", str(tmp_path / "tables.json"))
    assert result.exit_code == 2


def test_unreadable_file(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["explain", str(tmp_path / "none.sql")]).exit_code == 2
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe\xfa\x00")
    assert CliRunner().invoke(main, ["explain", str(tmp_path / "binary.sql")]).exit_code == 2


def test_documented(tmp_path: Path) -> None:
    """Every key of the JSON stands in docs/explain-json.md."""
    text = (Path(__file__).parents[2] / "docs" / "explain-json.md").read_text(encoding="utf-8")
    data = json.loads(_run(tmp_path, SQL, "--format", "json", tables=TABLES).output)
    keys = set(data)
    for part in ("columns", "predicates", "clauses", "functions", "tables", "strategies", "errors"):
        keys |= {key for item in data[part] for key in item}
    keys |= set(data["shape"])
    assert {key for key in keys if f"`{key}`" not in text} == set()
