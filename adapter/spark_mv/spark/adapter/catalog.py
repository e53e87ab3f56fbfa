"""dbt's catalogue (`dbt docs generate`): columns with comments, tables with comment, owner and size.

dbt-spark parses the tree that `SHOW TABLE EXTENDED` prints, in which there are no comments, and no columns at all for
Delta. Here every relation is described.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

_NONE: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
#: keys of the section "# Detailed Table Information" that dbt shows
_OWNER, _COMMENT, _STATISTICS, _TYPE = "Owner", "Comment", "Statistics", "Type"


@dataclass(frozen=True)
class Described:
    """What DESCRIBE TABLE EXTENDED tells: columns as (name, type, comment), details by their label."""

    columns: tuple[tuple[str, str, str | None], ...]
    details: Mapping[str, str]

    @property
    def kind(self) -> str:
        return "view" if "VIEW" in self.details.get(_TYPE, "").upper() else "table"

    @property
    def owner(self) -> str | None:
        return self.details.get(_OWNER) or None

    @property
    def comment(self) -> str | None:
        return self.details.get(_COMMENT) or None

    @property
    def statistics(self) -> dict[str, int]:
        """`1109 bytes, 14 rows` as {"bytes": 1109, "rows": 14}; empty where Spark has none."""
        found = {}
        for part in self.details.get(_STATISTICS, "").split(", "):
            number, _, label = part.partition(" ")
            if number.isdigit() and label:
                found[label] = int(number)
        return found


def parse_describe(rows: Sequence[Mapping[str, Any]]) -> Described:
    """From the rows (col_name, data_type, comment) of DESCRIBE TABLE EXTENDED.

    The columns end at the first empty line or heading; partition columns are listed a second time below and skipped.
    """
    columns: list[tuple[str, str, str | None]] = []
    details: dict[str, str] = {}
    section = "columns"
    for row in rows:
        name, value = str(row["col_name"] or ""), str(row["data_type"] or "")
        if section == "columns" and (not name or name.startswith("#")):
            section = "between"
        if section == "columns":
            columns.append((name, value, row.get("comment") or None))
        elif name.startswith("# Detailed"):
            section = "details"
        elif name.startswith("#"):
            section = "between"
        elif section == "details" and name:
            details.setdefault(name, value)
    return Described(tuple(columns), details)


def catalog_rows(
    schema: str, name: str, described: Described, more: Mapping[str, Mapping[str, Any]] = _NONE
) -> list[dict[str, Any]]:
    """One dictionary per column, with the keys of dbt's catalogue; positions count from 1. `more`: statistics beside Spark's, by id, each with
    label, value, description and include."""
    table: dict[str, Any] = {
        "table_database": None,
        "table_schema": schema,
        "table_name": name,
        "table_type": described.kind,
        "table_comment": described.comment,
        "table_owner": described.owner,
    }
    for label, value in described.statistics.items():
        table |= {
            f"stats:{label}:label": label,
            f"stats:{label}:value": value,
            f"stats:{label}:description": "",
            f"stats:{label}:include": True,
        }
    for id, stat in more.items():
        table |= {f"stats:{id}:{key}": value for key, value in stat.items()}
    return [
        {**table, "column_name": column, "column_index": index, "column_type": data_type, "column_comment": comment}
        for index, (column, data_type, comment) in enumerate(described.columns, 1)
    ]


def catalog_table(
    schema: str, name: str, described: Described, more: Mapping[str, Mapping[str, Any]] = _NONE
) -> CatalogTable:
    """The same for one relation, as dbt's own type."""
    return CatalogTable(
        metadata=TableMetadata(
            type=described.kind, schema=schema, name=name, comment=described.comment, owner=described.owner
        ),
        columns={
            column: ColumnMetadata(type=data_type, index=index, name=column, comment=comment)
            for index, (column, data_type, comment) in enumerate(described.columns, 1)
        },
        stats={
            label: StatsItem(id=label, label=label, value=value, include=True, description="")
            for label, value in described.statistics.items()
        }
        | {id: StatsItem(id=id, **stat) for id, stat in more.items()},
    )
