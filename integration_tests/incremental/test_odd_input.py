"""Odd input is kept right or refused: keys and values of every type and content, odd names, clocks where days are odd.

Each case: a first run, changes with a run behind each, a run over nothing new, a full refresh. After each the table is the query's,
byte for byte, and a row that stays keeps its value. `FAULTS_COUNTED=file` says what came of each, for `docs_build/odd_input.py`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from integration_tests.counting import counted
from odd_inputs import CASES, Odd

from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.syntax.literals import json_text
from spark_mv.query.syntax.table_name import quoted

AS_OF = "2026-02-01 06:00:00"
QUICK = [pytest.param(one, id=one.name, marks=() if one.quick else pytest.mark.slow) for one in CASES]


class Table:
    """One case on its way from run to run."""

    def __init__(self, case: Odd, engine: Any) -> None:
        self.case, self.engine, self.kept = case, engine, {}
        self.strategies: list[str] = []

    def make(self) -> None:
        case, engine = self.case, self.engine
        how = f"using delta tblproperties ({case.properties})"
        engine.query("drop table if exists {schema}.src")
        engine.query(f"create table {{schema}}.src {case.ddl} {how}" + ("" if case.ddl else f" as {case.source}"))
        if case.ddl:
            engine.query(f"insert into {{schema}}.src {case.source}")
        engine.model(case.sql, unique_key=case.key, **case.config)

    def run(self, as_of: str = AS_OF, **how: Any) -> None:
        """By an incremental strategy where one applies; the table must be right, and what it keeps stay."""
        engine = self.engine
        engine.config["refresh"] = "auto" if how or not self.strategies else "incremental"
        try:
            run = engine.run(as_of, **how)
        except RefusedError as error:
            if "no incremental strategy applies" not in str(error):
                raise
            engine.config["refresh"] = "auto"
            run = engine.run(as_of, **how)
        self.strategies.append(run.plan.strategy)
        self.check(as_of)

    def check(self, as_of: str) -> None:
        engine = self.engine
        columns = engine.query(f"describe table {engine.table}")
        texts = [
            (row["col_name"], row["data_type"]) for row in columns if row["col_name"] and row["col_name"][0] != "#"
        ]
        whole = ", ".join(exactly(*one) for one in texts if one[0] != "drawn")
        wanted = self.case.sql.replace("uuid() as drawn", "1 as drawn")
        for clock in ("current_timestamp()", "localtimestamp()", "current_date()"):
            kind = {"current_date()": "date", "localtimestamp()": "timestamp_ntz"}.get(clock, "timestamp")
            wanted = wanted.replace(clock, f"cast(timestamp'{as_of}' as {kind})")
        found = Counter(engine.rows_of(f"select {whole} from {engine.table}"))
        right = Counter(engine.rows_of(f"select {whole} from ({wanted})"))
        assert found == right, f"{engine.steps} {self.strategies}: missing {right - found}, too many {found - right}"
        names = [self.case.key] if isinstance(self.case.key, str) else self.case.key
        kinds = {name.lower(): kind for name, kind in texts}
        key = ", ".join(exactly(name, kinds[name.lower()]) for name in names)
        now = {row[:-1]: row[-1] for row in engine.rows_of(f"select {key}, drawn from {engine.table}")}
        moved = [one for one, value in self.kept.items() if one in now and now[one] != value]
        assert not moved, f"{engine.steps} {self.strategies}: drawn again {moved}"
        self.kept = now


def exactly(name: str, kind: str) -> str:
    """A column's value as text that differs whenever the value does. For Spark, -0.0 and 0.0 are one value."""
    column = quoted(name)
    if kind in ("double", "float"):
        return json_text(f"({column} + cast(0 as {kind}))")
    if kind.startswith(("string", "char", "varchar")):
        return f"hex(cast(cast({column} as string) as binary))"
    return json_text(column)


class TestOddInput:
    @pytest.mark.parametrize("case", QUICK)
    def test_it_is_kept_right_or_refused(self, engine: Any, case: Odd) -> None:
        table, session = Table(case, engine), engine.adapter.mv_spark()
        zone = session.conf.get("spark.sql.session.timeZone")
        session.conf.set("spark.sql.session.timeZone", case.zone)
        try:
            said = self.refusal(table) if case.refused else self.history(table)
        finally:
            session.conf.set("spark.sql.session.timeZone", zone)
        counted({("odd", case.group, case.name, said): 1})

    def history(self, table: Table) -> str:
        table.make()
        table.run()
        for change in table.case.changes:
            table.engine.query(change)
            table.run()
        for as_of in table.case.then:
            table.run(as_of)
        last = table.case.then[-1] if table.case.then else AS_OF
        table.run(last)
        assert table.strategies[-1] == "NO_OP", (table.strategies, table.engine.steps)
        table.run(last, full_refresh=True)
        return "kept right by " + ", ".join(dict.fromkeys(table.strategies[1:-2]))

    def refusal(self, table: Table) -> str:
        """At the first run, or at one behind the changes."""
        with pytest.raises(Exception, match=table.case.refused) as refused:
            table.make()
            table.run()
            for change in table.case.changes:
                table.engine.query(change)
            table.run()
        if table.strategies:
            assert {row[-1] for row in table.engine.rows_of(f"select drawn from {table.engine.table}")} == set(
                table.kept.values()
            )
        return str(refused.value).splitlines()[0]
