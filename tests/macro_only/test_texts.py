"""Texts of a user in a statement: as literals, in which nothing ends the string and Spark puts no setting's value."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja_macros import load
from sqlglot import parse_one

from spark_mv.query.syntax.source_text import string_literal

pytestmark = pytest.mark.unit
MACROS = Path(__file__).parents[2] / "macros"
TEXTS = ["it's", "a\\", "\\'; drop table t; --", "two\nlines", "${env:HOME}", "{{ 1 }}", "\\u0024{x}", "é😀"]


def macros() -> object:
    files = ("statements/mv_text.sql", "statements/mv_replace_table.sql", "adapters/comments.sql")
    return load(*((MACROS / file).read_text(encoding="utf-8") for file in files))


@pytest.mark.parametrize("text", TEXTS)
def test_literals_are_those_of_the_engine(text: str) -> None:
    for name in ("mv_text", "mv_comment_literal"):
        assert getattr(macros(), name)(text).strip() == string_literal(text)


@pytest.mark.parametrize("text", TEXTS)
def test_properties(text: str) -> None:
    written = macros().mv_tblproperties({text: text, "a": 1})
    assert f"{string_literal(text)} = {string_literal(text)}," in written and "'a' = '1'" in written
    assert parse_one(f"create table t (a int) {written}", dialect="spark") is not None
