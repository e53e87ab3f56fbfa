"""How a column of a SELECT is handed on to the SELECTs around it, and where it is named."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.ai_calls.blocks import Query, TokenBlock, TokenItem
from spark_mv.query.ai_calls.groups import OF_GROUPS
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.rewrite.from_items import star_of
from spark_mv.query.syntax.aggregates import groups_or_windows
from spark_mv.query.syntax.ctes import tables
from spark_mv.query.syntax.joins import HIDING, join_kind
from spark_mv.query.syntax.source_text import Span
from spark_mv.query.syntax.table_name import quoted


class Flow:
    """Questions about the SELECTs of one text."""

    def __init__(self, text: TokenText) -> None:
        self.text = text

    def row_wise(self, block: TokenBlock) -> bool:
        """Whether every row of FROM that passes WHERE gives one row, in a query that is this SELECT alone."""
        if block.distinct or block.query.set_operation or len(block.query.blocks) != 1:
            return False
        if {"GROUP BY", "HAVING", "LIMIT", "QUALIFY"} & set(block.clauses):
            return False
        # a window's result depends on which rows there are, so filters must not move below it
        return not any(groups_or_windows(item.tree, but=OF_GROUPS) for item in block.items if not item.star)

    def reader(self, query: Query) -> tuple[TokenBlock, str] | None:
        """The one SELECT that reads the query as an item of its FROM, and the name it has there, with which its columns can be written."""
        item = self._item(query)
        alias = item.args.get("alias") if item is not None else None
        if item is None or item.args.get("pivots") or (alias is not None and alias.columns):
            return None
        above, name = item.parent, item.alias or item.name
        while above is not None and not isinstance(above, exp.Select):
            hides = isinstance(above, exp.Join) and join_kind(above) in HIDING
            holds = isinstance(above, exp.From | exp.Join | exp.Table) or (
                isinstance(above, exp.Subquery) and not above.alias
            )
            if hides or not holds:
                return None
            above = above.parent  # joins in parentheses hang on their first table
        reader = self.text.structure.of_select.get(id(above))
        return (reader, quoted(name)) if reader is not None and name else None

    def _item(self, query: Query) -> exp.Expr | None:
        """The one item of a FROM that the query is: in parentheses, or as a CTE, by its name."""
        if query.parent is not None:
            above = query.tree.parent
            return above.parent if above is not None and isinstance(above.parent, exp.Lateral) else above
        cte = query.parent_cte
        if cte is None or cte.recursive or cte.renamed:
            return None
        read = [table for table in tables(self.text.structure.tree) if self.text.cte_of(table) is cte]
        return read[0] if len(read) == 1 else None

    def hands_on(self, item: TokenItem, name: str, alias: str) -> bool:
        """Whether the entry shows the column `name` of the FROM item called `alias` as it is, perhaps by a star."""
        tree = item.tree
        if item.star and any(star_of(tree).args.values()):
            return False
        if not isinstance(tree, exp.Column):
            return item.star
        own = len(tree.parts) <= 2 and tree.table.lower() in ("", alias.lower().strip("`"))
        return own and (item.star or tree.name.lower() == name.lower())

    def names_in(self, span: Span, names: set[str], skip: Span | None = None) -> bool:
        first, end = self.text.token_range(span)
        return any(
            self.text.tokens[i].text.lower() in names
            for i in range(first, end)
            if self.text.identifier(i) and not (skip and skip.holds(self.text.span(i, i + 1)))
        )
