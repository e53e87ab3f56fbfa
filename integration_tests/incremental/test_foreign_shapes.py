"""Shapes of queries that incremental maintenance once got wrong, and their kin, on real tables: after a change, the table
of each must be what its query gives."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from direct import Direct, Model, Pool
from foreign_shapes import Case, Step, read

SCHEMA = "foreign_shapes"
STEPS = read("foreign_shapes.sql")


@dataclass
class History:
    """What became of each case: what was wrong, and the strategy of its second run."""

    wrong: list[str] = field(default_factory=list)
    strategies: dict[str, str] = field(default_factory=dict)


def model_of(case: Case) -> Model:
    return Model(SCHEMA, re.sub(r"\W+", "_", case.name), case.in_schema(SCHEMA), {"unique_key": list(case.key)})


def compare(session: Direct, case: Case, model: Model, step: Step, found: History) -> None:
    try:
        run = model.run_incrementally(session, step.instant)
        got, wanted = session.bag(f"select * from {model.table}"), session.bag(case.at(SCHEMA, step.instant))
    except Exception as error:  # every case is to be seen
        found.wrong.append(f"{case.name}: {type(error).__name__} {str(error)[:600]}")
        return
    found.strategies[case.name] = run.plan.strategy
    if got != wanted:
        found.wrong.append(
            f"{case.name} ({run.plan.strategy}): missing {dict(wanted - got)}, too many {dict(got - wanted)}"
        )
    if session.warnings:
        found.wrong.append(f"{case.name}: {session.warnings}")


def live(spark: Any, slow: bool) -> History:
    """Take the cases that are `slow`, or those that are not, through the history."""
    pool, found = Pool(spark), History()
    session = pool.first
    session.query(f"drop schema if exists {SCHEMA} cascade")
    session.query(f"create schema {SCHEMA}")
    before = STEPS[0]
    for step in STEPS:
        models = {case: model_of(case) for case in step.cases if case.always is not slow}

        def create(session: Direct, case: Case, models: dict[Case, Model] = models, at: str = before.instant) -> None:
            try:
                models[case].run(session, at)
            except Exception as error:
                found.wrong.append(f"{case.name}, first run: {type(error).__name__} {str(error)[:600]}")

        def again(session: Direct, case: Case, models: dict[Case, Model] = models, step: Step = step) -> None:
            compare(session, case, models[case], step, found)

        pool.each(create, list(models))
        for statement in step.statements:
            session.query(statement.replace("{schema}", SCHEMA))
        pool.each(again, list(models))
        before = step
    session.query(f"drop schema if exists {SCHEMA} cascade")
    return found


def check(found: History) -> None:
    print(Counter(found.strategies.values()))
    assert not found.wrong, "\n".join(found.wrong)


def test_every_table_is_what_its_query_gives(spark: Any) -> None:
    found = live(spark, slow=False)
    check(found)
    assert {"ROW_BASED", "GROUP_AGGREGATE", "WINDOW_FUNCTION"} <= set(found.strategies.values())


@pytest.mark.slow
def test_every_other_table_is(spark: Any) -> None:
    check(live(spark, slow=True))
