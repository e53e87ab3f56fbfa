"""Spark types of the columns that a SELECT block sees, from the source schemas through CTEs and derived tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from spark_mv.query.rewrite.clock_sources import Sources
from spark_mv.query.solver.predicate import PredicateText
from spark_mv.query.solver.types import type_of

Schemas = Mapping[str, Mapping[str, str]]


def schema_columns(schemas: Schemas) -> frozenset[str]:
    """Names of all columns of all tables, in lower case."""
    return frozenset(column.lower() for table in schemas.values() for column in table)


def block_types(sql: str, sources: Sources, schemas: Schemas) -> Callable[[int], dict[str, str]]:
    """For the index of a block: `alias.column` → type and, where the name is unique, `column` → type. Unknown columns are
    missing."""
    tables = {name.lower().replace("`", ""): columns for name, columns in schemas.items()}
    done: dict[int, dict[str, str]] = {}

    def visible(index: int) -> dict[str, str]:
        if index in done:
            return done[index]
        done[index] = {}
        types: dict[str, str] = {}
        seen: dict[str, int] = {}
        complete = True
        for alias, columns in _relations(index, sources, tables, outputs):
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

    def outputs(index: int) -> _Listed | None:
        """Columns of a CTE or derived table in their order; None when they are not all known by name."""
        block = sources.blocks[index]
        types = visible(index)
        found: _Listed = []
        for item, entry in zip(block.items, block.tree.expressions, strict=True):
            if entry.is_star and isinstance(entry, exp.Star | exp.Column):
                wanted = entry.table.lower() if isinstance(entry, exp.Column) else ""
                if isinstance(entry, exp.Star) and any(entry.args.values()):
                    return None
                for alias, columns in _relations(index, sources, tables, outputs):
                    if columns is None:
                        return None
                    if not wanted or wanted == alias:
                        found += [(name.lower(), kind) for name, kind in columns.items()]
                continue
            inner = entry.this if isinstance(entry, exp.Alias) else entry
            name = (item.alias or (inner.name if isinstance(inner, exp.Column) else "")).lower()
            found.append((name, _item_type(inner, item.span.of(sql), types) or ""))
        return found

    return visible


def _item_type(node: exp.Expr, text: str, types: Mapping[str, str]) -> str | None:
    if isinstance(node, exp.Column):
        name = node.name.lower()
        return types.get(f"{node.table.lower()}.{name}" if node.table else name)
    read = PredicateText(text).tree
    return type_of(read.this if isinstance(read, exp.Alias) else read, types) if read is not None else None


_Listed = list[tuple[str, str]]  # name, '' without one, and type
_Outputs = Callable[[int], "_Listed | None"]
_Relation = tuple[str, "Mapping[str, str] | None"]


def _relations(index: int, sources: Sources, tables: Schemas, outputs: _Outputs) -> list[_Relation]:
    """(alias, columns) of every table of FROM; None for columns that are not known."""
    found: list[_Relation] = []
    for source in sources.of(index):
        columns: Mapping[str, str] | None = None
        if source.blocks:
            columns = _in_arms([outputs(block) for block in source.blocks], source.by_place)
        elif source.table:
            columns = _table(source.table, tables)
        found.append((source.alias, columns))
    return found


def _in_arms(arms: Sequence[_Listed | None], by_place: bool) -> dict[str, str] | None:
    """The columns of a query that has these SELECTs as arms: named by the first one, of known type where all give that type in this place, and where
    no other column has the name (USING shows one of two)."""
    first = arms[0]
    if first is None:
        return None
    alike = by_place and all(arm is not None and len(arm) == len(first) for arm in arms)
    found: dict[str, str] = {}
    for place, (name, kind) in enumerate(first):
        same = alike and all(arm is not None and arm[place][1] == kind for arm in arms)
        if name:
            found[name] = kind if same and found.get(name, kind) == kind else ""
    return found


def _table(name: str, tables: Mapping[str, Mapping[str, str]]) -> Mapping[str, str] | None:
    if name in tables:
        return tables[name]
    ends = [columns for table, columns in tables.items() if table.endswith("." + name)]
    return ends[0] if len(ends) == 1 else None
