"""Writes docs/reference/faults.md from what the tests counted.

FAULTS_COUNTED=build/faults.jsonl pytest -m slow integration_tests/incremental/test_faults.py integration_tests/incremental/test_interleavings.py
FAULTS_COUNTED=build/faults.jsonl pytest integration_tests/servers/test_killed_dbt.py integration_tests/servers/test_killed_client.py integration_tests/servers/test_full_disk.py integration_tests/servers/test_racing_clients.py
FAULTS_COUNTED=build/faults.jsonl pytest -m slow integration_tests/incremental/test_pairs.py
FAULTS_COUNTED=build/faults.jsonl FORMAT=iceberg pytest -m slow integration_tests/iceberg/test_pairs.py
python docs_build/faults.py build/faults.jsonl
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "faults.md"
FAULTS = ("error", "answer lost", "engine away", "away behind", "killed before", "killed behind")
HEAD = """# Faults and interleavings

What the tests do to a run, and what came of it: the figures are counted by the tests themselves
(`integration_tests/incremental/test_faults.py`, `test_interleavings.py`, `integration_tests/servers/test_killed_dbt.py`, `test_killed_client.py`, `test_full_disk.py`, `test_racing_clients.py`, `test_pairs.py`) and put into this page by
`docs_build/faults.py`. A few of them are part of each test run, drawn from a seed.

## What is promised, and what is not

| | |
|---|---|
| a run fails or dies, at any statement | its table is the old one or the new one; [one commit](../concepts/one-commit.md) publishes rows and bookkeeping |
| the next run, in whatever process | makes of it what the query gives; kept values stand where they stood; staging tables of the dead run are dropped |
| two runs at one model | one publishes, or each after the other; the one that lost says `TURN_TAKEN` and has changed nothing |
| others write to the table, compact, vacuum or restore it during a run | the next run puts the rows right, with the values that our runs kept |
| others write to the source during a run | the run is the query over the version that its record names; the next one takes in the rest |
| an answer of an AI function that a run was paid | is read from `ai_results` by every later run, whatever became of this one |

Not promised:

