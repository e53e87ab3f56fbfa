"""100 models over TPC-H beside `create or replace table … as` of the same: `python benchmarks/hundred.py [--scale 0.1] [--rounds 2] [--models stg_orders …] [--ways]`.

The models are the 22 queries and those of tests/query/tpch/models.sql. In one session that ten of them have warmed: the first run of
each; rounds in which 0.1 % of orders and lines come, as many go, one row of a dimension is edited and a day passes; then a run with nothing to
do. In each phase `table` comes by turns before and behind the run. Then each table is compared with its query, but for what is drawn. With `--ways`
each model lives by each way instead, and how often the quickest was chosen is counted, as in choice.py.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from choice import WAYS, judged
from small import Timed, opened, show, timed

sys.path.insert(0, str(Path(__file__).parents[1] / "integration_tests" / "incremental"))
from direct import Model
from tpch import generate, load, models, on_day, queries, refresh, without_draws

SCHEMA = "tpch"
PHASES = ("first run", "changed", "unchanged")
ONE_ROW = (
    "update tpch.customer set c_acctbal = c_acctbal + 1000, c_name = concat(c_name, '.') where c_custkey = {n}",
    "update tpch.part set p_name = concat(p_name, '.'), p_size = 15 where p_partkey = {n}",
    "update tpch.supplier set s_acctbal = s_acctbal - 1, s_name = concat(s_name, '.') where s_suppkey = {n}",
    "update tpch.partsupp set ps_supplycost = ps_supplycost + 1 where ps_partkey = {n}",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", default="0.1")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--models", nargs="*", default=[*models(), *queries()])
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--ways", action="store_true")
    words = parser.parse_args()
    with opened(words.memory) as (session, home):
        generate(words.scale, home / "data")
        load(session, SCHEMA, home / "data")
        session.query(f"use {SCHEMA}")
        hundred = Hundred(session, words.models)
        hundred.choose(words.rounds) if words.ways else hundred.measure(words.rounds)


class Hundred:
    def __init__(self, session: Timed, names: list[str]) -> None:
        self.session, self.names, self.day = session, names, 1
        self.texts = {**models(), **queries()}
        self.lives = {name: self._model(name, name) for name in names}
        self.times: dict[tuple[str, str], list[float]] = {}
        self.went: dict[tuple[str, str], str] = {}

    def measure(self, rounds: int) -> None:
        for name in self.names[:: max(len(self.names) // 10, 1)]:  # to warm up
            self.run(self._model(name, "warm"), "")
            self.table(name, "warm")
            self.session.query("drop table tpch.warm")
        self.each("first run")
        for number in range(1, rounds + 1):
            self.next_day(number)
            self.each("changed")
        for name in self.names:
            self.run(self.lives[name], "unchanged")
        show(self.names, self.times, self.went, PHASES)
        wrong = [name for name in self.names if not self.same(name)]
        print(f"compared with their queries: {len(self.names)}, wrong: {wrong or 'none'}")

    def choose(self, rounds: int) -> None:
        lives = {(name, way): self._model(name, f"{name}_{way}") for name in self.names for way in WAYS}
        for life in lives.values():
            life.run(self.session, f"{self.now} 00:00:00")
        found = []
        for number in range(1, rounds + 1):
            self.next_day(number)
            for turn, name in enumerate(self.names):

                def run(way: str, name: str = name) -> Any:
                    life, at = lives[name, way], f"{self.now} 00:00:00"
                    if way == "inc":
                        return life.run_incrementally(self.session, at)
                    return life.run(self.session, at, WAYS[way])

                found.append(judged(run, turn + number, f"{name:30}"))
        right = [one for one in found if one is not None]
        print(f"right: {sum(right)} of {len(right)}")

    def next_day(self, number: int) -> None:
        self.day += 1
        refresh(self.session, SCHEMA, number, ONE_ROW[number % len(ONE_ROW)].format(n=number))

    def each(self, phase: str) -> None:
        for number, name in enumerate(self.names):
            sides = [partial(self.run, self.lives[name], phase), partial(self.table, name, f"plain_{name}")]
            for side in reversed(sides) if (number + self.day) % 2 else sides:
                side()

    def run(self, model: Model, phase: str) -> None:
        self.session.seconds = []
        seconds, made = timed(lambda: model.run(self.session, f"{self.now} 00:00:00"))
        seconds -= sum(
            s for text, s in self.session.seconds if text.startswith("show tables")
        )  # dbt's own cache of relations
        if phase:
            self.times.setdefault((model.name, phase), []).append(seconds)
            self.went[model.name, phase] = f"{made.plan.strategy} {made.statements}"
            print(
                f"{phase:9} {model.name:30} {seconds:6.2f} s  {self.went[model.name, phase]}",
                file=sys.stderr,
                flush=True,
            )

    def table(self, name: str, table: str) -> None:
        text = on_day(self.texts[name][1], self.now)
        seconds, _ = timed(lambda: self.session.query(f"create or replace table tpch.{table} using delta as {text}"))
        if table != "warm":
            self.times.setdefault((name, "table"), []).append(seconds)

    def same(self, name: str) -> bool:
        """Whether the table is its query, by a sum of hashes over its rows. What is drawn is left out, and with a random filter the rows are."""
        asked = on_day(self.texts[name][1], self.now)
        text, columns = without_draws(asked)
        made, wanted = (
            self.session.query(f"select count(*), sum(cast(xxhash64(struct({columns})) as decimal(38, 0))) from {rows}")
            for rows in (self.lives[name].table, f"({text})")
        )
        return made == wanted or text != asked

    @property
    def now(self) -> str:
        return f"1998-08-{self.day:02}"

    def _model(self, name: str, table: str) -> Model:
        key, text = self.texts[name]
        return Model(SCHEMA, table, text, {"unique_key": key}, choose_by="seconds", followed=False)


if __name__ == "__main__":
    main()
