"""Which texts in a subquery name the row around it: its requests are asked without that row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from spark_mv.query.ai_calls.blocks import Query, TokenBlock
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.syntax.source_text import Span
from spark_mv.query.syntax.table_name import joined, table_key


class OuterRows:
    """`schemas`: table name → columns, as far as they are known: a column without its table is that of the row around if its own SELECT's tables lack it."""

    def __init__(self, text: TokenText, schemas: Mapping[str, Mapping[str, str]]) -> None:
        self.text = text
        self.columns = {table_key(name): {column.lower() for column in columns} for name, columns in schemas.items()}

    def named_in(self, block: TokenBlock, span: Span) -> bool:
        """Whether the span, as far as it stands in the block itself, names a table or a column of a row around it."""
        around = list(_around(block.query))
        if not around:
            return False
        others = {name for outer in around for name in outer.qualifiers} - block.qualifiers
        others_columns = self._columns_not_of(block, around)
        first, end = self.text.token_range(span)
        for i in range(first, end):
            if not self.text.identifier(i) or (i and self.text.words[i - 1] == "."):
                continue
            before = self.text.words[i + 1] if i + 1 < len(self.text.words) else ""
            wanted = others if before == "." else others_columns if before != "(" else ()
            if self.text.tokens[i].text.lower() in wanted and self.text.block_of(self.text.span(i, i + 1)) is block:
                return True
        return False

    def _columns_not_of(self, block: TokenBlock, around: list[TokenBlock]) -> set[str]:
        own = self._read_by(block)
        if own is None:
            return set()
        return {name for outer in around for name in self._read_by(outer) or ()} - own

    def _read_by(self, block: TokenBlock) -> set[str] | None:
        """The columns of what the SELECT reads; None where they are not known of all of it."""
        queries = [query for query in block.children if block.clause_of(query.span) == "FROM"]
        found = [self._columns_of(table) for table in block.tables] + [self._given_by(q) for q in queries]
        known = [columns for columns in found if columns is not None]
        return None if block.made or len(known) < len(found) else {name for columns in known for name in columns}

    def _columns_of(self, table: exp.Table) -> set[str] | None:
        cte = self.text.cte_of(table)
        if cte is None:
            return self.columns.get(table_key(joined(part.name for part in table.parts)))
        return None if cte.recursive or cte.renamed else self._given_by(cte.query)

    def _given_by(self, query: Query) -> set[str] | None:
        """The columns of a query; with a `*` in it, perhaps more."""
        if not query.blocks:
            return None
        block = query.blocks[0]
        named = {item.name.lower() for item in block.items if item.name}
        below = self._read_by(block) if any(item.star for item in block.items) else set()
        return None if below is None else named | below


def _around(query: Query) -> Iterator[TokenBlock]:
    """The SELECTs that a query stands in as a subquery, innermost first; none of a CTE."""
    level: Query | None = query
    while level is not None:
        while level.parent is None and level.outer is not None:
            level = level.outer
        if level.parent is None:
            return
        yield level.parent
        level = level.parent.query
