"""Models of every strategy over a source that changes step by step, and what their tables must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from direct import AI, FORMAT, MADE_WITH, Bag
from gates import Gated
from macros import statement
from oracle_changes import FEED
from versions import Version, newest, versions

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.record import RunRecord
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.prepare import prepare

START = datetime(2026, 1, 10)
NEW = "insert into {s}.t values ({id}, {n} % 4, 1.5, 's{n}', timestamp'{now}')"
EDIT = "update {s}.t set x = x + 1, s = 's{n}' where id % 5 = {n} % 5 and id < 100"
LOSS = "delete from {s}.t where id = {id} - 98 or id = {id} - 1"


@dataclass(frozen=True)
class Case:
    """`{t}` in `sql` is the source, `{kept}` where kept columns stand. `changes` of the source follow each other; `hours`: how far
    the clock moves at each. `followed`: others read the table's changes, so that it is not written whole."""

    name: str
    strategy: str
    sql: str
    kept: str = ", rand() as drawn"
    key: str = "id"
    changes: tuple[str, ...] = (EDIT, NEW, LOSS)
    hours: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    followed: bool = False


CASES = {
    case.name: case
    for case in (
        Case("appended", "APPEND_ONLY", "select id, k, upper(s) as s{kept} from {t} where k >= 0", changes=(NEW,)),
        Case("by row", "ROW_BASED", "select id, x * 2 as a, upper(s) as s{kept} from {t} where x > 0"),
        Case(
            "by group", "GROUP_AGGREGATE", "select k, count(*) as n, sum(x) as sx, max(s) as ms{kept} from {t} group by k",
            kept=", uuid() as drawn", key="k",
        ),
        Case(
            "windowed", "WINDOW_FUNCTION",
            "select id, k, row_number() over (partition by k order by x desc, id) as rn{kept} from {t}",
        ),
        Case("whole", "COMPLETE_RECOMPUTE", "select id, rank() over (order by x, id) as r{kept} from {t}"),
        Case("compared", "COMPLETE_RECOMPUTE", "select id, rank() over (order by x, id) as r{kept} from {t}", followed=True),
        Case(
            "evicted", "ROW_BASED", "select id, s, ts{kept} from {t} where ts > current_timestamp() - interval 10 hours", hours=2,
        ),
        Case(
            "remembered", "COMPLETE_RECOMPUTE",
            "select id, s, ts{kept} from {t} where ts > current_timestamp() - interval 10 hours "
            "and ts <= current_timestamp() + interval 1 hour",
            hours=2, changes=(EDIT, NEW), config={"on_source_delete": "keep"},
        ),
        Case("asked", "ROW_BASED", "select id, s{kept} from {t}", kept=", ai_gen(s) as drawn"),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Content:
    """What a table holds: the query's deterministic columns, and by key what it keeps."""

    version: int = -1
    rows: Bag | None = None
    kept: Mapping[Any, Any] = field(default_factory=dict)


@dataclass
class World:
    """One case in a schema of its own, brought from change to change."""

    case: Case
    schema: str
    asked: Path
    runs: int = 0
    changes: int = 0
    number: int = 0

    @property
    def table(self) -> str:
        return f"{self.schema}.m"

    @property
    def target(self) -> str:
        return f"{self.schema}.`m`"

    @property
    def as_of(self) -> str:
        return self.at()

    def at(self, more: int = 0) -> str:
        """The instant of the runs after these changes and `more`."""
        return str(START + timedelta(hours=self.case.hours * (self.changes + more)))

    def make(self, session: Gated) -> None:
        """The schema with its source anew."""
        session.query(f"drop schema if exists {self.schema} cascade")
        session.query(f"create schema {self.schema}")
        columns = "(id int, k int, x decimal(8, 2), s string, ts timestamp)"
        session.query(f"create table {self.schema}.t {columns} {FEED}")
        session.query(
            f"insert into {self.schema}.t select cast(id as int), cast(id % 4 as int), id * 1.25, concat('n', id), "
            f"timestamp'{START}' + make_dt_interval(0, cast(id as int) - 12) from range(20)"
        )

    def change(self, session: Gated) -> None:
        """The next change of the source, and of the clock."""
        self.changes += 1
        n = self.changes
        text = self.case.changes[(n - 1) % len(self.case.changes)]
        session.query(text.format(s=self.schema, n=n, id=100 + n, now=self.as_of))

    def names(self, session: Gated) -> list[str]:
        return [row["tableName"] for row in session.query(f"show tables in {self.schema}") if not row["isTemporary"]]

    def run(self, session: Gated, as_of: str = "", full_refresh: bool = False, refresh: str = "incremental") -> MvRun:
        """A run as dbt starts one: by the case's strategy, whatever that would cost on so few rows."""
        session.at = "list tables"
        invocation = self.invocation(session, as_of, full_refresh, refresh)
        session.at = "look"
        run = prepare(session, invocation, self.profile)
        session.at = "begin"
        with closing(run.steps()) as steps:  # type: ignore[type-var]
            for step in steps:
                session.at = step.kind.replace("_", " ")
                run.execute(step, statement(step))
                session.at = "clean up"
        session.at = "amend"
        for sql in run.amendments():
            session.query(sql)
        return run

    @property
    def profile(self) -> dict[str, Any]:
        ai = {**AI, "options": {"count_file": str(self.asked)}}
        return {"embedded": True, "ai": ai, "safety": {"second_reading": False, "choose_by": "rows"}}

    def invocation(
        self, session: Gated, as_of: str = "", full_refresh: bool = False, refresh: str = "auto"
    ) -> Invocation:
        self.number += 1
        number = self.number  # another run may begin before this one says its own
        names = self.names(session)
        if self.case.strategy == "COMPLETE_RECOMPUTE" or full_refresh or "m" not in names:
            refresh = "auto"
        made = {"tblproperties": MADE_WITH} if MADE_WITH else {}
        config = {"file_format": FORMAT, "unique_key": self.case.key, **made, **self.case.config, "refresh": refresh}
        return Invocation(
            unique_id="model.test.m",
            name="m",
            sql=self.case.sql.format(t=f"{self.schema}.t", kept=self.case.kept),
            config=config,
            explicit=frozenset(config),
            target=self.target,
            schema=self.schema,
            identifier="m",
            target_exists="m" in names,
            state_exists="m__state" in names,
            relation_names=tuple(names),
            started_at=datetime.now(timezone.utc),
            as_of=as_of or self.as_of,
            allow_future_as_of=True,
            invocation_id=f"{number:08x}-{self.case.name}",
            project="test",
            full_refresh=full_refresh,
            followed=self.case.followed,
        )

    def run_auto(self, session: Gated, **arguments: Any) -> MvRun:
        """By an incremental strategy where one applies, else completely."""
        try:
            return self.run(session, **arguments)
        except RefusedError as error:
            if "no incremental strategy applies" not in str(error):
                raise
            return self.run(session, refresh="auto", **arguments)

    # --- what is, and what must be

    def wanted(self, session: Gated, as_of: str = "", id: int | None = None) -> Bag:
        """The query's deterministic columns at an instant, over a version of the source."""
        source = f"{self.schema}.t" + ("" if id is None else f" version as of {id}")
        kept = ", concat('ai_gen: ', s) as drawn" if self.case.name == "asked" else ""
        text = self.case.sql.format(t=source, kept=kept)
        return session.bag(text.replace("current_timestamp()", f"timestamp'{as_of or self.as_of}'"))

    def read(self, session: Gated, version: Version | None = None) -> Content:
        """The table as it is or was at a version; empty where there is none."""
        if "m" not in self.names(session):
            return Content()
        if version is None:  # first: a dead client's statement may still publish
            version = newest(session, self.table)
        source = f"{self.table} version as of {version.id}"
        rows = session.spark.sql(f"select * from {source}").collect()
        width = None if self.case.name == "asked" else -1  # the kept column is the last one
        data = Counter(tuple(row)[:width] for row in rows)
        return Content(version.number, data, {row[self.case.key]: row["drawn"] for row in rows})

    def version(self, session: Gated) -> int:
        """The number of the newest one; -1 where there is no table."""
        return newest(session, self.table).number if "m" in self.names(session) else -1

    def leftovers(self, session: Gated) -> list[str]:
        return sorted(set(self.names(session)) - {"t", "m", "m__state", "ai_results"})

    def paid(self) -> Counter[str]:
        """How often each input was asked."""
        return Counter(self.asked.read_text().splitlines()) if self.asked.exists() else Counter()

    def published(self, session: Gated) -> Iterator[tuple[Version, RunRecord, bool]]:
        """Versions that runs made, oldest first, with their records, and whether others wrote while that run worked."""
        found = versions(session, self.table)
        for version in found:
            if version.record is None:
                continue
            base = -1 if version.base is None else version.base
            foreign = not version.anew and any(not v.keeps for v in found[base + 1 : version.number])
            yield version, version.record, foreign


def same_values(before: Mapping[Any, Any], now: Mapping[Any, Any]) -> bool:
    return all(now[key] == value for key, value in before.items() if key in now)


def moved(before: Content, now: Content) -> str:
    """How many of the values of keys that both have are others: none, some, all."""
    found = {now.kept[key] != value for key, value in before.kept.items() if key in now.kept}
    return "some" if len(found) == 2 else "all" if True in found else "none"
