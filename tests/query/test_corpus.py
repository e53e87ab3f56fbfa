"""Every statement of the fixture files has the verdict that stands above it."""

from __future__ import annotations

import re

import pytest
from sql_cases import Case, cases

from spark_mv.explain.judgement import judge
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.syntax.parse import parse

pytestmark = pytest.mark.unit


def _analysis(case: Case) -> Analysis:
    return analyze(
        case.sql,
        unique_key=case.key,
        schemas=case.tables or None,
        functions=case.functions,
        freeze=case.freeze,
        views=case.views,
    )


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.place)
def test_verdict(case: Case) -> None:
    analysis = _analysis(case)
    expected_errors = sorted(code for code, _ in case.errors)
    assert sorted(error.code for error in analysis.errors) == expected_errors, analysis.errors
    for code, place in case.errors:
        places = [f"{e.line}:{e.column}" for e in analysis.errors if e.code == code]
        assert not place or place in places, (code, places)
    if not analysis.columns and case.errors:
        return
    got = {c.name: c.level.value for c in analysis.columns if c.level.value != "deterministic"}
    assert got == {name: level for name, (level, _) in case.columns.items()}
    assert analysis.rows_level.value == case.rows
    for name, (level, rest) in case.columns.items():
        _check_cause(analysis, name, level, rest)
    for line in case.predicates:
        _check_predicate(case, line)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.place)
def test_a_text_is_read_once(case: Case) -> None:
    """Trees are kept and looked at again, whatever was asked of them before."""
    parse.cache_clear()
    first = _analysis(case)
    tree = parse(case.sql)
    analyze(case.sql, unique_key=("other",), functions={"rand": {"determinism": "deterministic"}})
    assert parse(case.sql) is tree
    assert _analysis(case) == first


def _check_cause(analysis: Analysis, name: str, level: str, rest: str) -> None:
    column = analysis.column(name)
    assert column is not None
    words, _, path = rest.partition(", through ")
    function, *more = words.split(" ")
    assert column.kept == (level == "nondeterministic" or "kept" in more)
    if function:
        assert column.cause is not None
        assert column.cause.function == function
        for place in more:
            assert place == "kept" or place == f"{column.cause.line}:{column.cause.column}"
    if path:
        assert column.cause is not None and ", ".join(column.cause.path) == path


def _check_predicate(case: Case, line: str) -> None:
    """`predicate CLAUSE level [clock [solved]]`"""
    judged = judge(
        case.sql, unique_key=case.key, schemas=case.tables or None, functions=case.functions, freeze=case.freeze,
        views=case.views,
    )  # fmt: skip
    shown = [
        " ".join(filter(None, (p.clause, p.level.value, "clock" if p.clock else "", "solved" if p.solved else "")))
        for p in judged.predicates
    ]
    assert line in shown


@pytest.mark.parametrize("case", [c for c in cases() if not c.views], ids=lambda case: case.place)
def test_every_cause_points_at_its_call(case: Case) -> None:
    """Line and column lead to the function's own name in the text."""
    lines = case.sql.splitlines()
    for name, _, line, column in _analysis(case).functions:
        text = lines[line - 1][column - 1 :]
        last = re.escape(name.split(".")[-1].strip("'"))
        assert re.match(rf"(\w+\.)*{last}\b|(date|timestamp|cast\()?\s*'{last}'", text, re.IGNORECASE), (name, text)
