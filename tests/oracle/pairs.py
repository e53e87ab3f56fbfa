"""One model through one history: after each step, every strategy that says it applies must leave the table that the whole
query gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb
from duck_sql import Untranslated
from engine import LATER, Database, Model, Situation, execute
from grammar import all_rows
from histories import SCHEMAS, History, Step, Tables, applied, instant

from spark_mv.maintenance.errors import NotFollowed, RefusedError, RunFailed
from spark_mv.maintenance.plan import Plan
from spark_mv.maintenance.record import RunRecord
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.delta.restrict import NotIncremental
from spark_mv.query.functions.level import Level
from spark_mv.spark.run.as_of import utc_text

EPOCH = datetime.fromtimestamp(0, timezone.utc)


@dataclass(frozen=True)
class Wrong:
    """A table that is not what the query gives, a kept value that is not kept, or a run that broke. `step` counts from 0."""

    kind: str
    strategy: str
    step: int
    what: str
    statements: tuple[str, ...] = ()

    def same_as(self, other: Wrong | None) -> bool:
        return other is not None and other.kind == self.kind and other.strategy == self.strategy


@dataclass
class Tally:
    """What was seen. `pairs`: (query, history) pairs, each beginning of a history being one; `runs`: tables compared."""

    pairs: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    untranslated: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.pairs += other.pairs
        for name in ("runs", "skipped", "untranslated", "broken"):
            getattr(self, name).update(getattr(other, name))

    def __str__(self) -> str:
        lines = [f"{self.pairs} pairs, {self.runs.total()} tables: {dict(self.runs.most_common())}"]
        for name in ("skipped", "untranslated", "broken"):
            found: Counter[str] = getattr(self, name)
            if found:
                lines.append(f"{name}: {found.total()}")
                lines += [f"  {n:6} {what}" for what, n in found.most_common(12)]
        return "\n".join(lines)


def live(model: Model, history: History, tally: Tally, only: int | None = None) -> Wrong | None:
    """What went wrong first, or None. Plans that DuckDB cannot execute are counted. `only`: large tables or not."""
    database = model.database
    names = [c.name for c in model.rewritten(history.hour).columns]
    keys = [names.index(k) for k in _spelled(model.key, names)]
    compared = [k for k, c in enumerate(model.analysis.columns) if not c.kept]
    if len(model.analysis.columns) != len(names):
        tally.skipped["columns not told apart"] += 1
        return None
    steps = (Step((), history.hour), *history.steps)
    states: list[Tables] = []
    for step in steps:
        after = applied(states[-1] if states else history.rows, step.ops)
        if after is None:
            break
        states.append(after)
    if not states:
        return None
    wanted: Counter[Any] = Counter()
    database.load(states, [step.ops for step in steps[: len(states)]])
    before, record, held = history.hour, None, Held(keys, [k for k in range(len(names)) if k not in compared])
    for number, step in enumerate(steps[: len(states)]):
        database.at(number)
        hour, whole, base = step.hour, f"whole_{number % 2}", f"whole_{1 - number % 2}"
        database.con.execute(f"create or replace temp table {whole} as {model.query(hour)}")
        held.before(wanted)
        wanted = database.bag(f"from {whole}")
        # of rows that share a key beyond the LIMIT, any may be the last one
        beyond = database.bag(model.unlimited(hour)) if model.limited else wanted
        if _keys_broken(beyond, keys):
            tally.skipped["keys that are not unique"] += 1
            record = None
            continue
        last, record = record, None
        if last is not None:
            tally.pairs += 1
            for plan in model.plans(_situation(model, step, before, last.next_change_at, history.large)):
                found = _run(model, plan, number - 1, base, wanted, compared, held, last, tally)
                if isinstance(found, Wrong):
                    return found
                record = found or record
        if record is not last or record is None:  # a run that finds nothing to do leaves no record
            before = hour
        if record is None and number + 1 < len(states):
            record = _first(model, hour)
    return None


@dataclass
class Held:
    """Values that a row keeps for as long as its key is there. `columns`: the places of kept columns."""

    keys: Sequence[int]
    columns: Sequence[int]
    values: dict[Any, Any] = field(default_factory=dict)

    def before(self, rows: Counter[Any]) -> None:
        """Take in the table that the next runs start from."""
        self.values = self._of(rows)

    def _of(self, rows: Counter[Any]) -> dict[Any, Any]:
        if not self.columns:
            return {}
        return {tuple(row[k] for k in self.keys): tuple(row[k] for k in self.columns) for row in rows}

    def lost(self, rows: Counter[Any]) -> str:
        """A key whose kept values are others now; '' if there is none."""
        for key, values in self._of(rows).items():
            if self.values.get(key, values) != values:
                return f"{key}: {self.values[key]} became {values}"
        return ""


def _spelled(key: Sequence[str], names: Sequence[str]) -> Iterable[str]:
    return [next(n for n in names if n.lower() == k.lower()) for k in key]


def _keys_broken(rows: Counter[Any], keys: Sequence[int]) -> bool:
    seen = Counter()  # type: ignore[var-annotated]
    for row, n in rows.items():
        key = tuple(row[k] for k in keys)
        if None in key:
            return True
        seen[key] += n
    return any(n > 1 for n in seen.values())


def _situation(model: Model, step: Step, before: int, next_change_at: str | None, large: bool) -> Situation:
    changed = []
    for name in model.tables:
        ops = [op for op in step.ops if op.table == name]
        if ops:
            changed.append((name, all(op.old is None for op in ops), name in step.compared))
    if next_change_at is not None:
        next_change_at = utc_text(instant(before)) if next_change_at <= utc_text(instant(step.hour)) else LATER
    return Situation(tuple(changed), before, step.hour, next_change_at, large)


def _first(model: Model, hour: int) -> RunRecord:
    """The record that a first run leaves: it asks for the next bound."""
    rewritten, micros = model.rewritten(hour), None
    for sql in (rewritten.near_change_sql, rewritten.next_change_sql):
        if sql and micros is None:
            micros = model.database.query(f"select unix_micros((\n{sql}\n)) as next_change")[0]["next_change"]
    bound = None if micros is None else utc_text(EPOCH + timedelta(microseconds=micros))
    return model.first_record(hour, bound)


def _run(
    model: Model,
    plan: Plan,
    number: int,
    base: str,
    wanted: Counter[Any],
    compared: Sequence[int],
    held: Held,
    last: RunRecord,
    tally: Tally,
) -> Any:
    """The record of the run, a Wrong, or None where it could not be executed."""
    database = model.database
    if plan.strategy == "COMPLETE_RECOMPUTE" and random_part(model.sql, number):
        return None  # it asks the whole query, as the oracle does
    database.con.execute(f"create or replace temp table target as from {base}")
    database.statements.clear()
    database.warnings.clear()
    if plan.fallback is not None and plan.fallback.strategy != plan.strategy:
        plan = replace(plan, fallback=None)  # no second chance: what breaks is counted
    elif plan.fallback is not None:
        plan = replace(plan, fallback=replace(plan.fallback, fallback=None))
    if plan.strategy == "NO_OP":
        found = database.bag("from target")
        tally.runs["NO_OP"] += 1
        same = _parts(found, compared) == _parts(wanted, compared)
        return last if same else _wrong_table("NO_OP", number, found, wanted, compared, database)
    try:
        run = execute(database, plan, last)
    except NotFollowed:
        tally.skipped[f"{plan.strategy} hands over"] += 1
        return None
    except Untranslated as error:
        tally.untranslated[str(error)[:200]] += 1
        return None
    except duckdb.Error as error:
        tally.broken[f"{plan.strategy}: {str(error).splitlines()[0][:150]} | {model.sql[:150]}"] += 1
        return None
    except (RunFailed, RefusedError, NotIncremental) as error:
        return Wrong("failed", plan.strategy, number, f"{type(error).__name__}: {error}", tuple(database.statements))
    if database.warnings:
        tally.broken[database.warnings[0][:200]] += 1
    found = database.bag("from target")
    tally.runs[plan.strategy] += 1
    if _parts(found, compared) != _parts(wanted, compared):
        return _wrong_table(plan.strategy, number, found, wanted, compared, database)
    if lost := held.lost(found):
        return Wrong("kept", plan.strategy, number, lost, tuple(database.statements))
    return run.written


def _wrong_table(
    strategy: str, number: int, found: Counter[Any], wanted: Counter[Any], compared: Sequence[int], database: Database
) -> Wrong:
    got, want = _parts(found, compared), _parts(wanted, compared)
    what = f"missing {dict(want - got)}, too many {dict(got - want)}"
    return Wrong("table", strategy, number, what, tuple(database.statements))


def random_part(sql: str, number: int) -> bool:
    """True but for one of sixteen."""
    return (len(sql) + number) % 16 != 0


def _parts(rows: Counter[Any], columns: Sequence[int]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row, n in rows.items():
        found[tuple(repr(row[k]) if isinstance(row[k], list | dict) else row[k] for k in columns)] += n
    return found


def comparable(sql: str, key: Sequence[str], analysis: Analysis) -> str:
    """Why tables of the query cannot be compared, '' where they can."""
    if analysis.errors:
        return f"refused: {analysis.errors[0].code}"
    every = all_rows(sql)
    levels = analysis.levels if every == sql else analyze(every, unique_key=key, schemas=SCHEMAS, model="m").levels
    if Level.ORDER_DEPENDENT in levels:
        return "order-dependent"
    if analysis.rows_level is Level.NONDETERMINISTIC:
        return "drawn rows"
    if Level.AI in analysis.levels:
        return "AI calls"
    return ""
