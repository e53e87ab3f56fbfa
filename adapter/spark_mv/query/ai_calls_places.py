"""Where each AI call stands, what takes its place there, and which rows can need its answer.

A call becomes a correlated scalar subquery, which Spark 4.1 takes in the select list, WHERE, HAVING, CASE, aggregate
arguments and GROUP BY (there only if selected too). What Spark refuses is answered one step earlier, by a LATERAL
subquery behind the FROM clause: calls inside calls, in ORDER BY, in a LATERAL VIEW, and group keys not selected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spark_mv.query.ai_calls_keys import quote
from spark_mv.query.ai_calls_signatures import ParsedCall
from spark_mv.query.ai_calls_text import Block, Query, Span, Text, edited
from spark_mv.query.verdict import QueryError

Render = Callable[[Span], str]
Edit = tuple[Span, str]


class Places:
    """The calls of one statement in their blocks."""

    def __init__(self, text: Text, calls: Sequence[ParsedCall]) -> None:
        self.text = text
        self.calls = list(calls)
        self.block: dict[int, Block] = {}
        self.clause: dict[int, str] = {}
        self.name: dict[int, str] = {}  # column of the LATERAL subquery, for calls answered that way
        self.laterals: dict[int, str] = {}  # its text
        self._all: list[Edit] = []
        for number, parsed in enumerate(sorted(self.calls, key=lambda p: p.call.span.start), 1):
            block = text.block_of(parsed.call.span)
            if block is None:
                continue
            self.block[id(parsed)] = block
            self.clause[id(parsed)] = block.clause_of(parsed.call.span)
            if self._needs_lateral(parsed, block):
                self.name[id(parsed)] = f"__mv_a{number}"

    # ---- which way

    def _needs_lateral(self, parsed: ParsedCall, block: Block) -> bool:
        clause = block.clause_of(parsed.call.span)
        if self._around(parsed) or clause in {"ORDER BY", "FROM"}:
            return True
        if "GROUP BY" not in block.clauses:
            return False
        keys = [block.clauses["GROUP BY"]]
        same = [
            p for p in self.calls if self._text(p) == self._text(parsed) and self.text.block_of(p.call.span) is block
        ]
        grouped = any(keys[0].holds(p.call.span) for p in same)
        selected = any(block.list_span.holds(p.call.span) for p in same)
        return grouped and not selected

    def _text(self, parsed: ParsedCall) -> str:
        return " ".join(self.text.text(parsed.call.span).split())

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
            if self._recursive(block.query):
                found.append(self._refuse(parsed, "stands in a recursive CTE", "call it on the CTE's result"))
            if id(parsed) in self.name and self._pivot(block):
                found.append(self._refuse(parsed, "stands beside a PIVOT", "call it in a CTE and pivot that"))
        return found

    def _refuse(self, parsed: ParsedCall, reason: str, cure: str) -> QueryError:
        call = parsed.call
        message = f"{call.name} at line {call.line} {reason}; {cure}."
        return QueryError("AI_UNSUPPORTED_PLACE", message, call.line, call.column)

    def _in_lambda(self, parsed: ParsedCall) -> bool:
        first, end = self.text.token_range(parsed.call.span)
        block = self.block[id(parsed)]
        begin, _ = self.text.token_range(block.span)
        for open_, close in self.text.match.items():
            if begin <= open_ < first and close >= end:
                if any(self.text.words[i] == "->" and i < first for i in self.text.top_level(open_ + 1, close)):
                    return True
        return False

    def _recursive(self, query: Query) -> bool:
        while query is not None:
            if query.parent_cte is not None and query.parent_cte.recursive:
                return True
            query = query.outer if query.outer is not None else (query.parent.query if query.parent else None)  # type: ignore[assignment]
        return False

    def _pivot(self, block: Block) -> bool:
        if "FROM" not in block.clauses:
            return False
        first, end = self.text.token_range(block.clauses["FROM"])
        return any(self.text.words[i] in {"PIVOT", "UNPIVOT"} for i in self.text.top_level(first, end))

    # ---- edits

    def edits(self, lookup: Callable[[ParsedCall, Render], str]) -> list[Edit]:
        """All edits of the statement; those inside others are already contained in them."""
        changes: list[Edit] = []

        def render(span: Span) -> str:
            return edited(self.text.sql, span, outermost(changes, span))

        for parsed in self.calls:
            answer = lookup(parsed, render)
            if id(parsed) in self.name:
                name = self.name[id(parsed)]
                self.laterals[id(parsed)] = f"LATERAL ({answer}) AS {name}_({name})"
                changes.append((parsed.call.span, name))
            else:
                changes.append((parsed.call.span, f"({answer})"))
        for block in self.text.blocks:
            mine = [p for p in self.calls if self.block[id(p)] is block and id(p) in self.name]
            if mine:
                at, before = self._insertion(block)
                mine.sort(key=lambda p: p.call.span.end - p.call.span.start)
                changes.append((Span(at, at), before + "".join(", " + self.laterals[id(p)] for p in mine)))
                changes.extend(self._stars(block, [self.name[id(p)] for p in mine]))
        self._all = changes
        return outermost(changes, Span(0, len(self.text.sql)))

    def _insertion(self, block: Block) -> tuple[int, str]:
        if "FROM" not in block.clauses:
            return block.list_span.end, " FROM (SELECT 1) AS __mv_one"
        where = block.clauses["FROM"]
        first, end = self.text.token_range(where)
        for i in self.text.top_level(first, end):
            if self.text.words[i] in {"LATERAL VIEW", "LATERAL"} and (
                self.text.words[i] == "LATERAL VIEW" or self.text.words[i + 1] == "VIEW"
            ):
                return self.text.tokens[i - 1].end + 1, ""
        return where.end, ""

    def _stars(self, block: Block, names: list[str]) -> list[Edit]:
        out = []
        for item in block.items:
            if not item.star or not self.text.text(item.span).startswith("*"):
                continue
            first, end = self.text.token_range(item.span)
            if end - first > 2 and self.text.words[first + 1] == "EXCEPT":
                close = self.text.tokens[self.text.match[first + 2]].start
                out.append((Span(close, close), ", " + ", ".join(names)))
            else:
                out.append((item.span, f"* EXCEPT ({', '.join(names)})"))
        return out

    # ---- requests

    def request(
        self, parsed: ParsedCall, request: Callable[[ParsedCall, Render], tuple[str, str]], edits: Sequence[Edit]
    ) -> tuple[str, list[ParsedCall]]:
        """The request SQL of a call, and the calls whose answers it reads."""
        block = self.block[id(parsed)]
        spans = [span for _, span, _ in parsed.row]
        clause = self.clause[id(parsed)]
        where = self._filters(block, "WHERE", clause)
        used = [*spans, *where]
        if "FROM" in block.clauses:
            used.append(block.clauses["FROM"])
        inner = [c for b in block.children for c in self.inside([b.span]) if any(s.holds(b.span) for s in used)]
        own = [p for p in self.inside([*spans, *where]) if self.block[id(p)] is block and p is not parsed]
        own = [p for p in own if not p.call.span.holds(parsed.call.span)]
        laterals = self._closure([p for p in own if id(p) in self.name])
        body = self._body(parsed, block, where, laterals, edits)
        text, identity = request(parsed, lambda s: edited(self.text.sql, s, self._edits_in(s, edits, parsed)))
        body = f"SELECT {text} AS request{body}"
        sql = (
            f"SELECT DISTINCT sha2(concat({quote(identity)}, request), 256) AS result_key, "
            f"{quote(parsed.function)} AS function, request FROM ({body}) AS __mv_q WHERE request IS NOT NULL"
        )
        needs = [*inner, *own, *laterals]
        sql, from_ctes = self._in_context(block.query, sql, [self.text.text(s) for s in used], edits)
        return sql, [*needs, *from_ctes]

    def _filters(self, block: Block, name: str, clause: str) -> list[Span]:
        """Conditions that a row must meet before this call can matter: for a call in the same clause only those
        without any AI call, else all (so that AI filters are answered first and later calls see only what passed)."""
        if name not in block.clauses:
            return []
        conditions = self.text.conjuncts(block.clauses[name])
        if clause == name:
            return [c for c in conditions if not self.inside([c])]
        if clause == "FROM":
            return [c for c in conditions if not self.inside([c])]
        return conditions

    def _closure(self, calls: Sequence[ParsedCall]) -> list[ParsedCall]:
        found: list[ParsedCall] = []
        for p in sorted(calls, key=lambda p: p.call.span.end - p.call.span.start):
            if p not in found:
                found.append(p)
        return found

    def _body(
        self, parsed: ParsedCall, block: Block, where: list[Span], laterals: list[ParsedCall], edits: Sequence[Edit]
    ) -> str:
        parts = []
        added = "".join(", " + self.laterals[id(p)] for p in laterals)
        at, before = self._insertion(block)
        if "FROM" in block.clauses:
            span = block.clauses["FROM"]
            own_insertion = [e for e in edits if e[0] == Span(at, at)]
            rest = [e for e in edits if e not in own_insertion]
            head, tail = Span(span.start, at), Span(at, span.end)
            parts.append(
                " FROM "
                + edited(self.text.sql, head, outermost(rest, head))
                + added
                + edited(self.text.sql, tail, outermost(rest, tail))
            )
        elif added:
            parts.append(before + added)
        if where:
            texts = [edited(self.text.sql, s, self._edits_in(s, edits, None)) for s in where]
            parts.append(" WHERE " + " AND ".join(f"({t})" for t in texts))
        return "".join(parts)

    def _edits_in(self, span: Span, edits: Sequence[Edit], inside: ParsedCall | None) -> list[Edit]:
        """The edits of the span, also those that the edit of an enclosing call has swallowed."""
        if inside is None:
            return outermost(edits, span)
        return outermost([*self._all, *edits], span)

    def _in_context(
        self, query: Query, sql: str, mentions: list[str], edits: Sequence[Edit]
    ) -> tuple[str, list[ParsedCall]]:
        """The statement inside the WITH clauses that it can see, and the calls in the CTEs it uses."""
        needs: list[ParsedCall] = []
        level: Query | None = query
        before: int | None = None
        while level is not None:
            visible = level.ctes if before is None else level.ctes[:before]
            used = self._used(visible, sql)
            if used:
                texts = [edited(self.text.sql, c.span, outermost(edits, c.span)) for c in used]
                recursive = "RECURSIVE " if any(c.recursive for c in used) else ""
                sql = f"WITH {recursive}{', '.join(texts)} SELECT * FROM ({sql}) AS __mv_w"
                needs += self.inside([c.span for c in used])
            before = level.parent_cte.position if level.parent_cte is not None else None
            level = level.outer if level.outer is not None else (level.parent.query if level.parent else None)
        return sql, needs

    def _used(self, ctes: Sequence, sql: str) -> list:  # type: ignore[type-arg]
        """The CTEs that the text names, and those which these name. A name in a string counts: too many, never too few."""
        wanted = sql.lower()
        used = []
        for cte in reversed(ctes):
            if cte.name.lower() in wanted:
                used.append(cte)
                wanted += self.text.text(cte.span).lower()
        return used[::-1]


def outermost(edits: Sequence[Edit], span: Span) -> list[Edit]:
    """The edits in the span that no other of them contains."""
    inside = [e for e in edits if span.holds(e[0])]
    out = []
    for number, (where, text) in enumerate(inside):
        covered = any(
            other.holds(where) and (other != where or k < number)
            for k, (other, _) in enumerate(inside)
            if k != number and other.end > other.start
        )
        if not covered:
            out.append((where, text))
    return out
