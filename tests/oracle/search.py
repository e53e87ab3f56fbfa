"""Look for wrong tables among so many queries; what is found is shrunk. Also a program:

python tests/oracle/search.py FIRST LAST [HISTORIES [PROCESSES]]    queries FIRST … LAST - 1
python tests/oracle/search.py --replay SEED.HISTORY     shrink one example and show the run's statements
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from random import Random

import duckdb
from duck_sql import Untranslated
from engine import Database, Model
from grammar import Drawn, draw_query
from histories import History, draw_history, draw_menu
from pairs import Tally, Wrong, comparable, live
from shrinking import shrink

from spark_mv.maintenance.errors import RefusedError

STEPS = 3
CHUNK = 20
"""Queries that a process looks at with one database."""


@dataclass
class Seen:
    """What a search met: how many queries of which kind, and what their runs did."""

    tally: Tally = field(default_factory=Tally)
    queries: Counter[str] = field(default_factory=Counter)

    def add(self, other: Seen) -> None:
        self.queries += other.queries
        self.tally.add(other.tally)

    def __str__(self) -> str:
        return f"queries: {dict(self.queries.most_common(15))}\n{self.tally}"


@dataclass(frozen=True)
class Example:
    """A wrong table, to be found again by its seed: that of the query and the number of the history."""

    query: int
    history: int
    drawn: Drawn
    changes: History
    wrong: Wrong

    @property
    def seed(self) -> str:
        return f"{self.query}.{self.history}"

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.wrong.strategy}, {self.wrong.kind}: {self.wrong.what}\n{self.drawn.sql};\n"
            f"-- unique_key: {', '.join(self.drawn.key)}\n{self.changes}"
        )


def model_of(database: Database, drawn: Drawn, seen: Seen) -> Model | None:
    """The model, or None where its tables cannot be compared; `seen` says why."""
    try:
        model = Model(drawn.sql, drawn.key, database)
        why = comparable(drawn.sql, drawn.key, model.analysis)
        if not why:
            model.query(0)
            database.columns(model.rewritten(0).sql)
    except RefusedError as error:
        why = f"refused: {str(error).split(':')[0][:40]}"
    except Untranslated as error:
        why = "not translated"
        seen.tally.untranslated[str(error)[:200]] += 1
    except duckdb.Error as error:
        why = "not understood by DuckDB"
        seen.tally.untranslated[f"{str(error).splitlines()[0]}: {drawn.sql}"[:200]] += 1
    seen.queries[why or "compared"] += 1
    return None if why else model


def histories_of(seed: int, model: Model, count: int) -> Iterator[History]:
    menu = draw_menu(Random(seed), model.tables, model.clocked)
    for number in range(count):
        yield draw_history(Random(seed * 1000 + number), model.tables, menu, STEPS)


def search(database: Database, seeds: Iterable[int], count: int, seen: Seen) -> Iterator[Example]:
    """Wrong tables among the queries of these seeds, each with so many histories: one example for each query."""
    for seed in seeds:
        drawn = draw_query(seed)
        model = model_of(database, drawn, seen)
        if model is None:
            continue
        for number, history in enumerate(histories_of(seed, model, count)):
            wrong = live(model, history, seen.tally)
            if wrong is not None:
                yield Example(seed, number, drawn, history, wrong)
                break


def shrunk(database: Database, example: Example, seconds: float = 60.0) -> Example:
    """The same fault in a smaller query and history."""
    key = example.drawn.key

    def wrong(sql: str, history: History) -> Wrong | None:
        try:
            model = model_of(database, Drawn(sql, key), Seen())
            return live(model, history, Tally()) if model is not None else None
        except Exception:  # half a query
            return None

    def fails(sql: str, history: History) -> bool:
        return example.wrong.same_as(wrong(sql, history))

    sql, history = shrink(example.drawn.sql, example.changes, fails, seconds)
    found = wrong(sql, history)
    return Example(example.query, example.history, Drawn(sql, key), history, found) if found else example


def main(words: list[str]) -> None:
    database, seen = Database(), Seen()
    if words[0] == "--replay":
        query, _, history = words[1].partition(".")
        found = list(search(database, [int(query)], int(history or 50) + 1, seen))
        for example in found:
            small = shrunk(database, example)
            print(example, small, *small.wrong.statements, sep="\n\n")
    else:
        first, last, *more = map(int, words)
        count, processes = (*more, 20, 1)[0], (*more[1:], 1)[0]
        chunks = [(range(at, min(at + CHUNK, last)), count) for at in range(first, last, CHUNK)]
        for number, (found, part) in enumerate(_each(chunks, processes)):
            seen.add(part)
            for text in found:
                print(text, end="\n\n")
            print(
                f"-- {number + 1} of {len(chunks)}: {seen.queries.total()} queries, {seen.tally.pairs} pairs",
                flush=True,
            )
            if number % 10 == 9:
                print(seen, flush=True)
    print(seen)


def look(chunk: tuple[Iterable[int], int]) -> tuple[list[str], Seen]:
    """What one process finds among so many queries, made small."""
    database, seen = Database(), Seen()
    return [str(shrunk(database, example)) for example in search(database, *chunk, seen)], seen


def _each(chunks: list[tuple[range, int]], processes: int) -> Iterator[tuple[list[str], Seen]]:
    if processes == 1:
        yield from map(look, chunks)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(look, chunks)


if __name__ == "__main__":
    main(sys.argv[1:])
