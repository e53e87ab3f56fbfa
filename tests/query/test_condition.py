"""Conditions by themselves: read, or not understood; never an error of the parser."""

from __future__ import annotations

import pytest
from sqlglot import exp

from spark_mv.query.delta.output_windows import compared_with
from spark_mv.query.syntax.condition import HEAD, read_condition


def test_the_tree_and_the_places_of_its_words() -> None:
    text = "t.ts >= current_timestamp() - interval 30 days"
    tree = read_condition(text)
    assert isinstance(tree, exp.GTE)
    column = next(tree.find_all(exp.Column))
    start, end = column.parts[0].meta["start"] - len(HEAD), column.parts[-1].meta["end"] + 1 - len(HEAD)
    assert text[start:end] == "t.ts"


@pytest.mark.parametrize(
    "text",
    ["", "ts >=", "ts >= )", "ts >= 'open", "(a) group by (b)", "(a) limit 1", "(a) union select 1", "a; drop table t"],
)
def test_what_is_not_understood(text: str) -> None:
    assert read_condition(text) is None
    assert compared_with(text) is None
