"""How a column of a SELECT is handed on to the SELECTs around it, and where it is named."""

from __future__ import annotations

from spark_mv.query.ai_calls.blocks import Query, TokenBlock, TokenItem
from spark_mv.query.ai_calls.groups import OF_GROUPS
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.syntax.aggregates import groups_or_windows
from spark_mv.query.syntax.condition import read_expression
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
        return not any(self._aggregates(i.expression) for i in block.items if not i.star)

    def _aggregates(self, span: Span) -> bool:
        tree = read_expression(self.text.text(span))
        # a window's result depends on which rows there are, so filters must not move below it
        return tree is None or groups_or_windows(tree, but=OF_GROUPS)

    def reader(self, query: Query) -> tuple[TokenBlock, str] | None:
        """The one SELECT that reads the query in its FROM, and the name it has there."""
        if query.parent is not None:
            outer = query.parent
            if "FROM" not in outer.clauses or not outer.clauses["FROM"].holds(query.span):
                return None
            last = self.text.token_range(query.span)[1]  # its closing parenthesis
            alias = self._alias_after(last + 1, outer)
            return (outer, alias) if alias else None
        cte = query.parent_cte
        if cte is None or cte.recursive or self.text.words[self.text.token_range(cte.span)[0] + 1] == "(":
            return None
        inside = range(*self.text.token_range(cte.span))
        uses = [
            i
            for i in range(len(self.text.tokens))
            if i not in inside
            and self.text.identifier(i)
            and self.text.tokens[i].text.lower() == cte.name.lower()
            and self.text.words[i - 1] != "."
            and (i + 1 == len(self.text.words) or self.text.words[i + 1] != ".")
            and self.text.words[i - 1] in {"FROM", "JOIN", ","}
        ]
        named = sum(t.text.lower() == cte.name.lower() for t in self.text.tokens)
        if len(uses) != 1 or named > 1 + len(uses) + self._qualifiers(cte.name):
            return None
        use = self.text.span(uses[0], uses[0] + 1)
        reader = self.text.block_of(use)
        if reader is None or reader.clause_of(use) != "FROM":
            return None
        return reader, self._alias_after(uses[0] + 1, reader) or quoted(cte.name)

    def _qualifiers(self, name: str) -> int:
        words = self.text.words
        return sum(
            t.text.lower() == name.lower() and i + 1 < len(words) and words[i + 1] == "."
            for i, t in enumerate(self.text.tokens)
        )

    def _alias_after(self, i: int, block: TokenBlock) -> str | None:
        if i < len(self.text.words) and self.text.words[i] == "AS":
            i += 1
        if (
            i < len(self.text.words)
            and self.text.identifier(i)
            and block.clauses["FROM"].holds(self.text.span(i, i + 1))
        ):
            return quoted(self.text.tokens[i].text)
        return None

    def hands_on(self, item: TokenItem, name: str, alias: str) -> bool:
        text = " ".join(self.text.text(item.expression).split()).lower().replace("`", "")
        plain, table = name.lower(), alias.lower().replace("`", "")
        if item.star:
            return text in {"*", f"{table}.*"}
        return text in {plain, f"{table}.{plain}"}

    def names_in(self, span: Span, names: set[str], skip: Span | None = None) -> bool:
        first, end = self.text.token_range(span)
        return any(
            self.text.tokens[i].text.lower() in names
            for i in range(first, end)
            if self.text.identifier(i) and not (skip and skip.holds(self.text.span(i, i + 1)))
        )
