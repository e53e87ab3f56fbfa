"""Model contracts on Delta: NOT NULL inside the CREATE, CHECK right after it, rows last.

dbt-spark fills the table first and adds constraints afterwards, which open-source Spark refuses for NOT NULL and which
leaves wrong rows in the table when it fails. A table whose contract has not changed is overwritten in one commit,
so that readers see the old rows or the new ones, and wrong rows leave the old ones in place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.spark.adapter.column import quote

#: the table property in which a table carries the fingerprint of the contract that it was created with
PROPERTY = "dbt.contract"


@dataclass(frozen=True)
class Check:
    name: str
    expression: str


@dataclass(frozen=True)
class Contract:
    """`columns` as (name, type, not null) in the order of the model's YAML."""

    columns: tuple[tuple[str, str, bool], ...]
    checks: tuple[Check, ...]

    @property
    def constrained(self) -> bool:
        return bool(self.checks) or any(not_null for _, _, not_null in self.columns)

    @property
    def row_checks(self) -> list[dict[str, str]]:
        """All that can be checked row by row, as name and condition: for a table that gets its rows first, and NOT NULL as a CHECK."""
        not_null = [
            {
                "name": f"mv_not_null_{hashlib.md5(name.encode()).hexdigest()[:8]}",
                "expression": f"{quote(name)} is not null",
            }
            for name, _, is_not_null in self.columns
            if is_not_null
        ]
        return [*not_null, *({"name": check.name, "expression": check.expression} for check in self.checks)]

    @property
    def columns_ddl(self) -> str:
        return ",\n  ".join(f"{quote(n)} {t}{' not null' if not_null else ''}" for n, t, not_null in self.columns)

    def fingerprint(self, clauses: str) -> str:
        """Of all that a CREATE would settle: columns, checks, and the text of the other clauses."""
        text = repr((self.columns, self.checks, " ".join(clauses.split())))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def read_contract(columns: Mapping[str, Mapping[str, Any]], constraints: Sequence[Mapping[str, Any]]) -> Contract:
    """From a model's `columns` and `constraints` in the manifest.

    A primary key makes its columns NOT NULL, as SQL says; that its values are unique Delta does not check.
    """
    required = {
        name.lower()
        for constraint in constraints
        if _kind(constraint) in ("primary_key", "not_null")
        for name in constraint.get("columns") or ()
    }
    found, checks = [], []
    for column in columns.values():
        name = str(column["name"])
        own = list(column.get("constraints") or ())
        not_null = name.lower() in required or any(_kind(c) in ("primary_key", "not_null") for c in own)
        found.append((name, str(column["data_type"]), not_null))
        checks += [_check(c) for c in own if _kind(c) == "check" and c.get("expression")]
    checks += [_check(c) for c in constraints if _kind(c) == "check" and c.get("expression")]
    return Contract(tuple(found), tuple(dict.fromkeys(checks)))


def _kind(constraint: Mapping[str, Any]) -> str:
    kind = constraint.get("type")
    return str(getattr(kind, "value", kind))


def _check(constraint: Mapping[str, Any]) -> Check:
    expression = str(constraint["expression"])
    return Check(constraint.get("name") or "chk_" + hashlib.sha256(expression.encode()).hexdigest()[:16], expression)
