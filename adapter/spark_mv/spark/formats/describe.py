"""Read what DESCRIBE EXTENDED says about a table or view. The layout is Spark's; sections start with '#'."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_mv.maintenance.facts import Column
from spark_mv.query.rewrite.inline_views import qualify_tables

_CLUSTERING = re.compile(r"clusteringColumns=(\[\[.*?\]\])")


@dataclass(frozen=True)
class Description:
    """A table or view as DESCRIBE EXTENDED prints it."""

    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)  # by name of the column in lower case

    @property
    def provider(self) -> str:
        return self.details.get("Provider", "").lower()

    @property
    def is_view(self) -> bool:
        return self.details.get("Type", "").upper() == "VIEW"

    @property
    def view_text(self) -> str | None:
        """The SELECT of a view, with its table names qualified by the schema it was created in."""
        text = self.details.get("View Text") if self.is_view else None
        return qualify_tables(text, self.details.get("View Catalog and Namespace", "")) if text else None

    @property
    def properties(self) -> dict[str, str]:
        """Table properties, printed as `[a=b,c=d]`. Values with commas are cut: read only our own from here."""
        text = self.details.get("Table Properties", "")[1:-1]
        return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def read_description(rows: Iterable[Mapping[str, Any]]) -> Description:
    """The description in the rows (`col_name`, `data_type`) of DESCRIBE EXTENDED."""
    columns: list[Column] = []
    comments: dict[str, str] = {}
    partitions: list[str] = []
    details: dict[str, str] = {}
    section = ""
    for row in rows:
        name, value = str(row["col_name"] or ""), str(row["data_type"] or "")
        if name.startswith("# col_name"):
            continue
        if name.startswith("#"):
            section = name.lstrip("# ").strip()
        elif not name:
            section = section or "-"
        elif not section:
            columns.append(Column(name, value))
            comments[name.lower()] = str(row.get("comment") or "")
        elif section.startswith("Partition"):
            partitions.append(value if name.startswith("Part ") else name)
        else:
            details[name.rstrip(":")] = value
    return Description(
        columns=tuple(columns),
        partition_by=tuple(partitions),
        cluster_by=_clustering(details.get("Table Properties", "")),
        details=details,
        comments=comments,
    )


def _clustering(properties: str) -> tuple[str, ...]:
    """Delta prints the columns of liquid clustering as a property: `clusteringColumns=[["a"],["b","nested"]]`."""
    match = _CLUSTERING.search(properties)
    return tuple(".".join(path) for path in json.loads(match.group(1))) if match else ()
