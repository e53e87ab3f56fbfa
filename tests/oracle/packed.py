"""The same query with columns of its tables as fields of a struct: what a field is of, and what it is called, are two things."""

from __future__ import annotations

from random import Random

import sqlglot
from histories import SCHEMAS
from sqlglot import exp

STRUCT = "zz"


def packed(sql: str, random: Random, struct: str = STRUCT, share: float = 1.0) -> str | None:
    """The query over derived tables in which some of a table's columns stand in a struct; None where there is nothing to pack, or a star
    would show it. `struct`: what the structs are called; `share` of the
    tables: the others stay."""
    tree = sqlglot.parse_one(sql, read="databricks")
    changed = False
    for select in list(tree.find_all(exp.Select)):
        changed |= _pack(select, random, struct, share)
    return tree.sql("databricks") if changed else None


def _pack(select: exp.Select, random: Random, struct: str, share: float) -> bool:
    from_, joins = select.args.get("from_"), select.args.get("joins") or []
    if from_ is None or any(join.args.get("using") for join in joins):
        return False
    own = list(select.walk(prune=lambda n: isinstance(n, exp.Query) and n is not select))
    if any(isinstance(part, exp.Star) and not isinstance(part.parent, exp.Count) for part in own):
        return False
    found = False
    for holder in (from_, *joins):
        table = holder.this
        if not isinstance(table, exp.Table) or table.db or table.name.lower() not in SCHEMAS or not table.alias:
            continue
        if random.random() >= share:
            continue
        columns = list(SCHEMAS[table.name.lower()])
        inside = random.sample(columns, random.randrange(1, len(columns) + 1))
        alias = table.alias.lower()
        fields = ", ".join(f"'{name}', {name}" for name in inside)
        rest = "".join(f"{name}, " for name in columns if name not in inside)
        packing = f"select {rest}named_struct({fields}) as {struct} from {table.name}"
        for column in list(select.find_all(exp.Column)):
            if column.table.lower() == alias and column.name.lower() in inside and column.find_ancestor(exp.Select):
                field = exp.Dot(
                    this=exp.column(struct, table=column.args["table"].copy()),
                    expression=exp.to_identifier(column.name),
                )
                column.replace(field)
        table.replace(sqlglot.parse_one(packing, read="databricks").subquery(table.alias))
        found = True
    return found
