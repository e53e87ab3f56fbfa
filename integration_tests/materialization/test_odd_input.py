"""Odd input: a model for each case (odd_cases.py), all of them in one project that is run three times: first, after its sources changed, and once
more. Each time the table must be what its query gives, with the kept values where they stood; or the run says what is wrong and touches nothing.

With `ODD_COUNTED=file` what came of each case is written there, and `python docs_build/odd_input.py file` makes the page of it."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from dbt.tests.util import run_dbt
from integration_tests.materialization.odd_cases import CASES, GROUPS, Odd, Outcome, note
from integration_tests.under_format import FORMAT, in_format

from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.session.iceberg import stand_behind_delta

FIRST, SECOND = "2026-03-28 00:30:00+00:00", "2026-04-04 15:15:00+00:00"
"""Instants of the runs: between them Berlin skips an hour and Lord Howe repeats half of one."""
CLOCK = {
    "current_timestamp()": "timestamp'{at}'",
    "localtimestamp()": "cast(timestamp'{at}' as timestamp_ntz)",
    "current_date()": "cast(timestamp'{at}' as date)",
    "unix_timestamp()": "unix_seconds(timestamp'{at}')",
}
AS_JSON = (
    "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", "
    "'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)
"""How rows are written to be compared: every NULL, and microseconds, which to_json leaves out."""
TEXTS = {
    "{wide}": ", ".join(f"n * {k} as c{k}" for k in range(1000)),
    "{numbers}": ", ".join(str(10_000_000 + k) for k in range(200_000)),
    "{letters}": "x" * 1_000_000,
    "{levels}": "(" * 500 + "n" + " + 1)" * 500,
}


class World:
    """One case: its source, its table, and what both hold."""

    def __init__(self, case: Odd, schema: str, spark: Any) -> None:
        self.case, self.schema = case, schema
        self.session = spark.newSession() if case.header else spark
        if case.header:
            if FORMAT == "iceberg":
                stand_behind_delta(self.session)
            self.session.sql(case.header)
        self.source = f"{schema}.src_{case.name}"
        self.alias = str(case.config.get("alias", case.name))
        self.table = f"{schema}.{quoted(self.alias)}"
        self.before: dict[str, str] = {}

    def start(self) -> None:
        """The source with its first rows; those with n = 9 come later."""
        feed = f"'delta.enableChangeDataFeed' = '{str(self.case.feed).lower()}'"
        version = "'format-version' = '3'" if self.case.variants and FORMAT == "iceberg" else ""
        properties = ", ".join(filter(None, (feed, self.case.properties, version)))
        made = in_format(f"create table {self.source}{self.case.columns} using delta tblproperties ({properties})")
        first = (
            f"select * from ({self.case.rows}) where n <> 9" if self.case.rows.startswith("select") else self.case.rows
        )
        if self.case.columns:
            self.session.sql(made)
            self.session.sql(f"insert into {self.source} {first}")
        else:
            self.session.sql(f"{made} as {first}")
        if first != self.case.rows:
            self.session.sql(
                f"create or replace temporary view late_{self.case.name} as select * from ({self.case.rows}) where n = 9"
            )

    def change(self) -> None:
        for text in self.case.changes:
            self.session.sql(self.filled(text))

    def filled(self, text: str) -> str:
        for mark, value in TEXTS.items():
            text = text.replace(mark, value)
        return text.replace("{t}", self.source).replace("{late}", f"late_{self.case.name}")

    def model(self) -> str:
        config = {"materialized": "nondeterministic_mv", "unique_key": self.case.key, **self.case.config}
        if self.case.variants and FORMAT == "iceberg":
            config["tblproperties"] = {"format-version": "3"}
        header = f"{{% call set_sql_header(config) %}}{self.case.header}{{% endcall %}}\n" if self.case.header else ""
        sql = self.filled(self.case.sql.replace("{kept}", ", uuid() as drawn"))
        sql = sql.replace(f"{self.schema}.", "{{ target.schema }}.")
        return f"{{{{ config({', '.join(f'{k}={v!r}' for k, v in config.items())}) }}}}\n{header}{sql}\n"

    def wrong(self, at: str, drawn: bool = True) -> list[str]:
        """What is not as it must be."""
        query = self.filled(self.case.sql.replace("{kept}", ""))
        for word, literal in CLOCK.items():
            query = query.replace(word, literal.replace("{at}", at))
        as_text = f"to_json(struct(*), {AS_JSON})"
        names = [self.case.key] if isinstance(self.case.key, str) else self.case.key
        shown = self.case.key_shown or f"hex(to_json(struct({', '.join(map(quoted, names))}), {AS_JSON}))"
        rows = self.session.sql(
            f"select 'wanted', {as_text}, null from (select {self.case.shown} from ({query})) union all "
            f"select 'found', {as_text}, null from (select {self.case.shown} from (select * except (drawn) from {self.table})) union all "
            f"select 'kept', {shown}, drawn from {self.table}"
        ).collect()
        wanted, found = (Counter(str(text) for what, text, _ in rows if what == which) for which in ("wanted", "found"))
        problems = [f"the table lacks {n} x {row[:200]}" for row, n in (wanted - found).items()]
        problems += [f"the table has {n} x {row[:200]} too many" for row, n in (found - wanted).items()]
        now = {key: value for what, key, value in rows if what == "kept"}
        moved = [key for key, value in self.before.items() if key in now and now[key] != value]
        if moved:
            problems.append(f"{len(moved)} of {len(self.before)} kept values moved")
        if len(set(now.values())) != len(now) or None in now.values():
            problems.append("a draw is missing or repeated")
        self.before = now
        return problems


class OddInput:
    cases: tuple[Odd, ...] = ()

    @pytest.fixture(scope="class")
    def worlds(self, unique_schema: str, spark: Any) -> list[World]:
        return [World(case, unique_schema, spark) for case in self.cases]

    @pytest.fixture(scope="class")
    def models(self, worlds: list[World]) -> dict[str, str]:
        return {f"{world.case.name}.sql": world.model() for world in worlds}

    def run(self, worlds: list[World], at: str) -> dict[str, Any]:
        said = json.dumps({"as_of": at, "allow_future_as_of": True})
        results = run_dbt(["run", "--vars", said], expect_pass=None)
        return {result.node.name: result for result in results}

    def outcomes(self, worlds: list[World]) -> list[Outcome]:
        group_of = {case.name: group for group, cases in GROUPS.items() for case in cases}
        found = {w.case.name: Outcome(group_of[w.case.name], w.case.name, w.case.what) for w in worlds}

        def attempt(work: Any) -> Any:
            def one(world: World) -> None:
                try:
                    work(world)
                except Exception as error:
                    found[world.case.name].wrong.append(f"its source: {error}")

            return one

        each(attempt(World.start), worlds)
        for number, at in enumerate((FIRST, SECOND, SECOND)):
            if number == 1:
                each(attempt(World.change), [world for world in worlds if not world.case.refused])
            results = self.run(worlds, at)

            def look(world: World, results: Any = results, number: int = number, at: str = at) -> None:
                outcome, result = found[world.case.name], results[world.case.name]
                if str(result.status) != "success":
                    outcome.refused = outcome.refused or str(result.message)
                    if not re.search(world.case.refused or "$^", str(result.message), re.DOTALL):
                        outcome.wrong.append(f"run {number + 1}: {result.message}")
                    return
                outcome.says.append(result.adapter_response["strategy"])
                if world.case.refused:
                    outcome.wrong.append(f"run {number + 1} was not refused")
                try:
                    outcome.wrong += [f"run {number + 1}: {text}" for text in world.wrong(at)]
                except Exception as error:
                    outcome.wrong.append(f"run {number + 1} could not be compared: {error}")
                if number == 2 and outcome.says[-1] != "NO_OP":
                    outcome.wrong.append(
                        f"nothing to do, and the run was a {outcome.says[-1]}: {result.adapter_response['_message']}"
                    )

            each(look, worlds)
        return list(found.values())

    def test_every_case(self, project: Any, worlds: list[World]) -> None:
        outcomes = self.outcomes(worlds)
        note(outcomes)
        wrong = {outcome.name: outcome.wrong for outcome in outcomes if outcome.wrong}
        assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())


def each(work: Any, worlds: list[World]) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, worlds))


def in_this_format(case: Odd) -> bool:
    return FORMAT == "delta" or not case.delta_only


class TestSome(OddInput):
    """Every third one of the quick cases; all are in the groups below."""

    cases = tuple(case for case in CASES if case.quick and in_this_format(case))[::3]


def cases_of(group: str) -> tuple[Odd, ...]:
    """All of a group, or those that `ODD_CASES` names."""
    asked = os.environ.get("ODD_CASES", "")
    return tuple(case for case in GROUPS[group] if re.search(asked, case.name) and in_this_format(case))


@pytest.mark.slow
class TestNames(OddInput):
    cases = cases_of("Names")


@pytest.mark.slow
class TestKeys(OddInput):
    cases = cases_of("Keys")


@pytest.mark.slow
class TestValues(OddInput):
    cases = cases_of("Values")


@pytest.mark.slow
class TestTime(OddInput):
    cases = cases_of("Time")
