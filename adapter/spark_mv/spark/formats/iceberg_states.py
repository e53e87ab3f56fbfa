"""What became of an Iceberg table while a run made it anew: its states one after another, read from its metadata files.

CREATE OR REPLACE does not look at what it replaces, and others commit before it, during it and right behind it. So the run looks
afterwards at each state since its claim, not at the newest alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from spark_mv.maintenance.errors import first_line
from spark_mv.spark.formats.turn import TurnSession
from spark_mv.spark.session.jvm import static

RECORD = "spark_mv"
"""Property of a snapshot with the record of the run that made it, or with a request to forget."""
CLAIM = "spark_mv_claim"
"""Property of a snapshot with the id of the run that claims the table before it makes it anew, and of the snapshot with which it does."""
HOLD = "spark_mv_hold"
"""Property of a claim with the stamp of a run that nobody may publish behind, see iceberg_branches.py."""
_METADATA = re.compile(r"/v?(\d+)(?:-[^/]*)?(?:\.gz)?\.metadata\.json(?:\.gz)?$")


def judged(states: Sequence[Any], run_id: str) -> tuple[Any, Any]:
    """The state that the run made (None: there is none), and the one that it should have followed: the newest before it, without those of
    runs that made the table anew although somebody else had come after their claim. Each such run puts back what it replaced."""
    before = states[-1]
    for state in reversed(states[:-1]):
        newest = state.currentSnapshot()
        if run_id in _property(newest, RECORD):
            return state, before
        last = before.currentSnapshot()
        overlooked = (
            _property(newest, CLAIM)
            and newest.parentId() is None
            and _property(last, CLAIM) != _property(newest, CLAIM)
        )
        if not overlooked:
            before = state
    return None, before


def _property(snapshot: Any, name: str) -> str:
    return "" if snapshot is None else str(snapshot.summary().get(name) or "")


def states_since(since: Any, now: Any, io: Any, session: TurnSession) -> list[Any]:
    """The metadata that the table has had, newest first: from `now` back to `since`, an earlier one, or to the one before `now` where
    the files have no numbers."""
    first = _number(str(since.metadataFileLocation())) or 0
    states = [now]
    while len(states) == 1 or (_number(str(states[-1].metadataFileLocation())) or 0) > first:
        states.append(_overwritten(states[-1], io, session))
    return states


def _overwritten(replaced: Any, io: Any, session: TurnSession) -> Any:
    """The metadata that the table had right before it was replaced. The new metadata names those of the moment when the statement
    began; what others committed during it shows in the number of its file alone, each commit of a catalogue raising it by one."""
    files = replaced.previousFiles()
    known = str(files.get(files.size() - 1).file())
    read = static(session.mv_spark(), "org.apache.iceberg.TableMetadataParser", "read")
    number = _number(str(replaced.metadataFileLocation()))
    if number is None or _number(known) in (None, number - 1):
        return read(io, known)
    folder = str(replaced.metadataFileLocation()).rpartition("/")[0]
    try:
        found = io.listPrefix(folder + "/").iterator()
        names = [str(found.next().location()) for _ in iter(found.hasNext, False)]
        overwritten = [read(io, name) for name in names if _number(name) == number - 1]
        return max(overwritten, key=lambda metadata: int(metadata.lastUpdatedMillis()))
    except Exception as error:
        session.warn(
            f"{folder}: the table's metadata number {number - 1} could not be read ({first_line(error)}), so that it is not known whether "
            "somebody else published while this run made the table anew. See the table's history, and let one run at a time rebuild it"
        )
        return read(io, known)


def _number(file: str) -> int | None:
    """The number of a metadata file.

    >>> _number("s3://b/t/metadata/00012-6f3d.metadata.json"), _number("/t/metadata/v7.gz.metadata.json"), _number("/t/metadata/snap-1.avro")
    (12, 7, None)
    """
    found = _METADATA.search(file)
    return None if found is None else int(found[1])
