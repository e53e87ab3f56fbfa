"""What changed in a source between two versions, held once for the models of a process that follow it.

The first model reads the feed of changes itself, with the columns that it needs: mostly nobody else asks. The second one holds all columns, nets
them, and takes its own from there, as all later ones do: a statement over a few rows in memory instead of one over the files of the feed.
Only a feed is shared, between two versions of one Delta table, whose rows do not change any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from spark_mv.maintenance.changes import SourceChange, is_atomic, stage_args
from spark_mv.maintenance.facts import RunFacts, SourceFacts
from spark_mv.maintenance.plan import Step
from spark_mv.query.syntax.table_name import quoted, quoted_name
from spark_mv.spark.formats.commits import Ask, log_and_snapshot
from spark_mv.spark.run.holding import holds_changes
from spark_mv.spark.session.held_rows import hide, let_go, show

if TYPE_CHECKING:
    from spark_mv.spark.run.current import CurrentRun

MOST_COLUMNS = 64
"""Of a source whose feed is shared."""
MOST_FEEDS = 8
"""Feeds that are held at a time. The one that was asked for longest ago goes first."""


@dataclass(frozen=True)
class HeldFeed:
    """A feed whose changes a run holds in memory. `key` is the same for all that read the same changes (None: not shared), `columns` are all of
    the source, as a step has them."""

    key: tuple[Any, ...] | None
    columns: Any


@dataclass
class _Held:
    """`relation`: the rows, once a second model asked for them. `given_up`: they could not be held, or were lost."""

    relation: str = ""
    given_up: bool = False
    lock: Lock = field(default_factory=Lock)


_held: OrderedDict[tuple[Any, ...], _Held] = OrderedDict()
_LOCK = Lock()


def held_feeds(query: Ask, facts: RunFacts, sources: Sequence[SourceChange]) -> Mapping[str, HeldFeed]:
    """Those of the changed sources whose changes a run holds, by the relation in which a step stages them. Shared are rows that equality tells."""
    found = {}
    for number, change in enumerate(sources):
        source = next(s for s in facts.sources if s.name == change.name)
        if change.how == "feed" and (facts.held or holds_changes(query, source, change)):
            args = stage_args(number, change, source)
            shared = len(source.columns) <= MOST_COLUMNS and all(map(is_atomic, source.columns))
            key = _key(query.spark, source, change) if shared else None
            found[str(args["into"])] = HeldFeed(key, args["columns"])
    return found


def _key(spark: Any, source: SourceFacts, change: SourceChange) -> tuple[Any, ...] | None:
    try:
        log, snapshot = log_and_snapshot(spark, quoted_name(source.name))
        table = (spark.sparkContext.applicationId, str(log.dataPath()), str(snapshot.metadata().id()))
    except Exception:  # the log is out of reach: each reads for itself
        return None
    columns = tuple((column.name, column.type) for column in source.columns)
    return (*table, change.low, change.high, change.append_only, columns)


def from_shared(run: CurrentRun, step: Step) -> Iterator[Step]:
    """The statements that stage what changed in a source. While another thread is at the same feed, the run reads for itself."""
    feed = run.feeds.get(step.args["into"])
    key = feed.key if feed is not None else None
    held = _asked_again(key) if key is not None else None
    if feed is None or key is None or held is None or not held.lock.acquire(blocking=False):
        yield step
        return
    spark = run.session.mv_spark()
    try:
        if not held.relation and not held.given_up:
            name = quoted(f"spark_mv_feed_{run.stamp}_{step.args['into']}")
            run.relations = {**run.relations, "shared": name}
            held.given_up = True  # unless it goes well
            yield replace(step, args={**step.args, "into": "shared", "columns": feed.columns})
            if run.broken:
                return
            held.relation, held.given_up = name, False
        elif held.given_up or not show(spark, held.relation):
            _let_go(held)
            yield step
            return
        yield replace(step, args={**step.args, "how": "shared", "source": held.relation})
    finally:
        if held.relation:
            hide(spark, held.relation)
        if _held.get(key) is not held:  # others needed the room
            _let_go(held)
        held.lock.release()


def _let_go(held: _Held) -> None:
    if held.relation:
        let_go(held.relation)
    held.relation, held.given_up = "", True


def _asked_again(key: tuple[Any, ...]) -> _Held | None:
    """What is held of the feed, or is to be; None where nobody asked for it before."""
    with _LOCK:
        if key not in _held:
            _held[key] = _Held()
            _make_room()
            return None
        _held.move_to_end(key)
        return _held[key]


def _make_room() -> None:
    for key, old in list(_held.items()):
        if len(_held) <= MOST_FEEDS:
            return
        if old.lock.acquire(blocking=False):
            del _held[key]
            _let_go(old)
            old.lock.release()
