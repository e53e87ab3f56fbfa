"""Models run straight on a Spark session: the engine below the macros, with nothing of dbt around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from queue import Queue
from typing import Any

from integration_tests.under_format import FORMAT, MADE_WITH, in_format
from macros import statement

from spark_mv.maintenance.errors import NotFollowed, RefusedError
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.prepare import prepare
from spark_mv.spark.session.held_rows import held
from spark_mv.spark.session.iceberg import stand_behind_delta

#: a scripted model that the driver asks: no Python workers for a handful of rows
AI = {"provider": "scripted", "model": "test", "ask_from": "driver"}
Bag = Counter[tuple[Any, ...]]


@dataclass
class Direct:
    """A session as the engine wants it, and the format of its tables. `statements` are those sent since they were last cleared."""

    spark: Any
    table_format: str = FORMAT
    statements: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def query(self, sql: str) -> list[dict[str, Any]]:
        sql = in_format(sql, self.table_format)
        self.statements.append(sql)
        return [] if held(self.spark, sql) else [row.asDict() for row in self.spark.sql(sql).collect()]

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def say(self, text: str) -> None: ...

    def note(self, model: str, text: str) -> None: ...

    def mv_spark(self) -> Any:
        return self.spark

    def bag(self, sql: str) -> Bag:
        return Counter(tuple(_plain(value) for value in row) for row in self.spark.sql(sql).collect())


def _plain(value: Any) -> Any:
    return repr(value) if isinstance(value, float | list | dict) else value


def new_session(spark: Any, table_format: str = FORMAT) -> Any:
    """Another session of a Spark, in UTC and with one partition."""
    session = spark.newSession()
    if table_format == "iceberg":
        stand_behind_delta(session)
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


@contextmanager
def schema(session: Direct, name: str) -> Iterator[Direct]:
    """The session, for as long as the schema is there, which is empty at first."""
    session.query(f"drop schema if exists {name} cascade")
    session.query(f"create schema {name}")
    try:
        yield session
    finally:
        session.query(f"drop schema if exists {name} cascade")


class Pool:
    """Sessions of one Spark that work at the same time."""

    def __init__(self, spark: Any, size: int = 2, table_format: str = FORMAT) -> None:
        self.sessions: Queue[Direct] = Queue()
        for _ in range(size):
            self.sessions.put(Direct(new_session(spark, table_format), table_format))
        self.first: Direct = self.sessions.queue[0]

    def each(self, work: Callable[[Direct, Any], None], items: Sequence[Any]) -> None:
        """`work` on all items, in as many threads as there are sessions."""

        def one(item: Any) -> None:
            session = self.sessions.get()
            try:
                work(session, item)
            finally:
                self.sessions.put(session)

        with ThreadPoolExecutor(self.sessions.qsize()) as pool:
            list(pool.map(one, items))


@dataclass
class Model:
    """One model. `config` is what a user would put into its config block, without `refresh`; `choose_by` is the profile's. `followed`:
    whether others read its changes (None: by turns, so that now rows are replaced and now the whole table is written)."""

    schema: str
    name: str
    sql: str
    config: dict[str, Any]
    runs: int = 0
    choose_by: str = "rows"
    followed: bool | None = None

    @property
    def table(self) -> str:
        return f"{self.schema}.`{self.name}`"

    def run(self, session: Direct, as_of: str, refresh: str = "auto", full_refresh: bool = False) -> MvRun:
        self.runs += 1
        session.statements.clear()
        session.warnings.clear()
        names = [row["tableName"] for row in session.query(f"show tables in {self.schema} like '{self.name}*'")]
        config = {"file_format": session.table_format, **self.config, "refresh": refresh}
        if MADE_WITH:
            config["tblproperties"] = {**MADE_WITH, **config.get("tblproperties", {})}
        run = prepare(
            session,
            Invocation(
                unique_id=f"model.test.{self.name}",
                name=self.name,
                sql=self.sql,
                config=config,
                explicit=frozenset(config),
                target=self.table,
                schema=self.schema,
                identifier=self.name,
                target_exists=self.name in names,
                state_exists=f"{self.name}__state" in names,
                relation_names=tuple(names),
                started_at=datetime.now(timezone.utc),
                as_of=as_of,
                allow_future_as_of=True,
                invocation_id=f"{self.runs:08x}-{self.name}",
                full_refresh=full_refresh,
                followed=self.runs % 2 == 0 if self.followed is None else self.followed,
            ),
            {
                "embedded": True,
                "ai": AI,
                "safety": {"second_reading": False, "choose_by": self.choose_by, "file_format": session.table_format},
            },
        )
        for step in run.steps():
            run.execute(step, statement(step))
        return run

    def run_incrementally(self, session: Direct, as_of: str) -> MvRun:
        """By an incremental strategy where one applies, whatever it would cost on so few rows; else completely."""
        try:
            return self.run(session, as_of, "incremental")
        except (RefusedError, NotFollowed) as error:
            if "no incremental strategy applies" not in str(error) and "TOP_ROWS_UNSURE" not in str(error):
                raise
            return self.run(session, as_of)
