"""A SELECT's text taken apart into query blocks and calls, by tokens, so that edits leave all other text verbatim."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.tokens import Token

from spark_mv.query.ai_calls.blocks import TextError, TokenBlock, TokenCall, TokenCte, TokenItem
from spark_mv.query.ai_calls.structure import structure
from spark_mv.query.syntax.ctes import CteNames, read_tables
from spark_mv.query.syntax.parser import Call
from spark_mv.query.syntax.source_text import SourceTextError, Span, raw_tokens

# Words that are never a column's name where a value can stand (Spark's reserved words, and those that would mislead).
_WORDS = frozenset(
    """
    ALL AND ANTI ANY AS ASC BETWEEN BY CASE COLLATE CROSS CUBE CURRENT DESC DISTINCT DIV ELSE END ESCAPE EXCEPT
    EXISTS FALSE FILTER FOLLOWING FOR FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT INTERVAL INTO IS JOIN
    LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT NULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PIVOT PRECEDING
    QUALIFY RANGE REGEXP RIGHT RLIKE ROLLUP ROWS SELECT SEMI SOME SORT TABLE TABLESAMPLE THEN TRUE UNBOUNDED
    UNION UNPIVOT USING VALUES VIEW WHEN WHERE WINDOW WITH WITHIN
    """.split()  # noqa: SIM905
)
_MARK = re.compile(r"/\*mv@(\d+):(\d+)\*/")


class TokenText:
    """The tokens of one statement and the structure found in them."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        try:
            self.tokens: list[Token] = [t for t in raw_tokens(sql) if t.token_type.name != "SEMICOLON"]
        except SourceTextError as error:
            raise TextError(f"the text cannot be split into words: {error}") from error
        self.words = [
            ""
            if t.token_type.name in {"STRING", "RAW_STRING"} or sql[t.start] in "`'\""
            else " ".join(t.text.upper().split())
            for t in self.tokens
        ]
        self._starts = [token.start for token in self.tokens]
        self.match = self._match_parentheses()
        if not self.tokens:
            raise TextError("the text is empty")
        self.structure = structure(sql, self.tokens)
        self.blocks = self.structure.blocks
        self._ctes = CteNames()
        self._nodes: dict[int, exp.Expr] = {}  # calls by their first character

    def text(self, span: Span) -> str:
        return self.sql[span.start : span.end]

    def span(self, first: int, end: int) -> Span:
        """The characters of tokens first … end - 1."""
        if first >= end:
            at = self.tokens[min(first, len(self.tokens) - 1)].start
            return Span(at, at)
        return Span(self.tokens[first].start, self.tokens[end - 1].end + 1)

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column of a character."""
        before = self.sql[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def calls(self, names: Collection[str]) -> list[TokenCall]:
        """Every call of one of the functions (lower-cased names), in the order of the text."""
        found = []
        for i, word in enumerate(self.words[:-1]):
            quoted = self.sql[self.tokens[i].start] == "`"
            name = self.tokens[i].text.lower() if quoted else word.lower()
            if name not in names or self.words[i + 1] != "(" or (i and self.words[i - 1] in {".", "FUNCTION"}):
                continue
            close = self.match[i + 1]
            arguments = tuple(self.span(a, b) for a, b in self.split(i + 2, close, ",")) if close > i + 2 else ()
            line, column = self._place(i)
            found.append(TokenCall(name, self.span(i, close + 1), arguments, line, column))
        return found

    def _place(self, i: int) -> tuple[int, int]:
        """Where the user wrote the call: marked in a comment when the text is not the user's own any more."""
        token = self.tokens[i]
        mark = _MARK.match(self.sql, token.end + 1)
        return (int(mark[1]), int(mark[2])) if mark else self.position(token.start)

    def cte_of(self, table: exp.Table) -> TokenCte | None:
        """The CTE that a table's name means."""
        return self.structure.of_cte.get(id(self._ctes.of(table)))

    def is_read(self, call: TokenCall) -> bool:
        """Whether the call stands in no CTE that nobody reads."""
        node = self.node_of(call)
        around = list(self._ctes.around(node)) if node is not None else []
        if not around:
            return True
        read = {id(self._ctes.of(table)) for table in read_tables(self.structure.tree, self._ctes)}
        return all(id(cte) in read for cte in around)

    def node_of(self, call: TokenCall) -> exp.Expr | None:
        """The call in the tree."""
        if not self._nodes:
            found = ((node.meta.get("call"), node) for node in self.structure.tree.walk())
            self._nodes.update((written.start, node) for written, node in found if isinstance(written, Call))
        return self._nodes.get(call.span.start)

    def block_of(self, span: Span) -> TokenBlock | None:
        """The innermost block that holds the span."""
        holding = [b for b in self.blocks if b.span.holds(span)]
        return min(holding, key=lambda b: b.span.end - b.span.start) if holding else None

    def split(self, first: int, end: int, separator: str) -> list[tuple[int, int]]:
        """Token ranges between separators that stand outside parentheses and CASE … END."""
        parts, start = [], first
        between = 0
        for i in self.top_level(first, end):
            if separator == "AND" and self.words[i] == "BETWEEN":
                between += 1
            elif self.words[i] == separator:
                if between:
                    between -= 1
                    continue
                parts.append((start, i))
                start = i + 1
        parts.append((start, end))
        return parts

    def conjuncts(self, span: Span) -> list[Span]:
        """The conditions joined by AND in the span; one of OR is one condition."""
        first, end = self.token_range(span)
        while end - first > 2 and self.words[first] == "(" and self.match[first] == end - 1:
            first, end = first + 1, end - 1
        if any(self.words[i] == "OR" for i in self.top_level(first, end)):
            return [span]
        parts = self.split(first, end, "AND")
        if len(parts) == 1:
            return [self.span(*parts[0])]
        return [s for part in parts for s in self.conjuncts(self.span(*part))]

    def token_range(self, span: Span) -> tuple[int, int]:
        """The tokens first … end - 1 that lie in the span; (0, 0) for none."""
        first, end = bisect_left(self._starts, span.start), bisect_left(self._starts, span.end)
        while end > first and self.tokens[end - 1].end >= span.end:
            end -= 1
        return (first, end) if end > first else (0, 0)

    def has(self, span: Span, words: Collection[str]) -> bool:
        """Whether one of the words stands in the span outside of parentheses."""
        return any(self.words[i] in words for i in self.top_level(*self.token_range(span)))

    def lateral_view(self, span: Span) -> int | None:
        """Index of the token that begins the first LATERAL VIEW of a FROM clause."""
        first, end = self.token_range(span)
        found = (i for i in self.top_level(first, end) if self.words[i : i + 2] == ["LATERAL", "VIEW"])
        return next(found, None)

    def top_level(self, first: int, end: int) -> Iterator[int]:
        """Indexes of the tokens outside parentheses, brackets and CASE … END."""
        i, cases = first, 0
        while i < end:
            word = self.words[i]
            if word == "CASE" and not (i and self.words[i - 1] == "."):
                cases += 1
            elif word == "END" and cases:
                cases -= 1
            elif not cases:
                yield i
            if word in {"(", "["}:
                i = self.match[i]
                if not cases:
                    yield i
            i += 1

    # ---- structure

    def _match_parentheses(self) -> dict[int, int]:
        stack: list[int] = []
        match: dict[int, int] = {}
        for i, word in enumerate(self.words):
            if word in {"(", "["}:
                stack.append(i)
            elif word in {")", "]"}:
                if not stack:
                    line, column = self.position(self.tokens[i].start)
                    raise TextError(f"`{word}` at {line}:{column} closes nothing")
                match[stack.pop()] = i
        if stack:
            line, column = self.position(self.tokens[stack[-1]].start)
            raise TextError(f"the parenthesis at {line}:{column} is never closed")
        return match

    def earlier_names(self, block: TokenBlock, span: Span) -> set[str]:
        """The names, in lower case, of entries of the select list before the span, but for columns as they are: Spark lets the list read them."""
        return {i.name.lower() for i in block.items if i.name and i.span.end <= span.start and not self.own_column(i)}

    def own_column(self, item: TokenItem) -> bool:
        """Whether the item is a column under its own name."""
        plain = isinstance(item.tree, exp.Dot) and all(isinstance(part, exp.Identifier) for part in item.tree.parts)
        return (plain or isinstance(item.tree, exp.Column)) and item.tree.name.lower() == item.name.lower()

    def identifier(self, i: int) -> bool:
        """Whether the token can be a name: quoted, or no word of the language."""
        token = self.tokens[i]
        if self.sql[token.start] == "`":
            return True
        word = self.words[i]
        return bool(word) and (word[0].isalpha() or word[0] == "_") and word not in _WORDS and " " not in word
