"""Read what DESCRIBE EXTENDED says about a table or view. The layout is Spark's; sections start with '#'."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spark_mv.maintenance.facts import Column
from spark_mv.query.rewrite.inline_views import has_star, qualify_tables, with_own_names
from spark_mv.query.syntax.table_name import joined, parts_of, unquoted

_CLUSTERING = re.compile(r"clusteringColumns=(\[\[.*?\]\])(?:,|$)")
_QUOTED = re.compile(r"`(?:[^`]|``)+`")
_REDACTED = "(redacted)"
"""What Spark writes instead of a value that it takes for a secret (spark.redaction.regex, spark.sql.redaction.options.regex)."""


@dataclass(frozen=True)
class Description:
    """A table or view as DESCRIBE EXTENDED prints it."""

    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)  # by name of the column in lower case
    known_properties: Mapping[str, str] | None = None

    @property
    def provider(self) -> str:
        return self.details.get("Provider", "").lower()

    @property
    def is_view(self) -> bool:
        return self.details.get("Type", "").upper() == "VIEW"

    @property
    def view_text(self) -> str | None:
        """The SELECT of a view, with its table names qualified by the schema it was created in, and with the view's own column names."""
        text = self.details.get("View Text") if self.is_view else None
        if not text:
            return None
        text = qualify_tables(text, self.details.get("View Catalog and Namespace", ""))
        return with_own_names(text, self._view_output, [column.name for column in self.columns])

    @property
    def is_by_order(self) -> bool:
        """Whether nothing but their order tells which columns of a view's SELECT are which, and a `*` may give them in another one now."""
        names = [name.lower() for name in self._view_output]
        return len(set(names)) < len(names) and has_star(self.details.get("View Text", ""))

    @property
    def _view_output(self) -> list[str]:
        """The names that the SELECT of a view gives: [`a`, `b`], and [a, b] in earlier releases of Spark."""
        printed = self.details.get("View Query Output Columns", "")[1:-1]
        quotes = [unquoted(name) for name in _QUOTED.findall(printed)]
        return quotes or [name for name in printed.split(", ") if name]

    @property
    def properties(self) -> Mapping[str, str]:
        """Table properties. As DESCRIBE EXTENDED prints them (`[a=b,c=d]`), unless DESCRIBE DETAIL was asked."""
        return dict(self._printed()) if self.known_properties is None else self.known_properties

    @property
    def written(self) -> str:
        """All properties in one text, as DESCRIBE EXTENDED prints them; nothing is hidden in it once DESCRIBE DETAIL was asked."""
        if self.known_properties is None:
            return self.details.get("Table Properties", "")
        return f"[{','.join(f'{name}={value}' for name, value in self.known_properties.items())}]"

    @property
    def unclear(self) -> bool:
        """Whether the printed properties may be others than the table's: Spark hides values that look like secrets (also
        where a column is called `page_url`, or a model `tokens`), and a comma in a value looks like the next property."""
        names = [part.partition("=")[0] for part in self._parts()]
        cut = any("=" not in part for part in self._parts())
        return cut or names != sorted(set(names)) or _REDACTED in self.details.get("Table Properties", "")

    def _printed(self) -> list[tuple[str, str]]:
        return [(name, value) for name, sign, value in (part.partition("=") for part in self._parts()) if sign]

    def _parts(self) -> list[str]:
        text = _CLUSTERING.sub("", self.details.get("Table Properties", "")[1:-1])  # has commas of its own
        return text.split(",") if text else []


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
            part = value if name.startswith("Part ") else name
            partitions.append(part if part.endswith(")") else joined(parts_of(part)))  # Iceberg's transforms: days(a)
        else:
            details[name.rstrip(":")] = value
    return Description(
        columns=tuple(columns),
        partition_by=tuple(partitions),
        cluster_by=_clustering(details.get("Table Properties", "")[1:-1]),
        details=details,
        comments=comments,
    )


def _clustering(properties: str) -> tuple[str, ...]:
    """Delta prints the columns of liquid clustering as a property: `clusteringColumns=[["a"],["b","nested"]]`."""
    match = _CLUSTERING.search(properties)
    return tuple(joined(path) for path in json.loads(match.group(1))) if match else ()


def detailed(description: Description, row: Mapping[str, Any]) -> Description:
    """The description with what DESCRIBE DETAIL says of a Delta table, where nothing is hidden. Over Thrift it says it in
    JSON."""
    properties, partitions, clusters = (
        json.loads(value) if isinstance(value, str) else value or ()
        for value in (row["properties"], row["partitionColumns"], row.get("clusteringColumns"))
    )
    return replace(
        description,
        known_properties=dict(properties),
        partition_by=tuple(joined([name]) for name in partitions),
        cluster_by=tuple(joined(parts_of(name)) for name in clusters),
    )
