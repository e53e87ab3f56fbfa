"""The one table of functions, what is derived from it, and that there is no other list of names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from spark_mv.query.ai_calls.ai_plan import AiIdentity, plan_ai
from spark_mv.query.functions.catalogue import Kind, Mark, catalogue, declared_levels, level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.clock_split import split_clock
from spark_mv.query.rewrite.pin import Pins, pin
from spark_mv.query.syntax.clock_words import CASTING_CALLS, CASTING_TYPES, CLOCK_WORDS, pin_level
from spark_mv.query.syntax.select_tree import SelectNode
from spark_mv.query.syntax.tree_builder import build

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2] / "adapter" / "spark_mv"
AGGREGATES = [name for name, function in catalogue().items() if function.kind == Kind.AGGREGATE]
PINNED = (Level.COMMAND, Level.USER, Level.SESSION)
PINS = Pins(datetime(2026, 1, 31, tzinfo=timezone.utc), columns=frozenset())


def test_levels() -> None:
    assert level_of("UPPER") == Level.DETERMINISTIC
    assert level_of("rand") == Level.NONDETERMINISTIC
    assert level_of("ai_classify") == Level.AI
    assert level_of("no_such_function") is None
    assert {function.level for function in catalogue().values()} == set(Level)


def test_every_name_is_lower_case() -> None:
    assert [name for name in catalogue() if name != name.lower()] == []


def test_declarations() -> None:
    levels, problems = declared_levels(
        {"F": {"determinism": "AI"}, "g": "order-dependent", "h": {"determinism": "odd"}}
    )
    assert levels == {"f": Level.AI, "g": Level.ORDER_DEPENDENT, "h": Level.NONDETERMINISTIC}
    assert len(problems) == 1 and "function h" in problems[0]


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_is_one_to_all_who_ask(name: str) -> None:
    """An AI call above it asks with the GROUP BY, a window is not pulled through it, the tree knows the group."""
    call = f"{name}(t, t)" if name.startswith(("corr", "covar", "regr")) else f"{name}(t)"
    call = f"{name}(t, 'what?')" if name == "ai_agg" else call
    identity = AiIdentity(model="m")
    asked = plan_ai(
        f"SELECT ai_gen(concat('how', {call})) AS x FROM r GROUP BY u", results_table="a", identity=identity
    )
    assert asked.errors == () and "GROUP BY u" in asked.calls[0].request_sql
    tree = build(f"SELECT {call} AS x FROM r")
    assert isinstance(tree, SelectNode) and tree.aggregate
    split = split_clock(f"SELECT {call} AS x FROM r WHERE ts > now()", {"r": {"t": "int", "ts": "timestamp"}})
    assert not split.pullable and "aggregate" in split.reason


@pytest.mark.parametrize("name", [name for name, f in catalogue().items() if f.level in PINNED])
def test_every_function_of_one_value_per_run_is_pinned_under_its_level(name: str) -> None:
    found = pin(f"SELECT {name}() AS x", PINS)
    assert set(found.used) == {name} and pin_level(name) == level_of(name)
    if Mark.KEYWORD in catalogue()[name].marks:
        assert set(pin(f"SELECT {name} AS x", PINS).used) == {name}


@pytest.mark.parametrize("word", CLOCK_WORDS)
def test_every_word_of_the_clock_is_pinned_as_the_clock(word: str) -> None:
    forms = [f"{kind}'{word}'" for kind in CASTING_TYPES] + [f"{call}('{word}')" for call in CASTING_CALLS]
    for form in [*forms, f"cast(' {word.upper()} ' as date)", f'"{word}"::timestamp']:
        used = pin(f"SELECT {form} AS x", PINS).used
        assert [pin_level(name) for name in used] == [Level.COMMAND], form


def lists_of_functions(tree: ast.AST) -> Iterator[ast.expr]:
    """Literals of four and more names that the table tells apart: aggregates, generators, windows, what is pinned. A
    dict that says of each name what it means is no list."""
    told = {name for name, f in catalogue().items() if f.kind in (Kind.AGGREGATE, Kind.GENERATOR, Kind.WINDOW)}
    told |= {name for name, f in catalogue().items() if f.level in PINNED}
    for node in ast.walk(tree):
        if isinstance(node, ast.Set | ast.List | ast.Tuple) and len(node.elts) > 3:
            names = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            if len(names) == len(node.elts) and {name.lower() for name in names} <= told:
                yield node


def test_no_other_list_names_functions() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sorted(ROOT.rglob("*.py"))
        for node in lists_of_functions(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == []
