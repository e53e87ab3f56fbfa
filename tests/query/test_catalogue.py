"""The catalogue of functions and the users' declarations."""

from __future__ import annotations

import pytest

from spark_mv.query.functions.catalogue import catalogue, declared_levels, level_of
from spark_mv.query.functions.level import Level

pytestmark = pytest.mark.unit


def test_levels() -> None:
    assert level_of("UPPER") == Level.DETERMINISTIC
    assert level_of("rand") == Level.NONDETERMINISTIC
    assert level_of("ai_classify") == Level.AI
    assert level_of("no_such_function") is None
    assert set(catalogue().values()) == set(Level)


def test_every_name_is_lower_case_and_none_is_a_comment() -> None:
    assert [name for name in catalogue() if name != name.lower() or name.startswith("#")] == []


def test_declarations() -> None:
    levels, problems = declared_levels(
        {"F": {"determinism": "AI"}, "g": "order-dependent", "h": {"determinism": "odd"}}
    )
    assert levels == {"f": Level.AI, "g": Level.ORDER_DEPENDENT, "h": Level.NONDETERMINISTIC}
    assert len(problems) == 1 and "function h" in problems[0]
