"""Where each AI call stands, what takes its place there, and which rows can need its answer.

A call becomes a correlated scalar subquery, which Spark 4.1 takes in the select list, WHERE, HAVING, CASE, aggregate
arguments and GROUP BY (there only if selected too). What Spark refuses is answered one step earlier, by a LATERAL
subquery behind the FROM clause: calls inside calls, in ORDER BY, in a LATERAL VIEW, arguments of higher-order functions, and
group keys not selected.

A look-up whose arguments come from another look-up, or from a subquery among the columns of what is read, is a join: Spark 4.1 fails, or
reads all rows of the inner one, where it pushes a filter on such a column down ("No plan for DomainJoin", SCALAR_SUBQUERY_TOO_MANY_ROWS). So is
one in a subquery of an expression, in which Spark finds no place for another one below an aggregate ("Cannot generate code").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from spark_mv.query.ai_calls.blocks import Edit, Query, TokenBlock, TokenCte, edited, outermost
from spark_mv.query.ai_calls.group_keys import asked_of_rows, grouped_by, over_groups
from spark_mv.query.ai_calls.groups import OF_GROUPS
from spark_mv.query.ai_calls.join_conditions import hidden_star
from spark_mv.query.ai_calls.keys import LookUp
from spark_mv.query.ai_calls.outer_rows import OuterRows
from spark_mv.query.ai_calls.signatures import ParsedCall
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_text import Span

Render = Callable[[Span], str]


class Places:
    """The calls of one statement in their blocks."""

    def __init__(
        self,
        text: TokenText,
        calls: Sequence[ParsedCall],
        schemas: Mapping[str, Mapping[str, str]] | None = None,
        told_apart: Collection[int] = (),
    ) -> None:
        self.told_apart = told_apart  # offsets of calls, see Analysis.told_apart
        self.text = text
        self.outer = OuterRows(text, schemas or {})
        self.calls = list(calls)
        self.block: dict[int, TokenBlock] = {}
        self.clause: dict[int, str] = {}
        # column of the LATERAL subquery or join, for calls answered that way: one for equal ones
        self.name: dict[int, str] = {}
        self.beside: dict[int, str] = {}  # its text, to stand behind FROM
        self.stacked: dict[int, bool] = {}  # by block
        self.all_edits: list[Edit] = []  # also those inside others
        self._texts: dict[int, str] = {}
        for number, parsed in enumerate(sorted(self.calls, key=lambda p: p.call.span.start), 1):
            block = text.block_of(parsed.call.span)
            if block is None:
                continue
            self.block[id(parsed)] = block
            self.clause[id(parsed)] = block.clause_of(parsed.call.span)
            self.stacked.setdefault(id(block), self._stacked(block))
            if self.stacked[id(block)] or self._needs_lateral(parsed, block):
                same = (self.name.get(id(p)) for p in self._equal(parsed))
                self.name[id(parsed)] = next((name for name in same if name), f"__mv_a{number}")

    # ---- which way

    def _needs_lateral(self, parsed: ParsedCall, block: TokenBlock) -> bool:
        clause = block.clause_of(parsed.call.span)
        if self._around(parsed) or clause in {"ORDER BY", "FROM"} or self._lambdas_around(parsed):
            return True
        if "GROUP BY" not in block.clauses:
            return False
        grouped = any(block.clauses["GROUP BY"].holds(p.call.span) for p in self._equal(parsed))
        selected = any(block.list_span.holds(p.call.span) for p in self._equal(parsed))
        return grouped and not selected

    def _equal(self, parsed: ParsedCall) -> list[ParsedCall]:
        """The calls in the same SELECT that are written like this one, itself included."""
        block = self.text.block_of(parsed.call.span)
        return [
            p for p in self.calls if self._text(p) == self._text(parsed) and self.text.block_of(p.call.span) is block
        ]

    def _stacked(self, block: TokenBlock) -> bool:
        """Whether what the SELECT reads has a column from an AI call or a subquery, or it is itself a subquery in an expression, and answers can be
        joined to it, row by row."""
        if "FROM" not in block.clauses or {"GROUP BY", "HAVING"} & block.clauses.keys():
            return False
        if self._sees_all_columns(block.span, block) or self._from_has(block, {"PIVOT", "UNPIVOT"}):
            return False
        if self.text.lateral_view(block.clauses["FROM"]) is not None:
            return False
        return _in_expression(block.query) or self._reads_answers(block)

    def _reads_answers(self, block: TokenBlock) -> bool:
        """Whether what the SELECT reads has a column from an AI call or a subquery."""
        if "FROM" not in block.clauses:
            return False
        where = block.clauses["FROM"]
        read = [where, *(cte.span for used in self.ctes_for(block.query, self.text.text(where)) for cte in used)]
        return bool(self.inside(read)) or any(
            reader is not None and at.holds(reader.span) and reader.clause_of(inner.span) == "SELECT"
            for at in read
            for inner in self.text.blocks
            if at.holds(inner.span)
            for reader in [inner.query.parent]
        )

    def _joined(self, block: TokenBlock) -> bool:
        """Whether look-ups beside its FROM are joins: behind a comma, the condition of a join does not see what stands before."""
        if self._by_key(block):
            return True
        return self.stacked[id(block)] and not self._from_has(block, {",", "LATERAL"})

    def _by_key(self, block: TokenBlock) -> bool:
        """Whether a call that is answered beside FROM reads columns of which equal values may not be the same. In a LATERAL subquery, Spark looks answers up
        once for all rows that are equal in these, whatever the key."""
        mine = (p for p in self.calls if id(p) in self.name and self.block[id(p)] is block)
        return any(p.call.span.start not in self.told_apart for p in mine)

    def _behind_comma(self, block: TokenBlock) -> bool:
        """Whether a join behind its FROM would not see all of it."""
        where = block.clauses.get("FROM")
        return where is not None and self.text.has(Span(where.start, self.insertion(block)[0]), {",", "LATERAL"})

    def ctes_for(self, query: Query, sql: str) -> Iterator[list[TokenCte]]:
        """The CTEs that a text in the query names, and those which these name, level by level outwards. A name in a string counts: too
        many, never too few."""
        wanted = sql.lower()
        level: Query | None = query
        before: int | None = None
        while level is not None:
            used = []
            for cte in reversed(level.ctes if before is None else level.ctes[:before]):
                if cte.name.lower() in wanted:
                    used.append(cte)
                    wanted += self.text.text(cte.span).lower()
            yield used[::-1]
            before = level.parent_cte.position if level.parent_cte is not None else None
            level = level.around

    def _text(self, parsed: ParsedCall) -> str:
        if id(parsed) not in self._texts:
            first, end = self.text.token_range(parsed.call.span)  # tokens: blanks and comments make no difference
            written = (self.text.sql[t.start : t.end + 1] for t in self.text.tokens[first + 1 : end])
            self._texts[id(parsed)] = " ".join([parsed.function, *written])
        return self._texts[id(parsed)]

    def _around(self, parsed: ParsedCall) -> list[ParsedCall]:
        """The calls that have this one among their arguments, in the same block."""
        block = self.text.block_of(parsed.call.span)
        return [
            p
            for p in self.calls
            if p is not parsed and p.call.span.holds(parsed.call.span) and self.text.block_of(p.call.span) is block
        ]

    def inside(self, spans: Sequence[Span]) -> list[ParsedCall]:
        """The calls that stand in one of the spans."""
        return [p for p in self.calls if any(s.holds(p.call.span) for s in spans)]

    def shown_in(self, parsed: ParsedCall) -> str:
        """The column of its SELECT that the call stands in, where it has a name; else the clause."""
        items = [item for item in self.block[id(parsed)].items if item.span.holds(parsed.call.span)]
        return (items[0].name if items else "") or self.clause[id(parsed)]

    # ---- refusals

    def errors(self) -> list[QueryError]:
        """Calls that stand where no answer can be put."""
        found = []
        for parsed in self.calls:
            block = self.block.get(id(parsed))
            if block is None:
                found.append(self._refuse(parsed, "stands outside any SELECT", "put it into a SELECT"))
                continue
            if self._in_lambda(parsed):
                found.append(
                    self._refuse(
                        parsed,
                        "stands in a lambda function, whose rows Spark cannot join",
                        "explode the array in a CTE, call it there, and collect the answers",
                    )
                )
            if self.clause[id(parsed)] == "FROM" and not self._in_lateral_view(parsed, block):
                found.append(self._refuse(parsed, "stands in FROM", "compute it as a column in a CTE"))
            if self.clause[id(parsed)] == "ORDER BY" and ("GROUP BY" in block.clauses or parsed.function in OF_GROUPS):
                found.append(
                    self._refuse(
                        parsed, "stands in ORDER BY of groups", "make it a column, and order by that in an outer SELECT"
                    )
                )
            if any(self.outer.named_in(block, span) for _, span, _ in parsed.row):
                found.append(
                    self._refuse(parsed, "has an argument from outside its subquery", "call it outside, in a CTE")
                )
            if any(self.outer.named_in(block, condition) for condition in block.conditions):
                reason = "stands in a subquery whose joins name the row around it"
                found.append(self._refuse(parsed, reason, "move that to its WHERE, or call it in a CTE"))
            if any(self._outer_row(span) for _, span, _ in parsed.row):
                found.append(
                    self._refuse(parsed, "is asked about a correlated subquery", "compute that as a column in a CTE")
                )
            if id(parsed) in self.name and self._of_lateral_view(parsed, block):
                found.append(self._refuse(parsed, "is asked about a column of a LATERAL VIEW", "compute that in a CTE"))
            if self.clause[id(parsed)] == "HAVING" and self._keys_of_answers(parsed, block):
                reason = "stands in HAVING over keys that are themselves looked up"
                found.append(self._refuse(parsed, reason, "make it a column, and filter by that in an outer SELECT"))
            elif self.clause[id(parsed)] == "HAVING":
                found += self._in_having(parsed, block)
            if self._recursive(block.query):
                found.append(self._refuse(parsed, "stands in a recursive CTE", "call it on the CTE's result"))
            if any(self._sees_all_columns(span, block) for _, span, _ in parsed.row):
                found.append(self._refuse(parsed, "is asked about all columns (*)", "name the columns"))
            if id(parsed) in self.name and self._sees_all_columns(block.span, block):
                found.append(
                    self._refuse(parsed, "stands beside a function of all columns (*)", "call it in a CTE of its own")
                )
            if id(parsed) in self.name and self._by_key(block) and self._behind_comma(block):
                reason = "is asked about columns of which equal values may not be the same (0.0 and -0.0, a collation, a map), beside a comma or a LATERAL in FROM"
                found.append(self._refuse(parsed, reason, "write JOIN, or call it in a CTE of its own"))
            if id(parsed) in self.name and self._from_has(block, {"PIVOT", "UNPIVOT"}):
                found.append(self._refuse(parsed, "stands beside a PIVOT", "call it in a CTE and pivot that"))
        return found

    def _refuse(self, parsed: ParsedCall, reason: str, cure: str) -> QueryError:
        call = parsed.call
        message = f"{call.name} at line {call.line} {reason}; {cure}."
        return QueryError("AI_UNSUPPORTED_PLACE", message, call.line, call.column)

    def _in_lambda(self, parsed: ParsedCall) -> bool:
        first, _ = self.text.token_range(parsed.call.span)
        return any(arrow < first for arrow in self._lambdas_around(parsed))

    def _lambdas_around(self, parsed: ParsedCall) -> list[int]:
        """The arrows of lambdas among the arguments of which this call is one, or stands in one."""
        first, end = self.text.token_range(parsed.call.span)
        begin, _ = self.text.token_range(self.block[id(parsed)].span)
        around = [(open_, close) for open_, close in self.text.match.items() if begin <= open_ < first and close >= end]
        return [
            i for open_, close in around for i in self.text.top_level(open_ + 1, close) if self.text.words[i] == "->"
        ]

    def _in_lateral_view(self, parsed: ParsedCall, block: TokenBlock) -> bool:
        at, _ = self.insertion(block)
        return parsed.call.span.start >= at

    def _of_lateral_view(self, parsed: ParsedCall, block: TokenBlock) -> bool:
        """Whether an argument names what comes into being behind the place where answers are joined to FROM."""
        view = self.text.lateral_view(block.clauses["FROM"]) if "FROM" in block.clauses else None
        if view is None or self.clause[id(parsed)] == "FROM":
            return False
        made = range(view, self.text.token_range(block.clauses["FROM"])[1])
        names = {self.text.tokens[i].text.lower() for i in made if self.text.identifier(i)}
        read = (i for _, span, _ in parsed.row for i in range(*self.text.token_range(span)))
        return any(self.text.identifier(i) and self.text.tokens[i].text.lower() in names for i in read)

    def _sees_all_columns(self, span: Span, block: TokenBlock) -> bool:
        """Whether a function of the block's own takes a star: where the answer is looked up, or beside the column that
        carries it, there are other columns. (A star of the select list itself is told of it; count(*) counts rows.)"""
        first, end = self.text.token_range(span)
        stars = [
            i for i in range(first, end) if self.text.words[i] == "*" and self.text.words[i - 1] in ("(", ",", ".")
        ]
        listed = [item.span for item in block.items if item.star]
        return any(
            self.text.words[i - 2] != "COUNT"
            and not any(at.holds(self.text.span(i, i + 1)) for at in listed)
            and self.text.block_of(self.text.span(i, i + 1)) is block
            for i in stars
        )

    def _keys_of_answers(self, parsed: ParsedCall, block: TokenBlock) -> bool:
        """Whether Spark would have to push the filter of HAVING below the groups, to where keys come from answers or subqueries."""
        of_groups = any(over_groups(self.text, span) for _, span, _ in parsed.row)
        of_groups = of_groups or bool(asked_of_rows(self.text, block.clauses["HAVING"], parsed.call.span))
        other = any(self.block[id(p)] is block and self.clause[id(p)] != "HAVING" for p in self.calls)
        return (other or not of_groups) and self._reads_answers(block)

    def _in_having(self, parsed: ParsedCall, block: TokenBlock) -> Iterator[QueryError]:
        """Calls about rows of which Spark has none left there, but in an aggregate."""
        if asked_of_rows(self.text, block.clauses["HAVING"], parsed.call.span):
            return
        cure = "make it a column, and filter by that in an outer SELECT"
        if self._around(parsed):
            yield self._refuse(parsed, "stands in HAVING among the arguments of another call", cure)
        if "GROUP BY" not in block.clauses:
            return
        keys = [block.clauses["GROUP BY"], *(item.span for item in grouped_by(self.text, block))]
        if any(self._text(p) == self._text(parsed) for p in self.inside(keys)):
            yield self._refuse(
                parsed, "is a key of GROUP BY and stands in HAVING", "name its column there, by its alias"
            )

    def _outer_row(self, span: Span) -> bool:
        """Whether a subquery in the span names a table of the row around it."""
        return any(self.outer.named_in(inner, inner.span) for inner in self.text.blocks if span.holds(inner.span))

    def _recursive(self, query: Query) -> bool:
        while query is not None:
            if query.parent_cte is not None and query.parent_cte.recursive:
                return True
            query = query.around  # type: ignore[assignment]
        return False

    def _from_has(self, block: TokenBlock, words: Collection[str]) -> bool:
        return "FROM" in block.clauses and self.text.has(block.clauses["FROM"], words)

    # ---- edits

    def edits(self, lookup: Callable[[ParsedCall, Render], LookUp]) -> list[Edit]:
        """All edits of the statement; those inside others are already contained in them."""
        changes: list[Edit] = []

        def render(span: Span) -> str:
            return edited(self.text.sql, span, outermost(changes, span))

        for parsed in self.calls:
            found = lookup(parsed, render)
            name = self.name.get(id(parsed))
            if name is None:
                changes.append((parsed.call.span, f"({found.scalar()})"))
                continue
            joined = self._joined(self.block[id(parsed)])
            self.beside[id(parsed)] = (
                f" {found.joined(name)}" if joined else f", LATERAL ({found.scalar()}) AS {name}_({name})"
            )
            changes.append((parsed.call.span, name))
        for block in self.text.blocks:
            mine = [p for p in self.calls if self.block[id(p)] is block and id(p) in self.name]
            if mine:
                at, before = self.insertion(block)
                changes.append((Span(at, at), before + self.all_beside(mine)))
                names = list(dict.fromkeys(self.name[id(p)] for p in mine))
                keys = [f"{name}k" for name in names if self._joined(block)]
                changes.extend(self._stars(block, [*names, *keys]))
        self.all_edits = changes
        return outermost(changes, Span(0, len(self.text.sql)))

    def all_beside(self, calls: Sequence[ParsedCall]) -> str:
        """What stands behind FROM for these calls, inner ones first."""
        ordered = sorted(calls, key=lambda p: p.call.span.end - p.call.span.start)
        return "".join({self.name[id(p)]: self.beside[id(p)] for p in ordered}.values())

    def insertion(self, block: TokenBlock) -> tuple[int, str]:
        if "FROM" not in block.clauses:
            return block.list_span.end, " FROM (SELECT 1) AS __mv_one"
        where = block.clauses["FROM"]
        view = self.text.lateral_view(where)
        return (where.end if view is None else self.text.tokens[view - 1].end + 1), ""

    def _stars(self, block: TokenBlock, names: list[str]) -> list[Edit]:
        out = []
        for item in block.items:
            if item.star and self.text.text(item.span).startswith("*"):
                out.append((item.span, hidden_star(self.text, item, names)))
        return out


def _in_expression(query: Query) -> bool:
    """Whether it, or the set operation that it is a term of, is a subquery elsewhere than in FROM."""
    while query.parent is None and query.parent_cte is None and query.outer is not None:
        query = query.outer
    return query.parent is not None and query.parent.clause_of(query.span) != "FROM"
