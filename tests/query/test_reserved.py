"""Places that the engine holds free in a text are identifiers that a user cannot have written."""

from __future__ import annotations

import pytest

from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.syntax.reserved import filled, relation

pytestmark = pytest.mark.unit

RELATIONS = {"state": "s.`mv__state`", "affected": "s.`mv__affected`", "predicate": "k IN (1, 2)"}


@pytest.mark.parametrize(
    "text",
    [
        "'{state}'",
        "'`__mv_rel_state`'",
        "'__mv_predicate__'",
        "'{{ state }} {% raw %}'",
        "r'\\`__mv_rel_state`'",
        '"`__mv_rel_state`"',
        "'it''s `__mv_rel_affected`'",
        "'a\\'`__mv_rel_affected`'",
        "x -- `__mv_rel_state`\n",
        "x /* `__mv_rel_state` */",
        "`a``__mv_rel_state`",
    ],
)
def test_what_the_user_wrote_stays(text: str) -> None:
    assert filled(f"select {text} from t", RELATIONS) == f"select {text} from t"
    with_place = f"select {text} from {relation('state')} where {relation('predicate')}"
    assert filled(with_place, RELATIONS) == f"select {text} from s.`mv__state` where k IN (1, 2)"


@pytest.mark.parametrize(
    "sql",
    [
        "select id, 1 as __mv_op from t",
        "select id from `__mv_rel_state`",
        "with `__MV_a` as (select 1 as id) select id from `__MV_a`",
        "select id, x as `__mv_valid_to` from t",
    ],
)
def test_a_name_of_the_engine_is_refused(sql: str) -> None:
    (error,) = {e.message for e in analyze(sql, unique_key="id").errors if e.code == "RESERVED_NAME"}
    assert "__mv_" in error


def test_texts_with_such_names_are_not() -> None:
    sql = "select id, '__mv_op' as a__mv_op, x -- __mv_op\n from t"
    assert not analyze(sql, unique_key="id").errors
