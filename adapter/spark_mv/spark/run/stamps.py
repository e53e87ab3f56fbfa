"""Names of staging tables: each run has a stamp of its own, and knows whose staging tables nobody needs any more."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable

LEFTOVER_AGE = 24 * 3600
"""Seconds after which a staging table belongs to a run that is surely dead."""
ASIDE = "aside"
"""The end of the name under which a relation waits that the first run takes the place of."""
STAGE = "__mv_stage_"
"""What stands between the name of a model's table and a stamp."""
_STAMP = re.compile(r"([0-9a-f]{8})_[0-9a-f]{12}(?=_|$)")
"""What `new_stamp` makes, and `mv_planned_run` without the adapter."""
_live: set[str] = set()
"""Stamps of the runs of this process that have begun and not ended."""


def new_stamp() -> str:
    """A stamp that no other run has: the time, by which the dead are told, and a random part."""
    return f"{int(time.time()):x}_{uuid.uuid4().hex[:12]}"


def begun(stamp: str) -> None:
    """The run of this stamp makes staging tables from now on, until it has `ended`."""
    _live.add(stamp)


def ended(stamp: str) -> None:
    """The run of this stamp needs its staging tables no longer."""
    _live.discard(stamp)


def leftovers(names: Iterable[str], identifier: str, alone: bool) -> tuple[str, ...]:
    """The staging tables that dead runs of a model left. `alone`: no other process can use the catalogue, so that what does not
    belong to a live run of this one is dead at once.

    >>> dead, young = "10000000_0123456789ab", "ffffffff_0123456789ab"
    >>> leftovers([f"m__mv_stage_{dead}", f"M__mv_stage_s_{young}_b", "m__mv_stage_feed", f"n__mv_stage_{dead}"], "m", False)
    ('m__mv_stage_10000000_0123456789ab',)
    >>> leftovers([f"M__mv_stage_s_{young}_b"], "m", True)
    ('M__mv_stage_s_ffffffff_0123456789ab_b',)
    """
    prefix = f"{identifier}{STAGE}".lower()
    dead = []
    for name in names:
        if not name.lower().startswith(prefix):
            continue
        if is_dead(name.lower()[len(prefix) :].removeprefix("s_"), alone):
            dead.append(name)
    return tuple(dead)


def is_dead(stamp: str, alone: bool) -> bool:
    """Whether the run of a stamp has surely ended; what is none, a user's table perhaps, is nobody's. `alone` as in `leftovers`."""
    if (found := _STAMP.match(stamp)) is None:
        return False
    return found[0] not in _live and (alone or time.time() - int(found[1], 16) > LEFTOVER_AGE)
