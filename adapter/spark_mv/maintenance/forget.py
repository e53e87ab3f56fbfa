"""Requests to forget kept values (`dbt run-operation forget_values`).

Each stands in the metadata of a commit of its own on the model's table, which changes no row. Commits have an order: a run
that started from version v of the table has honoured the requests up to v and no other, so that its record has nothing to
say of them. None is honoured twice, none is lost to a run that works meanwhile, and nothing grows that has to be cleaned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.format_version import FORMAT, newer

_KEY = "spark_mv_forget"


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


def request_text(request: ForgetRequest) -> str:
    """The metadata of the commit that makes the request."""
    return json.dumps({_KEY: FORMAT, **asdict(request)}, sort_keys=True)


def withdrawal_text() -> str:
    """The metadata of a commit that withdraws all requests before it."""
    return json.dumps({_KEY: FORMAT, "withdrawn": True})


def waiting(texts: Iterable[str | None]) -> tuple[ForgetRequest, ...]:
    """The requests that wait to be honoured, oldest first. `texts`: the metadata of the commits since the version that the
    last run started from, oldest first.

    >>> first, second = ForgetRequest("1", ("a",)), ForgetRequest("2", ("b",), "id < 5")
    >>> waiting([request_text(first), None, "{}", withdrawal_text(), request_text(second)])
    (ForgetRequest(id='2', columns=('b',), where='id < 5'),)
    """
    found: list[dict[str, Any]] = []
    for text in texts:
        data = _read(text)
        if data.get("withdrawn"):
            found.clear()
        elif data:
            found.append(data)
    return tuple(map(_request, found))


def _request(data: Mapping[str, Any]) -> ForgetRequest:
    columns, where = data.get("columns"), data.get("where")
    if not data.get("id") or not isinstance(columns, list) or not isinstance(where, str | None):
        raise RefusedError(
            "FORGET_UNREADABLE",
            f"a commit on the table asks to forget values, and does not say which: {json.dumps(data)[:200]}. Take back what was asked "
            "(dbt run-operation forget_values with withdraw: true), and ask again",
        )
    return ForgetRequest(str(data["id"]), tuple(map(str, columns)), where)


def _read(text: str | None) -> dict[str, Any]:
    """Nothing, where there is none of ours. Raises RefusedError for the request of a later release."""
    if not text or _KEY not in text:
        return {}
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(data, dict) or not isinstance(found := data.get(_KEY), int):
        return {}
    if found > FORMAT:
        raise newer("a request to forget values", found)
    return data
