"""Requests to forget kept values (`dbt run-operation forget_values`), carried by a table property until a run has
honoured them. A run names in its record the requests it honoured, so none is honoured twice."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

PROPERTY = "spark_mv.forget"


@dataclass(frozen=True)
class ForgetRequest:
    """Draw `columns` (lower case) anew for the rows of the table where `where` holds (None: all rows)."""

    id: str
    columns: tuple[str, ...]
    where: str | None = None

    @property
    def flag(self) -> str:
        """The name of the staged marker of the rows it concerns."""
        return f"__mv_forget_{self.id}"


def new_request(columns: Sequence[str], where: str | None, at: str) -> ForgetRequest:
    """A request made at `at`; the same request made again later is another one."""
    names = tuple(name.lower() for name in columns)
    digest = hashlib.sha256(json.dumps([names, where, at]).encode()).hexdigest()[:12]
    return ForgetRequest(digest, names, where)


def to_property(requests: Iterable[ForgetRequest]) -> str:
    """The value of the table property. Base64, because DESCRIBE prints properties without quoting."""
    return base64.b64encode(json.dumps([asdict(request) for request in requests]).encode()).decode()


def from_property(value: str | None) -> tuple[ForgetRequest, ...]:
    """The requests in a table property; none where there is no property or it is not ours to read."""
    if not value:
        return ()
    try:
        items = json.loads(base64.b64decode(value))
        return tuple(ForgetRequest(item["id"], tuple(item["columns"]), item["where"]) for item in items)
    except (ValueError, KeyError, TypeError):
        return ()