- A run whose connection breaks while it publishes may have published and report an error: nobody is left who could look. The next run sees which it was.
- Answers that were under way when a process died are paid again: those that are not appended yet, of `chunk_seconds`, two appends and a request ([AI functions](../ai.md#how-the-job-asks)).
- Two processes that meet the same new input at the same moment both ask for it. Runs of one process wait for each other.
- The staging tables of a run that died where several processes share the catalogue stay for a day: until then nobody can know that it is dead.
- Delta's own log is taken for what it says it is: atomic commits of the storage underneath. A disk that loses what it has acknowledged is not tested.
"""
FAULT_WORDS = """
## A fault at a statement

A model of each strategy runs over a source that has changed, and at one statement of the run something goes wrong: the statement fails (*error*); it
is executed and its answer is lost; the engine answers nothing any more from there on, the statement unsent (*engine away*) or executed (*away behind*);
the process is gone before the statement or right behind it, and nothing cleans up after it. First runs are struck, too. After each fault the table must be the old one or the new one, row for row,
with each kept value where it stood. Then comes a next run: as it is, in another session, or with `--full-refresh`; or one that is struck again, up
to three in a row. After the whole run at the end the table must be what the query gives, and no staging table may be left. An answer of an AI
function may be paid twice only where the fault took the statement that was to keep it.

The process is gone as far as the run can tell: none of its statements is sent any more, and rows that it held in memory are lost.
"""


def main(counted: Path) -> None:
    lines = [json.loads(line) for line in counted.read_text(encoding="utf-8").splitlines()]
    faults: Counter[tuple[str, ...]] = Counter()
    pairs: Counter[tuple[str, ...]] = Counter()
    wrong: Counter[tuple[str, ...]] = Counter()
    said: Counter[tuple[str, ...]] = Counter()
    kills: Counter[tuple[str, ...]] = Counter()
    disks: Counter[tuple[str, ...]] = Counter()
    races: Counter[tuple[str, ...]] = Counter()
    threads: Counter[tuple[str, ...]] = Counter()
    kinds = {
        "pair": pairs,
        "wrong": wrong,
        "said": said,
        "kill": kills,
        "full disk": disks,
        "race": races,
        "threads": threads,
    }
    for *key, number in lines:
        kinds.get(key[0], faults)[tuple(key)] += number
    made = [
        _faults(faults, wrong["wrong", "faults"]) if faults else "",
        _kills(kills, wrong["wrong", "kills"]) if kills else "",
        _disks(disks, wrong["wrong", "full disks"]) if disks else "",
        _pairs(pairs, said, wrong["wrong", "orders"]) if pairs else "",
        _races(races, wrong["wrong", "races"]) if races else "",
        _threads(threads, wrong["wrong", "threads"]) if threads else "",
    ]
    before = _parts(PAGE.read_text(encoding="utf-8"))
    parts = [new or before.get(_title(words), "") for new, words in zip(made, WORDS, strict=True)]
    PAGE.write_text(HEAD + "".join(parts), encoding="utf-8")


def _title(text: str) -> str:
    return next((line for line in text.splitlines() if line.startswith("## ")), "")


def _parts(page: str) -> dict[str, str]:
    """The parts of the page by their headings: those of which the file counts nothing stay as they are."""
    return {_title(part): part for part in re.split(r"(?=^\n## )", page, flags=re.MULTILINE)}


def _faults(found: Counter[tuple[str, ...]], wrong: int) -> str:
    """Keys: model, held or staged, step, fault, old or new, next run."""
    steps = sorted({key[2] for key in found})
    rows = [
        [step, *(_outcome(found, step, fault) for fault in FAULTS), str(_sum(found, lambda k, s=step: k[2] == s))]
        for step in steps
    ]
    nexts = ", ".join(f"{name} {n}" for name, n in _by(found, 5))
    models = ", ".join(f"{name} {n}" for name, n in _by(found, 0))
    return (
        f"{FAULT_WORDS}\n{sum(found.values()) + wrong} faults, after {wrong} of which something was wrong: the table, a kept value lost or moved, a "
        "staging table left, or an answer paid twice that was kept.\n\n"
        "By what the run was doing, and how often the old (o) or the new table (n) stood there before the next run:\n\n"
        f"{_table(['step', *FAULTS, 'all'], rows)}\n\nBy model: {models}. Next run: {nexts}. "
        f"Staged rows held in memory: {_sum(found, lambda k: k[1] == 'held')}, in tables: {_sum(found, lambda k: k[1] == 'staged')}.\n"
    )


def _outcome(found: Counter[tuple[str, ...]], row: str, column: str, place: int = 2) -> str:
    """`place`: where a key says row, column, and old or new."""
    old, new = (_sum(found, lambda k, w=was: k[place : place + 3] == (row, column, w)) for was in ("old", "new"))
    return " ".join(f"{n} {word}" for n, word in ((old, "o"), (new, "n")) if n) or "–"


KILL_WORDS = """
## kill -9

A process that runs dbt, the Spark that it started, or both get SIGKILL at a moment of a run that is drawn from a seed. The model keeps random values and
answers of an AI function, and its source changes before each run. Then another process looks at the table, which must be the old one or the new one,
and runs dbt: the table must be what the query gives, with the kept values, and no staging table may be left. Asked again may be what was
paid and is not in `ai_results`.

A *client of a server* runs a model over Spark Connect and is killed before a statement, right behind it, or while the server works at it; the server lives on and
finishes what it was sent. Up to five in a row are killed, then comes a whole run. 30 of them are part of each test run.
"""


def _kills(found: Counter[tuple[str, ...]], wrong: int) -> str:
    """Keys: "kill", what was killed, the run, old or new; or "kill", what was killed, "asked again"."""
    kills = Counter({key: n for key, n in found.items() if len(key) == 4})
    whens = ("first run", "run", "behind a run")
    rows = [
        [victim, *(_outcome(kills, victim, when, 1) for when in whens), str(_sum(kills, lambda k, v=victim: k[1] == v))]
        for victim, _ in _by(kills, 1)
    ]
    again = _sum(found, lambda k: k[2] == "asked again")
    return (
        f"{KILL_WORDS}\n{sum(kills.values()) + wrong} kills, after {wrong} of which something was wrong. Answers asked again: {again}.\n\n"
        f"{_table(['killed', *whens, 'all'], rows)}\n"
    )


DISK_WORDS = """
## A full disk

The warehouse is on a disk of its own, of which a run finds so few KiB left as a seed draws. Then there is room again, and another process looks and runs dbt, as above.
"""


def _disks(found: Counter[tuple[str, ...]], wrong: int) -> str:
    """Keys: "full disk", whether the run ended (DONE, FULL), old or new."""
    full, enough = (_sum(found, lambda k, e=end: k[1] == e) for end in ("FULL", "DONE"))
    new = _sum(found, lambda k: k[1:] == ("FULL", "new"))
    return f"{DISK_WORDS}\n{full} runs found the disk full, after {wrong} of which something was wrong; {new} of them had published. {enough} had room enough.\n"


PAIR_WORDS = """
## Two at one model

A run stops before each of its statements and looks at a log that concern more than its own staging tables; there another one does its work,
whole or up to a point of its own. Operations are the other one, too: what `forget_values` asks has to be drawn anew exactly once.
Every version that a run published is compared with the query over the versions of the source and at the instant that its record names;
who lost must say so and must have published nothing; and the next run must give what the query gives, with the kept values.
The two are as in two processes: each asks the AI model without waiting for the other.
"""


def _pairs(found: Counter[tuple[str, ...]], said: Counter[tuple[str, ...]], wrong: int) -> str:
    """Keys: "pair", model, the other one, what was counted; `said`: "said", the other one, who lost, its code."""
    others = list(dict.fromkeys(key[2] for key in found))
    words = ("orders", "published", "lost", "versions checked", "paid twice")
    rows = [
        [other, *(str(_sum(found, lambda k, o=other, w=word: k[2:] == (o, w))) for word in words)] for other in others
    ]
    total = _sum(found, lambda k: k[3] == "orders")
    codes = ", ".join(f"`{code}` {n}" for code, n in _by(said, 3)) or "nothing"
    models = ", ".join(
        f"{name} {n}" for name, n in _by(Counter({k: n for k, n in found.items() if k[3] == "orders"}), 1)
    )
    return (
        f"{PAIR_WORDS}\n{total + wrong} orders, after {wrong} of which something was wrong: a version that was not the query's, a value moved, or an "
        f"error that did not say what happened.\n\n{_table(['a run and', *words], rows)}\n\nBy model: {models}. Those that lost said: {codes}.\n"
    )


RACE_WORDS = """
## Two processes at one model

Two processes run one model over Spark Connect at the same time, each begun a random moment after the other; in a third of the races the source changes while they work, too. At least
one publishes; who lost says `TURN_TAKEN` and has published nothing; every version that was published is the query over the versions and at the instant that its record
names; no kept value moves; the next run makes of it what the query gives.
"""


def _races(found: Counter[tuple[str, ...]], wrong: int) -> str:
    """Keys: "race", model, what the second one was, what was counted."""
    others = list(dict.fromkeys(key[2] for key in found))
    words = ("races", "published", "lost", "versions checked")
    rows = [
        [other, *(str(_sum(found, lambda k, o=other, w=word: k[2:] == (o, w))) for word in words)] for other in others
    ]
    total = _sum(found, lambda k: k[3] == "races")
    return f"{RACE_WORDS}\n{total + wrong} races, after {wrong} of which something was wrong.\n\n{_table(['a run and', *words], rows)}\n"


THREAD_WORDS = """
## Two threads at one model

Two sessions of one process run one model at the same moment, from a state that a change of the source has just been drawn for; every seventh time the table is not there yet, every ninth
time both make it anew, and in a third of them the source changes once more while they work. One of them publishes, or both, one behind the other; who lost says `TURN_TAKEN`; no key is
doubled, no kept value moves, and the next run makes of the table what the query gives.
"""


def _threads(found: Counter[tuple[str, ...]], wrong: int) -> str:
    """Keys: "threads", the table's format, what was counted."""
    words = ("pairs", "published", "lost", "nothing to do")
    rows = [
        [name, *(str(_sum(found, lambda k, o=name, w=word: k[1:] == (o, w))) for word in words)]
        for name, _ in _by(found, 1)
    ]
    total = _sum(found, lambda k: k[2] == "pairs")
    return f"{THREAD_WORDS}\n{total + wrong} pairs, after {wrong} of which something was wrong.\n\n{_table(['format', *words], rows)}\n"


WORDS = (FAULT_WORDS, KILL_WORDS, DISK_WORDS, PAIR_WORDS, RACE_WORDS, THREAD_WORDS)


def _sum(found: Counter[tuple[str, ...]], which: Callable[[tuple[str, ...]], bool]) -> int:
    return sum(number for key, number in found.items() if which(key))


def _by(found: Counter[tuple[str, ...]], place: int) -> Iterable[tuple[str, int]]:
    return ((name, _sum(found, lambda k, n=name: k[place] == n)) for name in dict.fromkeys(key[place] for key in found))


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
