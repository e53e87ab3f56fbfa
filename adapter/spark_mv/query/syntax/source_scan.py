"""The scan that finds the SELECT blocks of a query among its tokens; select_blocks checks what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot.tokens import TokenType

from spark_mv.query.syntax.source_block import Block, Context, Item, Join
from spark_mv.query.syntax.source_text import SourceTextError, Span, Token, closing

_BY_HEADS = {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"}


_BY = {head + " BY" for head in _BY_HEADS}


_SET = {"UNION", "EXCEPT", "INTERSECT", "MINUS"}


_JOIN_WORDS = {"INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL", "LATERAL"}


_NO_ALIAS = {
    "AND",
    "OR",
    "NOT",
    "IS",
    "LIKE",
    "IN",
    "BETWEEN",
    "DISTINCT",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "DIV",
    "RLIKE",
    "ILIKE",
    "DATE",
    "INTERVAL",
}


_BEFORE_QUERY = {
    "FROM",
    "JOIN",
    "LATERAL",
    "IN",
    "EXISTS",
    "NOT",
    "AND",
    "OR",
    "ON",
    "WHERE",
    "SELECT",
    "THEN",
    "ELSE",
    "WHEN",
    "AS",
    "BETWEEN",
    "ANY",
    "ALL",
    "SOME",
    "HAVING",
}


_AFTER_FROM_ITEM = {"LATERAL", "JOIN", "ON", "WHERE", "USING", "TABLESAMPLE", "PIVOT", "UNPIVOT", *_JOIN_WORDS, *_SET}


_PLACEHOLDER = Block(
    Span(0, 0), Span(0, 0), (), None, None, (), (), frozenset(), Context.OUTERMOST, "", None, False, False
)


@dataclass
class Scan:
    sql: str
    tokens: tuple[Token, ...]
    blocks: list[Block] = field(default_factory=list)
    withs: list[tuple[Span, Span]] = field(default_factory=list)  # (the whole query, one CTE of it)

    def word(self, i: int) -> str:
        """The keyword at index i, '' for anything else and for a name behind a dot."""
        if i < 0 or i >= len(self.tokens):
            return ""
        if i > 0 and self.tokens[i - 1].kind == TokenType.DOT:
            return ""
        return self.tokens[i].word

    def kind(self, i: int) -> TokenType | None:
        return self.tokens[i].kind if 0 <= i < len(self.tokens) else None

    def skip(self, i: int) -> int:
        """The index after the token or parenthesised group at i."""
        return closing(self.tokens, i) + 1 if self.kind(i) == TokenType.L_PAREN else i + 1

    def fail(self, i: int, what: str) -> SourceTextError:
        at = self.tokens[min(i, len(self.tokens) - 1)].start if self.tokens else 0
        return SourceTextError(f"{what} at offset {at}")

    # one query: [WITH …] select or group, set operations, trailing ORDER BY / LIMIT
    def query(self, lo: int, hi: int, context: Context, name: str, parent: int | None, lateral: bool = False) -> None:
        i = lo
        if self.word(i) == "WITH":
            i = self.ctes(i + 1, hi, parent, Span(self.tokens[lo].start, self.tokens[hi - 1].end))
        bounds = self.split_set_operations(i, hi)
        for start, end in bounds:
            if self.word(start) == "SELECT":
                self.select(start, end, context, name, parent, len(bounds) > 1, lateral)
            elif self.kind(start) == TokenType.L_PAREN:
                close = closing(self.tokens, start)
                if close != end - 1 or len(bounds) > 1:
                    # an operand in parentheses, or a parenthesised query with ORDER BY/LIMIT behind it
                    self.operand(start + 1, close, context, name, parent, lateral)
                else:
                    self.query(start + 1, close, context, name, parent, lateral)
            elif self.word(start) in ("VALUES", "TABLE"):
                self.nested(start, end, None)
            else:
                raise self.fail(start, "expected SELECT")

    def operand(self, lo: int, hi: int, context: Context, name: str, parent: int | None, lateral: bool) -> None:
        before = len(self.blocks)
        self.query(lo, hi, context, name, parent, lateral)
        for k in range(before, len(self.blocks)):
            block = self.blocks[k]
            if block.parent == parent and block.context == context:
                self.blocks[k] = replace(block, set_operand=True)

    def split_set_operations(self, lo: int, hi: int) -> list[tuple[int, int]]:
        bounds: list[tuple[int, int]] = []
        start = i = lo
        while i < hi:
            if (
                self.word(i) in _SET
                and i > start
                and self.kind(i - 1) != TokenType.STAR  # * EXCEPT (column)
                and self.word(i + 1) in ("ALL", "DISTINCT", "SELECT", "VALUES", "TABLE", "")
            ):
                if not (self.kind(i + 1) == TokenType.L_PAREN or self.word(i + 1)):
                    i += 1
                    continue
                bounds.append((start, i))
                i += 2 if self.word(i + 1) in ("ALL", "DISTINCT") else 1
                start = i
                continue
            i = self.skip(i)
        bounds.append((start, hi))
        return bounds

    def ctes(self, i: int, hi: int, parent: int | None, query: Span) -> int:
        if self.word(i) == "RECURSIVE":
            raise self.fail(i, "a recursive CTE is not supported")
        while True:
            start = i
            name = unquote(self.tokens[i].text)
            i += 1
            if self.kind(i) == TokenType.L_PAREN:
                i = self.skip(i)
            if self.word(i) == "AS":
                i += 1
            if self.kind(i) != TokenType.L_PAREN:
                raise self.fail(i, "expected a CTE in parentheses")
            close = closing(self.tokens, i)
            self.query(i + 1, close, Context.CTE, name, parent)
            self.withs.append((query, Span(self.tokens[start].start, self.tokens[close].end)))
            i = close + 1
            if self.kind(i) != TokenType.COMMA or i >= hi:
                return i
            i += 1

    def select(
        self,
        lo: int,
        hi: int,
        context: Context,
        name: str,
        parent: int | None,
        operand: bool,
        lateral: bool,
    ) -> None:
        marks = self.clause_marks(lo, hi)
        index = len(self.blocks)
        self.blocks.append(_PLACEHOLDER)
        i = lo + 1
        distinct = self.word(i) == "DISTINCT"
        if self.word(i) in ("DISTINCT", "ALL"):
            i += 1
        if self.kind(i) == TokenType.HINT:
            while i < hi and not self.tokens[i].text.endswith("*/"):
                i += 1
            i += 1
            if self.word(i) in ("DISTINCT", "ALL"):
                distinct = distinct or self.word(i) == "DISTINCT"
                i += 1
        list_end = marks[0][1] if marks else hi
        if list_end <= i:
            raise self.fail(i, "empty select list")
        items = tuple(self.item(a, b) for a, b in self.split(i, list_end, TokenType.COMMA))
        from_: Span | None = None
        where: Span | None = None
        conjuncts: tuple[Span, ...] = ()
        joins: tuple[Join, ...] = ()
        others: list[tuple[str, Span]] = []
        for k, (clause, at) in enumerate(marks):
            end = marks[k + 1][1] if k + 1 < len(marks) else hi
            span = Span(self.tokens[at].start, self.tokens[end - 1].end)
            if clause == "FROM":
                from_ = span
                joins = self.joins(at + 1, end)
                self.nested(at + 1, end, index, in_from=True)
            elif clause == "WHERE":
                where = span
                conjuncts = tuple(self.conjuncts(at + 1, end))
                self.nested(at + 1, end, index)
            else:
                self.nested(at, end, index)
            if clause not in ("FROM", "WHERE"):
                body = min(at + 1, end - 1) if clause in ("HAVING", "QUALIFY") else at
                others.append((clause, Span(self.tokens[body].start, span.end)))
        self.nested(i, list_end, index)
        self.blocks[index] = Block(
            Span(self.tokens[lo].start, self.tokens[hi - 1].end),
            Span(self.tokens[i].start, self.tokens[list_end - 1].end),
            items,
            from_,
            where,
            conjuncts,
            joins,
            frozenset(clause for clause, _ in marks),
            context,
            name,
            parent,
            operand,
            distinct,
            lateral,
            tuple(others),
        )

    def clause_marks(self, lo: int, hi: int) -> list[tuple[str, int]]:
        """(clause, index of its first token) in order, at this level of parentheses."""
        marks: list[tuple[str, int]] = []
        i = lo + 1
        while i < hi:
            word = self.word(i)
            seen_from = any(clause == "FROM" for clause, _ in marks)
            if word == "FROM" and not (self.word(i - 1) == "DISTINCT" and self.word(i - 2) in ("IS", "NOT")):
                marks.append(("FROM", i))
            elif word in ("WHERE", "HAVING", "QUALIFY") and i > lo + 1:
                marks.append((word, i))
            elif word in _BY or (word in _BY_HEADS and self.word(i + 1) == "BY"):
                marks.append((word if word in _BY else word + " BY", i))
            elif (
                word in ("LIMIT", "OFFSET")
                and i > lo + 1
                and self.kind(i - 1) != TokenType.COMMA
                and self._value(i + 1)
            ):
                marks.append((word, i))
            elif word == "WINDOW" and seen_from and self.word(i + 2) == "AS" and self.kind(i + 3) == TokenType.L_PAREN:
                marks.append(("WINDOW", i))
            elif word == "LATERAL" and self.word(i + 1) == "VIEW":
                if not seen_from or any(clause not in ("FROM", "LATERAL VIEW") for clause, _ in marks):
                    raise self.fail(i, "LATERAL VIEW outside FROM")
                marks.append(("LATERAL VIEW", i))
            elif word == "SELECT":
                raise self.fail(i, "a SELECT that follows FROM is not supported")
            elif self.tokens[i].text == "|>":
                raise self.fail(i, "pipe syntax is not supported")
            i = self.skip(i)
        names = [clause for clause, _ in marks if clause != "LATERAL VIEW"]
        if len(names) != len(set(names)):
            raise self.fail(lo, "a clause stands twice in the SELECT")
        return marks

    def _value(self, i: int) -> bool:
        return self.kind(i) in (TokenType.NUMBER, TokenType.L_PAREN, TokenType.PARAMETER) or self.word(i) != ""

    def split(self, lo: int, hi: int, at: TokenType) -> list[tuple[int, int]]:
        parts: list[tuple[int, int]] = []
        start = i = lo
        while i < hi:
            if self.kind(i) == at:
                parts.append((start, i))
                start = i + 1
            i = self.skip(i)
        return [*parts, (start, hi)]

    def item(self, lo: int, hi: int) -> Item:
        if hi <= lo:
            raise self.fail(lo, "empty entry in a select list")
        span = Span(self.tokens[lo].start, self.tokens[hi - 1].end)
        last = self.tokens[hi - 1]
        alias = ""
        if hi - lo >= 2 and (last.word or last.kind == TokenType.IDENTIFIER):
            before = self.tokens[hi - 2]
            operand_end = before.kind in (TokenType.R_PAREN, TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER)
            if (
                before.word == "AS"
                or operand_end
                or (before.word and before.word not in _NO_ALIAS and last.word != "END")
            ):
                alias = unquote(last.text)
        return Item(span, alias)

    def conjuncts(self, lo: int, hi: int) -> list[Span]:
        """Spans of the AND-ed parts, looked for inside parentheses too."""
        if (
            self.kind(lo) == TokenType.L_PAREN
            and closing(self.tokens, lo) == hi - 1
            and self.word(lo + 1) not in ("SELECT", "WITH")
        ):
            return self.conjuncts(lo + 1, hi - 1)
        cuts: list[int] = []
        betweens = cases = 0
        i = lo
        while i < hi:
            word = self.word(i)
            if word == "CASE":
                cases += 1
            elif word == "END" and cases:
                cases -= 1
            elif cases == 0:
                if word == "BETWEEN":
                    betweens += 1
                elif word == "AND" and betweens:
                    betweens -= 1
                elif word == "AND":
                    cuts.append(i)
                elif word in ("OR", "XOR") or self.tokens[i].text in ("->", "=>"):
                    return [Span(self.tokens[lo].start, self.tokens[hi - 1].end)]
            i = self.skip(i)
        if not cuts:
            return [Span(self.tokens[lo].start, self.tokens[hi - 1].end)]
        parts: list[Span] = []
        for a, b in zip([lo, *(c + 1 for c in cuts)], [*cuts, hi], strict=True):
            if b <= a:
                raise self.fail(a, "empty side of AND")
            parts += self.conjuncts(a, b)
        return parts

    def joins(self, lo: int, hi: int) -> tuple[Join, ...]:
        found: list[Join] = []
        kind: str | None = None
        i = lo
        while i < hi:
            word = self.word(i)
            if word == "JOIN":
                words = []
                k = i - 1
                while self.word(k) in _JOIN_WORDS:
                    words.append(self.word(k))
                    k -= 1
                found.append(Join(" ".join(reversed(words)).replace(" OUTER", "")))
                kind = found[-1].kind
            elif word == "ON" and kind is not None:
                end = i + 1
                while end < hi and self.word(end) not in ("JOIN", "LATERAL") and self.kind(end) != TokenType.COMMA:
                    end = self.skip(end)
                if self.word(end) == "JOIN":
                    while self.word(end - 1) in _JOIN_WORDS:
                        end -= 1
                found[-1] = Join(found[-1].kind, tuple(self.conjuncts(i + 1, end)))
                i = end
                continue
            elif word == "USING" and kind is not None and self.kind(i + 1) == TokenType.L_PAREN:
                pass
            elif word in ("PIVOT", "UNPIVOT", "MATCH_RECOGNIZE") and self.kind(i + 1) == TokenType.L_PAREN:
                found.append(Join(word))
            i = self.skip(i)
        return tuple(found)

    def nested(self, lo: int, hi: int, parent: int | None, in_from: bool = False) -> None:
        """Queries in parentheses anywhere between two indices."""
        i = lo
        while i < hi:
            if self.kind(i) == TokenType.L_PAREN:
                close = closing(self.tokens, i)
                if self._is_query(i + 1, close):
                    operand = self.word(i - 1)
                    function = bool(operand) and operand not in _BEFORE_QUERY
                    derived = in_from and not function and self._from_item(lo, i)
                    lateral = derived and operand == "LATERAL"
                    context = Context.DERIVED if derived else Context.EXPRESSION
                    name_at = close + 2 if self.word(close + 1) == "AS" else close + 1
                    named = derived and name_at < len(self.tokens) and self.word(name_at) not in _AFTER_FROM_ITEM
                    name = unquote(self.tokens[name_at].text) if named else ""
                    self.query(i + 1, close, context, name, parent, lateral)
                else:
                    self.nested(i + 1, close, parent, in_from and not self.word(i - 1))
                i = close + 1
                continue
            i += 1

    def _is_query(self, i: int, close: int) -> bool:
        while self.kind(i) == TokenType.L_PAREN and i < close:
            i += 1
        return self.word(i) in ("SELECT", "WITH")

    def _from_item(self, lo: int, i: int) -> bool:
        """Whether the `(` at i opens a table of the FROM clause rather than an expression in ON."""
        before = self.word(i - 1)
        if self.kind(i - 1) == TokenType.L_PAREN:
            return True
        return i == lo or before in ("FROM", "JOIN", "LATERAL") or self.kind(i - 1) == TokenType.COMMA


def unquote(text: str) -> str:
    return text[1:-1].replace("``", "`") if text[:1] == "`" else text
