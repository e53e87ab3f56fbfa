"""A SELECT's text taken apart into query blocks and calls, by tokens, so that edits leave all other text verbatim."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sqlglot.tokens import Token

from spark_mv.query.ai_calls.blocks import Query, TextError, TokenBlock, TokenCall, TokenCte, TokenItem, TokenSpan
from spark_mv.query.syntax.source_text import SourceTextError, raw_tokens

_SET_OPERATORS = {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
_CLAUSES = {
    "FROM": "FROM",
    "WHERE": "WHERE",
    "GROUP BY": "GROUP BY",
    "HAVING": "HAVING",
    "QUALIFY": "QUALIFY",
    "WINDOW": "WINDOW",
    "ORDER BY": "ORDER BY",
    "SORT BY": "ORDER BY",
    "CLUSTER BY": "ORDER BY",
    "DISTRIBUTE BY": "ORDER BY",
    "LIMIT": "LIMIT",
    "OFFSET": "LIMIT",
}


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
        self.match = self._match_parentheses()
        self.blocks: list[TokenBlock] = []
        if not self.tokens:
            raise TextError("the text is empty")
        self.root = self._query(0, len(self.tokens), None)

    def text(self, span: TokenSpan) -> str:
        return self.sql[span.start : span.end]

    def span(self, first: int, end: int) -> TokenSpan:
        """The characters of tokens first … end - 1."""
        if first >= end:
            at = self.tokens[min(first, len(self.tokens) - 1)].start
            return TokenSpan(at, at)
        return TokenSpan(self.tokens[first].start, self.tokens[end - 1].end + 1)

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

    def block_of(self, span: TokenSpan) -> TokenBlock | None:
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

    def conjuncts(self, span: TokenSpan) -> list[TokenSpan]:
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

    def token_range(self, span: TokenSpan) -> tuple[int, int]:
        inside = [i for i, t in enumerate(self.tokens) if span.start <= t.start and t.end < span.end]
        return (inside[0], inside[-1] + 1) if inside else (0, 0)

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

    def _query(self, first: int, end: int, parent: TokenBlock | None, outer: Query | None = None) -> Query:
        query = Query(self.span(first, end), parent, outer=outer)
        i = first
        if self.words[i] == "WITH":
            i = self._ctes(query, i + 1, end)
        terms, start = [], i
        for at in self.top_level(i, end):
            if self.words[at] in _SET_OPERATORS and at > start and self.words[at - 1] != "*":
                if self.words[at] in {"EXCEPT", "MINUS"} and self.words[at - 1] == ".":
                    continue
                terms.append((start, at))
                start = at + 1
                while start < end and self.words[start] in {"ALL", "DISTINCT", "BY", "NAME"}:
                    start += 1
        terms.append((start, end))
        query.set_operation = len(terms) > 1
        for a, b in terms:
            self._term(query, a, b)
        return query

    def _ctes(self, query: Query, i: int, end: int) -> int:
        first = i
        recursive = self.words[i] == "RECURSIVE"
        i += recursive
        while True:
            name, begin = self.tokens[i].text, i
            i += 1
            if self.words[i] == "(":
                i = self.match[i] + 1
            if self.words[i] == "MAX":  # WITH RECURSIVE c MAX RECURSION LEVEL n AS
                i += 4
            if self.words[i] == "AS":
                i += 1
            if i >= end or self.words[i] != "(":
                raise TextError(f"the WITH clause cannot be understood at {self._at(i)}")
            close = self.match[i]
            body = self._query(i + 1, close, None, outer=query)
            cte = TokenCte(name, self.span(begin, close + 1), body, recursive, len(query.ctes))
            body.parent_cte = cte
            query.ctes.append(cte)
            i = close + 1
            if i < end and self.words[i] == ",":
                i += 1
                continue
            query.with_span = self.span(first, i)
            return i

    def _term(self, query: Query, first: int, end: int) -> None:
        if first >= end:
            raise TextError(f"the query is incomplete at {self._at(first)}")
        word = self.words[first]
        if word == "(" and self._starts_query(first + 1):
            close = self.match[first]
            inner = self._query(first + 1, close, None, outer=query)
            query.blocks.extend(inner.blocks)
            query.tail = self.span(close + 1, end) if close + 1 < end else None
            return
        if word == "SELECT":
            query.blocks.append(self._block(query, first, end))
        elif word == "FROM":
            raise TextError(
                f"a query that begins with FROM (at {self._at(first)}) is not taken apart: begin with SELECT"
            )
        elif word not in {"VALUES", "TABLE"}:
            raise TextError(f"a SELECT was expected at {self._at(first)}, not {self.tokens[first].text!r}")

    def _block(self, query: Query, first: int, end: int) -> TokenBlock:
        block = TokenBlock(self.span(first, end), query)
        self.blocks.append(block)
        start = first + 1
        if start < end and self.words[start] in {"DISTINCT", "ALL"}:
            block.distinct = self.words[start] == "DISTINCT"
            start += 1
        current, begin = "SELECT", start
        bounds: list[tuple[str, int, int]] = []
        for i in self.top_level(start, end):
            if i == start:
                continue
            clause = self._clause_at(i, end, current)
            if clause:
                bounds.append((current, begin, i))
                current = clause
                begin = i + 1
        bounds.append((current, begin, end))
        for name, a, b in bounds:
            if name == "SELECT":
                block.list_span = self.span(a, b)
                block.items = [self._item(x, y) for x, y in self.split(a, b, ",") if y > x]
            elif name in block.clauses:
                block.clauses[name] = TokenSpan(block.clauses[name].start, self.span(a, b).end)
            else:
                block.clauses[name] = self.span(a, b)
        self._subqueries(block, start, end)
        return block

    def _clause_at(self, i: int, end: int, current: str) -> str | None:
        word = self.words[i]
        if word not in _CLAUSES or self.words[i - 1] in {".", "AS"}:
            return None
        if word == "FROM" and (current != "SELECT" or self.words[i - 1] == "DISTINCT"):
            return None  # x IS DISTINCT FROM y
        following = self.words[i + 1] if i + 1 < end else ""
        if word == "WINDOW" and not (i + 2 < end and self.words[i + 2] == "AS"):
            return None
        if word in {"LIMIT", "OFFSET", "QUALIFY"} and following in {"", ",", ".", "=", "<", ">"} and i + 1 >= end:
            return None
        return _CLAUSES[word]

    def _item(self, first: int, end: int) -> TokenItem:
        span = self.span(first, end)
        last = end - 1
        if self.words[first] == "*" or (self.words[last] == "*" and last > first and self.words[last - 1] == "."):
            return TokenItem(span, span, "", True)
        for i in self.top_level(first, end):
            if self.words[i] == "*" and i > first and self.words[i - 1] == ".":
                return TokenItem(span, span, "", True)  # t.* EXCEPT (…)
        before = self.words[last - 1] if last > first else ""
        if before == "AS":
            return TokenItem(span, self.span(first, last - 1), self.tokens[last].text, False)
        if last == first or before == ".":
            return TokenItem(span, span, self.tokens[last].text if self._alias(last) else "", False)
        ended = (
            before in {")", "]", "END"}
            or self._alias(last - 1)
            or self.tokens[last - 1].token_type.name
            in {
                "STRING",
                "NUMBER",
            }
        )
        if ended and self._alias(last) and self.words[last] != "END":
            return TokenItem(span, self.span(first, last), self.tokens[last].text, False)
        return TokenItem(span, span, "", False)

    def identifier(self, i: int) -> bool:
        """Whether the token can be a name: quoted, or no word of the language."""
        token = self.tokens[i]
        if self.sql[token.start] == "`":
            return True
        word = self.words[i]
        return bool(word) and (word[0].isalpha() or word[0] == "_") and word not in _WORDS and " " not in word

    def _alias(self, i: int) -> bool:
        token = self.tokens[i]
        if token.token_type.name in {"STRING", "RAW_STRING", "NUMBER"}:
            return False
        return self.sql[token.start] == "`" or (token.text[:1].isalpha() or token.text[:1] == "_")

    def _starts_query(self, i: int) -> bool:
        while i < len(self.words) and self.words[i] == "(":
            i += 1
        return i < len(self.words) and self.words[i] in {"SELECT", "WITH"}

    def _subqueries(self, block: TokenBlock, first: int, end: int) -> None:
        i = first
        while i < end:
            if self.words[i] == "(" and self._starts_query(i + 1):
                j = i
                if self.words[i + 1] == "(" and self.match[i + 1] != self.match[i] - 1 and not self._set_inside(i):
                    i += 1  # ((SELECT …) + 1): the query starts further in
                    continue
                close = self.match[j]
                block.children.append(self._query(j + 1, close, block))
                i = close
            i += 1

    def _set_inside(self, i: int) -> bool:
        return any(self.words[k] in _SET_OPERATORS for k in self.top_level(i + 1, self.match[i]))

    def _at(self, i: int) -> str:
        if i >= len(self.tokens):
            return "the end"
        line, column = self.position(self.tokens[i].start)
        return f"{line}:{column}"
