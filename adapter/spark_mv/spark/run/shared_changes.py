"""What changed in a source between two versions, held once for the models of a process that follow it.

The first model reads the feed of changes itself, with the columns that it needs: mostly nobody else asks. The second one holds all columns, nets
them, and takes its own from there, as all later ones do: a statement over a few rows in memory instead of one over the files of the feed.
Only a feed is shared, between two versions of one Delta table, whose rows do not change any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from spark_mv.maintenance.plan import Step
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.run.current import CurrentRun
from spark_mv.spark.run.holding import FEED
from spark_mv.spark.session.held_rows import hide, let_go, show

MOST_FEEDS = 8
"""Feeds that are held at a time. The one that was asked for longest ago goes first."""


@dataclass
class _Held:
    """`relation`: the rows, once a second model asked for them. `given_up`: they could not be held, or were lost."""

    relation: str = ""
    given_up: bool = False
    lock: Lock = field(default_factory=Lock)


_held: OrderedDict[tuple[Any, ...], _Held] = OrderedDict()
_LOCK = Lock()


def from_shared(run: CurrentRun, step: Step) -> Iterator[Step]:
    """The statements that stage what changed in a source. The run reads for itself while another thread is at the same feed, and where one of
    the statements for what is shared fails."""
    feed, spark = run.feeds.get(step.args["into"]), run.session.mv_spark()
    key = feed.key if feed is not None else None
    held = _asked_again(key) if key is not None else None
    if feed is None or key is None or held is None or not held.lock.acquire(blocking=False):
        yield step
        return
    name = held.relation or quoted(f"spark_mv_feed_{run.stamp}_{step.args['into']}")
    known = taken = False
    try:
        if held.relation:
            known = show(spark, name)
        elif not held.given_up:
            run.relations = {**run.relations, FEED: name}
            run.sharing = True
            yield replace(step, args={**step.args, "into": FEED, "columns": feed.columns})
            known = run.sharing
        if known:
            run.sharing = True
            yield replace(step, args={**step.args, "how": "shared", "source": name})
            taken = run.sharing
        run.sharing = False
        if not taken:
            yield step
    finally:
        run.sharing = False
        hide(spark, name)
        if taken and _held.get(key) is held:
            held.relation = name
        else:  # it failed, or others needed the room
            let_go(name)
            held.relation, held.given_up = "", True
        held.lock.release()


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
            let_go(old.relation)
            old.relation, old.given_up = "", True
            old.lock.release()
