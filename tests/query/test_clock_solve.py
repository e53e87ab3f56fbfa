"""Predicates solved for the clock: the pairs in fixtures/clock_bounds.txt, and what the zones are known to do.

That the bounds are right is shown on Spark by integration_tests/query/test_clock_bounds.py; here they may not change
unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from spark_mv.query.solver.bounds import both, either
from spark_mv.query.solver.numbers import whole_threshold
from spark_mv.query.solver.solve import Bounds, solve, solve_or_reason
from spark_mv.query.solver.zone import zone_facts, zone_of

TYPES = {"ts": "timestamp", "d": "date", "n": "int", "s": "string", "z": "timestamp_ntz", "e": "bigint"}
FIXTURE = Path(__file__).parent / "fixtures" / "clock_bounds.txt"


def cases() -> Iterator[tuple[str, str, dict[str, str]]]:
    """(zone, predicate, what it gives) per case of the fixture."""
    zone, predicate, found = "", "", {}
    for line in [*FIXTURE.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("zone:"):
            zone = line.removeprefix("zone:").strip()
        elif line.startswith("    "):
            key, _, value = line.strip().partition(": ")
            found[key] = value
        elif predicate and not line.strip():
            yield zone, predicate, found
            predicate, found = "", {}
        elif line.strip() and not line.startswith("#"):
            predicate = line


@pytest.mark.parametrize(("zone", "predicate", "wanted"), list(cases()))
def test_bounds(zone: str, predicate: str, wanted: dict[str, str]) -> None:
    result = solve_or_reason(predicate, TYPES, zone or None)
    if isinstance(result, str):
        found: dict[str, str | None] = {"unsolved": result}
    else:
        found = {"from": result.valid_from, "to": result.valid_to, "guard": result.guard}
    assert {key: value for key, value in found.items() if value is not None} == wanted


def test_a_parsed_predicate_is_solved_too() -> None:
    where = sqlglot.parse_one("select 1 from t where d >= date_sub(current_date(), 3)", dialect="spark").args["where"]
    assert solve(where.this, TYPES, "UTC") == Bounds(None, "CAST(date_add(d, 4) AS TIMESTAMP)", "d IS NOT NULL")


def test_a_column_named_like_the_clock_is_a_column() -> None:
    assert solve("current_date > now()", {"current_date": "date"}, "UTC") == Bounds(
        None, "CAST(current_date AS TIMESTAMP)", "current_date IS NOT NULL"
    )


def test_and_meets_or_joins() -> None:
    late, early = Bounds("a", None, "a IS NOT NULL"), Bounds(None, "b", "b IS NOT NULL")
    assert both(late, early) == Bounds("a", "b", "a IS NOT NULL AND b IS NOT NULL")
    assert either(late, early) is None
    assert either(Bounds(), early) == Bounds()


@pytest.mark.parametrize(
    ("zone", "fixed", "monotone", "whole", "clear"),
    [
        ("UTC", True, True, True, True),
        ("+05:30", True, True, False, True),
        ("GMT-3", True, True, True, True),
        ("Asia/Kolkata", True, True, False, True),
        ("America/New_York", False, True, True, True),
        ("America/St_Johns", False, False, False, False),
        ("Asia/Beirut", False, True, True, False),
        ("America/Havana", False, True, True, False),
        ("Australia/Lord_Howe", False, True, False, False),
    ],
)
def test_zones(zone: str, fixed: bool, monotone: bool, whole: bool, clear: bool) -> None:
    facts = zone_facts(zone)
    assert (facts.fixed, facts.monotone_dates, facts.whole_hours, facts.clear_midnights) == (
        fixed,
        monotone,
        whole,
        clear,
    )


def test_an_unknown_zone_is_an_error_with_its_name() -> None:
    with pytest.raises(ValueError, match="Nowhere/Land"):
        zone_of("Nowhere/Land")


@given(
    number=st.one_of(
        st.decimals(-40, 40, places=16, allow_nan=False),
        st.fractions(-40, 40, max_denominator=30).map(lambda f: Decimal(repr(float(f)))),
    ),
    divisors=st.lists(st.integers(1, 90), min_size=1, max_size=2),
    strict=st.booleans(),
)
def test_thresholds_are_those_of_doubles(number: Decimal, divisors: list[int], strict: bool) -> None:
    """Spark divides whole numbers as doubles, as Python does: the threshold is where the comparison becomes true."""
    text = "datediff(current_date(), d)" + "".join(f" / {divisor}" for divisor in divisors)
    sign = ">" if strict else ">="
    tree = sqlglot.parse_one(f"select 1 from t where {text} {sign} {number:f}", dialect="spark").args["where"].this
    found = whole_threshold(tree.left, tree.right, strict)
    assert found is not None
    least = int(found[1].sql)

    def holds(whole: int) -> bool:
        quotient = float(whole)
        for divisor in divisors:
            quotient /= divisor
        return quotient > float(number) if strict else quotient >= float(number)

    assert holds(least) and not holds(least - 1)


@pytest.mark.parametrize("most", ["2147483647", "n"])
def test_no_limit_is_a_number_that_dates_can_bear(most: str) -> None:
    """In a run of this age: 2,800,000 days are 7,666 years."""
    found = solve_or_reason(f"datediff(current_date(), d) <= {most}", {"d": "date", "n": "int"}, "UTC")
    assert not isinstance(found, str) and "2800000" in (found.valid_to or "")
