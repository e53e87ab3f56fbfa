"""Spark types of the columns that a SELECT block sees, from the source schemas through CTEs and derived tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from spark_mv.query.rewrite.clock_sources import block_sources
from spark_mv.query.solver.predicate import PredicateText
from spark_mv.query.solver.types import type_of
from spark_mv.query.syntax.source_blocks import Block, Item
from spark_mv.query.syntax.source_text import tokenize

Schemas = Mapping[str, Mapping[str, str]]


def schema_columns(schemas: Schemas) -> frozenset[str]:
    """Names of all columns of all tables, in lower case."""
    return frozenset(column.lower() for table in schemas.values() for column in table)


def block_types(sql: str, blocks: tuple[Block, ...], schemas: Schemas) -> list[dict[str, str]]:
    """Per block: `alias.column` → type and, where the name is unique, `column` → type. Unknown columns are missing."""
    tables = {name.lower().replace("`", ""): columns for name, columns in schemas.items()}
    done: dict[int, dict[str, str]] = {}

    def visible(index: int) -> dict[str, str]:
        if index in done:
            return done[index]
        done[index] = {}
        types: dict[str, str] = {}
        seen: dict[str, int] = {}
        complete = True
        for alias, columns in _relations(sql, index, blocks, tables, outputs):
            complete = complete and columns is not None
            for column, kind in (columns or {}).items():
                name = column.lower()
                types[f"{alias}.{name}"] = kind
                seen[name] = seen.get(name, 0) + 1
                types[name] = kind
        for name, count in seen.items():
            if count > 1 or not complete:
                # an unknown relation may have a column of that name too
                types.pop(name, None)
        done[index] = {name: kind for name, kind in types.items() if kind}
        return done[index]

    def outputs(index: int) -> dict[str, str] | None:
        """Columns of a CTE or derived table; None when they are not all known by name."""
        block = blocks[index]
        types = visible(index)
        found: dict[str, str] = {}
        for item in block.items:
            text = item.span.of(sql)
            if text.strip().endswith("*"):
                relations = _relations(sql, index, blocks, tables, outputs)
                wanted = text.strip()[:-1].rstrip(". ").strip("`").lower()
                for alias, columns in relations:
                    if columns is None:
                        return None
                    if not wanted or wanted == alias:
                        found.update({name.lower(): kind for name, kind in columns.items()})
                continue
            name = (item.alias or _column_name(item, sql)).lower()
            if name:
                found[name] = _item_type(item, text, types) or ""
        return found

    return [visible(i) for i in range(len(blocks))]


def _column_name(item: Item, sql: str) -> str:
    tokens = tokenize(item.span.of(sql))
    named = [t for t in tokens if t.word or t.text[:1] == "`"]
    return named[-1].text.strip("`") if len(tokens) == 2 * len(named) - 1 else ""


def _item_type(item: Item, text: str, types: Mapping[str, str]) -> str | None:
    read = PredicateText(text)
    if read.tree is None:
        return None
    tree = read.tree.this if isinstance(read.tree, exp.Alias) else read.tree
    if isinstance(tree, exp.Column):
        name = tree.name.lower()
        return types.get(f"{tree.table.lower()}.{name}" if tree.table else name)
    kind = type_of(tree, types)
    return kind


_Outputs = Callable[[int], "dict[str, str] | None"]
_Relation = tuple[str, "Mapping[str, str] | None"]


def _relations(sql: str, index: int, blocks: tuple[Block, ...], tables: Schemas, outputs: _Outputs) -> list[_Relation]:
    """(alias, columns) of every table of FROM; None for columns that are not known."""
    found: list[_Relation] = []
    for source in block_sources(sql, index, blocks):
        columns: Mapping[str, str] | None = None
        if source.blocks:
            columns = outputs(source.blocks[0])
        elif source.table:
            columns = _table(source.table, tables)
        found.append((source.alias, columns))
    return found


def _table(name: str, tables: Mapping[str, Mapping[str, str]]) -> Mapping[str, str] | None:
    if name in tables:
        return tables[name]
    ends = [columns for table, columns in tables.items() if table.endswith("." + name)]
    return ends[0] if len(ends) == 1 else None
