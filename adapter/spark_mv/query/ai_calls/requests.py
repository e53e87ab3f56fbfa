"""The statement that asks which requests a call makes, for the rows that can need its answer and no others.

Rows are held back by the WHERE of the call's own SELECT (without AI conditions where the call is in WHERE itself, with
them otherwise, so that a filter is answered first), by CASE branches around the call, and, where the call only flows
through a CTE or derived table to the outside, by the WHERE and inner joins further out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from sqlglot import exp

from spark_mv.query.ai_calls.blocks import Edit, Query, TokenBlock, TokenItem, edited, outermost
from spark_mv.query.ai_calls.first_rows import first_rows
from spark_mv.query.ai_calls.flow import Flow
from spark_mv.query.ai_calls.group_keys import asked_of_rows, grouped_by
from spark_mv.query.ai_calls.keys import arguments_hash_sql, key_sql
from spark_mv.query.ai_calls.places import Places, Render
from spark_mv.query.ai_calls.signatures import ParsedCall
from spark_mv.query.syntax.aggregates import not_of_one_row, read_by, several_sets
from spark_mv.query.syntax.condition import bracketed, read_expression
from spark_mv.query.syntax.parser import first_offset
from spark_mv.query.syntax.source_text import Span
from spark_mv.query.syntax.source_text import string_literal as quote
from spark_mv.query.syntax.table_name import quoted

BuildRequest = Callable[[ParsedCall, Render], tuple[str, str]]  # gives SQL of the request and the identity's text
Found = tuple[str, list[ParsedCall]]  # the statement, and the calls whose answers it reads


class Requests:
    """Request statements over the edits of one rewritten statement."""

    def __init__(self, places: Places, edits: Sequence[Edit], build: BuildRequest, salt: str) -> None:
        self.places, self.text, self.edits, self.build, self.salt = places, places.text, list(edits), build, salt
        self.flow = Flow(places.text)

    def own(self, parsed: ParsedCall, unless: str = "") -> Found:
        """The requests of all rows of the call's own SELECT, but for those where `unless`, SQL over its FROM, is not NULL."""
        block, clause = self.places.block[id(parsed)], self.places.clause[id(parsed)]
        spans = [span for _, span, _ in parsed.row]
        where = [] if clause == "FROM" else self._conditions(block, "WHERE", clause)
        groups: list[Span] = []
        having: list[Span] = []
        kept: list[Span] = []
        blank: list[TokenItem] = []
        if clause == "HAVING" and not asked_of_rows(self.text, block.clauses["HAVING"], parsed.call.span):
            if "GROUP BY" in block.clauses:
                groups = [block.clauses["GROUP BY"]]
                kept, blank = self._select_list(block)
            hidden = {item.name.lower() for item in blank if item.name}
            having = [c for c in self._conditions(block, "HAVING", clause) if not self.flow.names_in(c, hidden)]
        guards = self._guards(parsed)
        read = [*spans, *where, *groups, *having, *kept, *(s for guard in guards for s in guard[1])]
        mine = [
            p
            for p in self.places.inside(read)
            if p is not parsed and self.places.block[id(p)] is block and not p.call.span.holds(parsed.call.span)
        ]
        if clause != "FROM":  # rows that a LATERAL VIEW makes of answers
            mine += [
                p
                for p in self.places.inside([block.clauses.get("FROM", block.list_span)])
                if self._in_view(p, block, mine)
            ]
        text, identity = self.build(parsed, self._render_inside)
        asked = _unless(self._guarded(text, guards), unless)
        listed = f"{asked} AS request"
        if groups:  # GROUP BY may name entries of the list, and HAVING as well
            entries = self._with(block.list_span, [*((item.expression, "NULL") for item in blank), *self.edits])
            listed = f"{entries}, {asked} AS __mv_request"
        rest = self._from(block, mine, clause == "FROM")
        if where:
            rest += " WHERE " + " AND ".join(bracketed(self._render(s)) for s in where)
        if groups:
            rest += f" GROUP BY {self._render(groups[0])}"
        if having:
            rest += " HAVING " + " AND ".join(f"({self._render(s)})" for s in having)
        first = first_rows(self.places, block) if clause == "SELECT" else None
        body = first.of(listed, rest) if first is not None else f"SELECT {listed}{rest}"
        if groups:
            body = f"SELECT __mv_request AS request FROM ({body}) AS __mv_g"
        if "FROM" in block.clauses:
            read.append(block.clauses["FROM"])
        below = [p for q in block.children if any(s.holds(q.span) for s in read) for p in self.places.inside([q.span])]
        sql, more = self._in_context(block.query, self._distinct(parsed, identity, body), self.edits)
        return sql, [*mine, *below, *more]

    def carried(self, parsed: ParsedCall, unless: str = "") -> Found | None:
        """The requests of the rows that pass the filters and inner joins outside the call's own SELECT; None when the
        call's column is more than handed on, or nothing outside filters."""
        block = self.places.block[id(parsed)]
        item = next((i for i in block.items if i.span.holds(parsed.call.span)), None)
        if item is None or not item.name or not self.flow.row_wise(block):
            return None
        text, identity = self.build(parsed, self._render_inside)
        changes: list[Edit] = [(item.expression, _unless(self._guarded(text, self._guards(parsed)), unless))]
        hidden = {item.name.lower()}
        changes += self._blanked(block, hidden, item.span)
        name, query, best = item.name, block.query, None
        while (found := self.flow.reader(query)) is not None:
            outer, alias = found
            where_from = outer.clauses["FROM"]
            if self.flow.names_in(where_from, hidden, skip=query.span) or self.text.has(
                where_from, {"NATURAL", "PIVOT", "UNPIVOT"}
            ):
                break
            every = self.text.conjuncts(outer.clauses["WHERE"]) if "WHERE" in outer.clauses else []
            conditions = [
                c
                for c in every
                if not self.flow.names_in(c, hidden)
                and not self.places.inside([c])
                and not self.places.outer.named_in(outer, c)
            ]
            edits = [*changes, *self.edits]  # the first of equal spans counts
            listed, rest = f"{alias}.{quoted(name)} AS request", f" FROM {self._with(where_from, edits)}"
            if conditions:
                rest += " WHERE " + " AND ".join(bracketed(self._with(c, edits)) for c in conditions)
            first = first_rows(self.places, outer, hidden) if conditions == every else None
            body = first.of(listed, rest) if first is not None else f"SELECT {listed}{rest}"
            if conditions or first is not None or self.text.has(where_from, {"JOIN"}):
                sql, more = self._in_context(outer.query, self._distinct(parsed, identity, body), edits)
                blanked = [p for c, _ in changes for p in self.places.inside([c])]
                arguments = [p for p in self.places.inside([s for _, s, _ in parsed.row]) if p is not parsed]
                reads = [p for p in [*self.places.inside([where_from, *conditions]), *more] if p not in blanked]
                best = sql, [*reads, *arguments]
            if not self.flow.row_wise(outer):
                break
            handed = next((i for i in outer.items if self.flow.hands_on(i, name, alias)), None)
            if handed is None:
                break
            name = name if handed.star else handed.name
            changes += self._blanked(outer, hidden, handed.span)
            hidden.add(name.lower())
            query = outer.query
        return best

    def _in_view(self, parsed: ParsedCall, block: TokenBlock, known: Sequence[ParsedCall]) -> bool:
        own = self.places.block[id(parsed)] is block and self.places.clause[id(parsed)] == "FROM"
        return own and not any(parsed is one for one in known)

    # ---- pieces of SQL

    def _distinct(self, parsed: ParsedCall, identity: str, body: str) -> str:
        return (
            f"SELECT {key_sql('request', identity, self.salt)} AS result_key, {quote(parsed.function)} AS function, "
            f"{arguments_hash_sql('request', self.salt)} AS arguments_hash, request FROM (SELECT DISTINCT request FROM ({body}) AS __mv_d "
            "WHERE request IS NOT NULL) AS __mv_q"
        )

    def _render(self, span: Span) -> str:
        return self._with(span, self.edits)

    def _render_inside(self, span: Span) -> str:
        """The text with the edits that the edit of an enclosing call has swallowed."""
        return self._with(span, [*self.places.all_edits, *self.edits])

    def _with(self, span: Span, edits: Sequence[Edit]) -> str:
        return edited(self.text.sql, span, outermost(edits, span))

    def _from(self, block: TokenBlock, needed: Sequence[ParsedCall], head_only: bool) -> str:
        """FROM with the LATERAL look-ups of the needed calls only."""
        added = self.places.all_beside([p for p in needed if id(p) in self.places.name])
        at, before = self.places.insertion(block)
        if "FROM" not in block.clauses:
            return before + added if added else ""
        span = block.clauses["FROM"]
        rest = [e for e in self.edits if e[0] != Span(at, at)]
        tail = "" if head_only else self._with(Span(at, span.end), rest)
        return " FROM " + self._with(Span(span.start, at), rest) + added + tail

    def _in_context(self, query: Query, sql: str, edits: Sequence[Edit]) -> Found:
        """The statement inside the WITH clauses that it can see, and the calls in the CTEs it uses."""
        needs: list[ParsedCall] = []
        for used in self.places.ctes_for(query, sql):
            if used:
                recursive = "RECURSIVE " if any(c.recursive for c in used) else ""
                texts = ", ".join(self._with(c.span, edits) for c in used)
                sql = f"WITH {recursive}{texts} SELECT * FROM ({sql}) AS __mv_w"
                needs += self.places.inside([c.span for c in used])
        return sql, needs

    # ---- which rows

    def _conditions(self, block: TokenBlock, name: str, clause: str) -> list[Span]:
        if name not in block.clauses:
            return []
        found = [c for c in self.text.conjuncts(block.clauses[name]) if not self.places.outer.named_in(block, c)]
        return [c for c in found if not self.places.inside([c])] if clause == name else found

    def _guards(self, parsed: ParsedCall) -> list[tuple[list[str], list[Span]]]:
        """For each CASE around the call, innermost first: the pieces of `CASE … THEN` up to the call's branch. Of those around an aggregate or a
        window, which reads the answers of other rows, too, only those that decide for all of its rows."""
        text, out = self.text, []
        block = self.places.block[id(parsed)]
        at, end = text.token_range(parsed.call.span)
        first, _ = text.token_range(block.span)
        node, earlier = text.node_of(parsed.call), text.earlier_names(block, parsed.call.span)
        reader = read_by(node) if node is not None else None
        inside = first_offset(reader) or 0
        for start in range(at - 1, first, -1):
            if text.words[start] != "CASE" or text.words[start - 1] == ".":
                continue
            if text.block_of(text.span(start, start + 1)) is not block:
                continue
            guard = self._guard(start, at, end)
            outside = reader if text.tokens[start].start < inside else None
            if guard is not None and self._decides(guard[1], earlier, outside, block):
                out.append(guard)
        return out

    def _decides(
        self, conditions: Sequence[Span], earlier: set[str], outside: exp.Expr | None, block: TokenBlock
    ) -> bool:
        """Whether the conditions of a CASE, over columns of FROM and none of the list's own, decide for the rows that are asked about; where an aggregate
        or a window function stands between (`outside` of which the CASE is), for all of its rows."""
        trees = [tree for span in conditions if (tree := read_expression(self.text.text(span))) is not None]
        columns = {column.sql("spark").lower() for tree in trees for column in tree.find_all(exp.Column)}
        if len(trees) < len(conditions) or columns & earlier:
            return False
        return outside is None or (columns <= _of_all_rows(outside, block) and not any(map(not_of_one_row, trees)))

    def _guard(self, start: int, at: int, call_end: int) -> tuple[list[str], list[Span]] | None:
        text, depth, i = self.text, 0, start + 1
        marks: list[tuple[str, int]] = []
        while i < len(text.words):
            word = text.words[i]
            if word in {"(", "["}:
                i = text.match[i] + 1
                continue
            if word == "CASE":
                depth += 1
            elif word == "END":
                if not depth:
                    marks.append(("END", i))
                    break
                depth -= 1
            elif not depth and word in {"WHEN", "THEN", "ELSE"}:
                marks.append((word, i))
            i += 1
        if not marks or marks[-1][0] != "END" or marks[-1][1] < call_end:
            return None
        inside = max((m for m in marks if m[1] < at), key=lambda m: m[1], default=("", 0))
        if inside[0] not in {"THEN", "ELSE"}:
            return None
        operand = text.span(start + 1, marks[0][1]) if marks[0][1] > start + 1 else None
        pieces, spans = ["CASE" + (f" {self._render(operand)}" if operand else "")], [operand] if operand else []
        for (word, begin), (_, stop) in itertools.pairwise(marks):
            if word == "WHEN":
                condition = text.span(begin + 1, stop)
                if self.places.inside([condition]):
                    return None
                spans.append(condition)
                last = stop == inside[1]
                pieces.append(f" WHEN {self._render(condition)} THEN" + ("" if last else " NULL"))
                if last:
                    return pieces, spans
            elif (word, begin) == inside:
                return [*pieces, " ELSE"], spans
        return None

    def _guarded(self, request: str, guards: Sequence[tuple[list[str], list[Span]]]) -> str:
        for pieces, _ in guards:
            request = f"{''.join(pieces)} {request} END"
        return request

    def guarded(self, parsed: ParsedCall, text: str) -> str:
        """SQL about a call's answer, NULL where the CASE around the call does not take it."""
        return self._guarded(text, self._guards(parsed))

    def _select_list(self, block: TokenBlock) -> tuple[list[Span], list[TokenItem]]:
        """Entries with AI calls by which the SELECT groups, and the others."""
        asking = [item for item in block.items if self.places.inside([item.span])]
        keys = grouped_by(self.text, block)
        kept = [item for item in asking if item in keys]
        return [item.span for item in kept], [item for item in asking if item not in kept]

    def _blanked(self, block: TokenBlock, hidden: set[str], but: Span) -> list[Edit]:
        """Edits that turn the other columns with AI calls, or made of such columns, to NULL; their names join `hidden`."""
        out: list[Edit] = []
        for item in block.items:
            if item.span == but or item.star:
                continue
            if self.places.inside([item.span]) or self.flow.names_in(item.expression, hidden):
                out.append((item.expression, "cast(NULL AS STRING)"))
                if item.name:
                    hidden.add(item.name.lower())
        return out


def _of_all_rows(reader: exp.Expr, block: TokenBlock) -> set[str]:
    """The columns that have one value in all rows that an aggregate or a window function reads: keys of GROUP BY, those of PARTITION BY."""
    whole = reader
    while (
        isinstance(whole.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.Window)
        and whole.parent.this is whole
    ):
        whole = whole.parent
    group = block.tree.args.get("group")
    if isinstance(whole, exp.Window):
        keys = whole.args.get("partition_by") or []
    else:
        keys = group.expressions if group is not None and not several_sets(group) else []
    return {key.sql("spark").lower() for key in keys if isinstance(key, exp.Column)}


def _unless(request: str, condition: str) -> str:
    return f"CASE WHEN {condition} IS NULL THEN {request} END" if condition else request
