"""What stands in the way of a table that is made waits beside it, under another name, until the new one is there: a view, a table of somebody
else's, or the model's own where its format cannot replace it. Of a run that died in between, the next one puts it back first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from spark_mv.maintenance.errors import RunFailed, TurnTaken
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Ask, Query
from spark_mv.spark.run import stamps
from spark_mv.spark.run.current import CurrentRun
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import describe, target_facts
from spark_mv.spark.session.own_catalogue import own_catalogue


@contextmanager
def made_way(run: CurrentRun) -> Iterator[None]:
    """The new table is made meanwhile; where it is not, what waits is put back. Raises TurnTaken where another run has published since this one
    looked. Where Spark cannot rename what is not the model's, it is dropped: the user asked for that with --full-refresh."""
    if run.in_the_way is None:
        yield
        return
    table, aside, kind = run.relations["target"], run.relations["aside"], run.in_the_way
    waits = _set_aside(run, kind)
    try:
        if waits and kind == "table" and target_facts(run.ask, aside, True, run.model_id).record != run.follows:
            raise TurnTaken(table)
        yield
    except BaseException:
        if waits:
            # where the new table was made after all, the next run drops what waits; the first error matters more
            with suppress(Exception):
                run.statement(f"alter {kind} {aside} rename to {table}")
        raise
    if waits:
        run.statement(f"drop {kind} {aside}{run.with_files if kind == 'table' else ''}")


def _set_aside(run: CurrentRun, kind: str) -> bool:
    """Whether it waits. Raises TurnTaken where another run has set it aside."""
    table = run.relations["target"]
    try:
        run.statement(f"alter {kind} {table} rename to {run.relations['aside']}")
        return True
    except Exception as error:
        if describe(run.ask, table) is None:
            raise TurnTaken(table) from error
        if run.follows is not None:
            raise
        run.statement(f"drop {kind} {table}{run.with_files if kind == 'table' else ''}")
        return False


def put_back(adapter: Any, invocation: Invocation, names: Iterable[str]) -> Invocation:
    """The invocation once the table that a dead run had set aside has its name again; as it is where none waits, or the name is taken.
    `names`: the relations of the schema. Raises RunFailed where a run that may be alive is making the table."""
    waiting = sorted(n for n in names if is_aside(n, invocation.identifier))
    if not waiting:
        return invocation
    last = f"{invocation.schema}.{quoted(waiting[-1])}"
    query = Ask(adapter.query, adapter.mv_spark())
    if waiting[-1] not in stamps.leftovers(waiting, invocation.identifier, own_catalogue(adapter.mv_spark())):
        raise RunFailed(
            "TURN_TAKEN",
            f"model {invocation.name}: a run that may not be done yet makes {invocation.target} anew, and what was there waits as {last}, so this "
            f"one changed nothing. Run it again once that one is done. If none is at it, put it back: ALTER TABLE {last} RENAME TO {invocation.target}",
        )
    found = describe(query, last)
    if found is None or found.is_view:  # a view holds no rows, and --full-refresh was to replace it
        return invocation
    query(f"alter table {last} rename to {invocation.target}")
    adapter.warn(
        f"model {invocation.name}: {invocation.target} was not there, because a run that made it anew had died; put back from {last}"
    )
    return replace(invocation, target_exists=True)


def relations_now(query: Query, invocation: Invocation) -> list[str]:
    """The relations of the schema as they are now: what dbt knew of when it began is there no more."""
    return [str(row["tableName"]) for row in query(f"show tables in {invocation.schema}")]


def is_aside(name: str, identifier: str) -> bool:
    """Whether a relation waits for a table of a model.

    >>> is_aside("M__mv_stage_10000000_0123456789ab_aside", "m"), is_aside("m__mv_stage_10000000_0123456789ab", "m")
    (True, False)
    """
    low = name.lower()
    return low.startswith(f"{identifier}{stamps.STAGE}".lower()) and low.endswith(f"_{stamps.ASIDE}")
