"""The SELECT blocks of a query, read off its tree: select list, FROM, WHERE with its conjuncts, JOIN conditions, as spans
of the user's text.

A block is one SELECT … with its clauses; blocks nest by parentheses and stand side by side in set operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from sqlglot import exp

from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.joins import join_kind
from spark_mv.query.syntax.parse import Parsed, parse
from spark_mv.query.syntax.placing import SelectParts
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_block import Block, Context, Ctes, Item, Join
from spark_mv.query.syntax.source_text import SourceTextError, Span, tokenize

__all__ = ["Block", "Context", "Item", "Join", "alone", "conjuncts", "select_blocks", "span_of"]


@lru_cache(maxsize=32)
@deep
def select_blocks(sql: str) -> tuple[Block, ...]:
    """Every SELECT of the query; the blocks of the outermost query have `context` OUTERMOST.

    Raises SourceTextError for text whose structure is not understood.
    """
    found = parse(sql)
    if isinstance(found, QueryError):
        raise SourceTextError(f"{found.message} (line {found.line}, column {found.column})")
    reader = _Reader(found)
    reader.query(found.tree, Context.OUTERMOST, "", None, ())
    return tuple(block for block in reader.blocks if block is not None)


def span_of(node: exp.Expr) -> Span:
    """The place of an expression, a conjunct or a query in the text that it was parsed from. Raises SourceTextError."""
    span = node.meta.get("span")
    if span is None:
        raise SourceTextError(f"the place of `{node.key}` in the text is not known")
    return Span(*span)


def alone(sql: str, block: Block, select: str) -> str:
    """A SELECT over what the block reads as a query by itself: behind the CTEs that the block sees. Where two of these have one name, the
    outer one may be read by the inner one."""
    level: dict[str, str] = {}
    for name, span in reversed(block.ctes):
        if name in level:
            select, level = f"SELECT * FROM ({_with(level)}{select})", {}
        level = {name: span.of(sql), **level}
    return _with(level) + select


def _with(definitions: Mapping[str, str]) -> str:
    return f"WITH {', '.join(definitions.values())} " if definitions else ""


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The AND-ed parts of a condition, looked for inside parentheses too."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        part = stack.pop()
        while isinstance(part, exp.Paren):
            part = part.this
        if isinstance(part, exp.And):
            stack += [part.right, part.left]
        else:
            found.append(part)
    return found


def _parts(node: exp.Select) -> SelectParts:
    """Raises SourceTextError."""
    parts = node.meta.get("select")
    if not isinstance(parts, SelectParts):
        raise SourceTextError("a SELECT that is not written as one (pipe syntax, FROM first)")
    return parts


class _Reader:
    """Walks down a tree; blocks stand in the order in which a reader of the text meets them, CTEs first."""

    def __init__(self, parsed: Parsed) -> None:
        self.sql = parsed.sql
        self.blocks: list[Block | None] = []

    def query(
        self,
        node: exp.Expr,
        context: Context,
        name: str,
        parent: int | None,
        ctes: Ctes,
        operand: bool = False,
        lateral: bool = False,
    ) -> None:
        ctes = self.ctes(node, parent, ctes)
        arms: list[exp.Expr] = []
        stack = [node]
        while stack:
            arm = stack.pop()
            if isinstance(arm, exp.SetOperation):
                if arm is not node:
                    ctes = self.ctes(arm, parent, ctes)
                stack += [arm.expression, arm.this]
            else:
                arms.append(arm)
        operand = operand or len(arms) > 1
        for arm in arms:
            if arm is not node:
                ctes = self.ctes(arm, parent, ctes)
            if isinstance(arm, exp.Select):
                self.select(arm, context, name, parent, ctes, operand, lateral)
            elif isinstance(arm, exp.Subquery):
                modified = any(arm.args.get(key) for key in exp.QUERY_MODIFIERS if key not in ("pivots", "joins"))
                self.query(arm.this, context, name, parent, ctes, operand or modified, lateral)
                self.nested(arm, parent, ctes, skip=arm.this)
            elif isinstance(arm, exp.Table | exp.Values):
                self.nested(arm, None, ctes)
            else:
                raise SourceTextError(f"a SELECT was expected, not {arm.key.upper()}")
        if isinstance(node, exp.SetOperation):
            for key, value in node.args.items():
                if key not in ("this", "expression", "with_"):
                    for part in value if isinstance(value, list) else [value]:
                        if isinstance(part, exp.Expr):
                            self.nested(part, None, ctes)

    def ctes(self, node: exp.Expr, parent: int | None, seen: Ctes) -> Ctes:
        with_ = node.args.get("with_")
        if with_ is None:
            return seen
        if isinstance(node, exp.Select):
            _parts(node)  # the CTEs of one that a pipe made stand nowhere in the text
        if with_.args.get("recursive"):
            raise SourceTextError("a recursive CTE is not supported")
        for cte in with_.expressions:
            self.query(cte.this, Context.CTE, cte.alias, parent, seen)
            seen = (*seen, (cte.alias.lower(), span_of(cte)))
        return seen

    def select(
        self,
        node: exp.Select,
        context: Context,
        name: str,
        parent: int | None,
        ctes: Ctes,
        operand: bool,
        lateral: bool,
    ) -> None:
        parts = _parts(node)
        if self.sql[parts.span[0] :][:5].upper() == "TABLE":
            return  # short for SELECT * FROM, with no parts of its own
        if len({word for word, _, _ in parts.clauses if word != "LATERAL VIEW"}) < sum(
            word != "LATERAL VIEW" for word, _, _ in parts.clauses
        ):
            raise SourceTextError("a clause stands twice in the SELECT")
        index = len(self.blocks)
        self.blocks.append(None)
        where = node.args.get("where")
        spans = {word: Span(start, end) for word, start, end in parts.clauses}
        self.blocks[index] = Block(
            span=Span(*parts.span),
            select=Span(*parts.listed),
            items=tuple(
                Item(span_of(item), item.alias if isinstance(item, exp.Alias) else "") for item in node.expressions
            ),
            from_=Span(*parts.from_) if parts.from_ else None,
            where=spans.get("WHERE"),
            conjuncts=tuple(span_of(part) for part in conjuncts(where.this)) if where is not None else (),
            joins=tuple(_joins(node)),
            clauses=frozenset(["FROM", *spans] if parts.from_ else spans),
            context=context,
            name=name,
            parent=parent,
            set_operand=operand,
            distinct=node.args.get("distinct") is not None,
            lateral=lateral,
            others=tuple((word, self.body(word, start, end)) for word, start, end in parts.clauses if word != "WHERE"),
            ctes=ctes,
            tree=node,
        )
        for key in ("from_", "joins"):
            value = node.args.get(key)
            for part in value if isinstance(value, list) else [value] if value is not None else []:
                self.relations(part, index, ctes)
        for key, value in node.args.items():
            if key not in ("from_", "joins", "with_", "expressions"):
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, exp.Expr):
                        self.nested(part, index, ctes)
        for item in node.expressions:
            self.nested(item, index, ctes)

    def body(self, word: str, start: int, end: int) -> Span:
        """A clause with its keyword, HAVING and QUALIFY without."""
        if word in ("HAVING", "QUALIFY"):
            behind = tokenize(self.sql[start:end])[1:]  # comments may stand between
            start = start + behind[0].start if behind else end
        return Span(start, end)

    def relations(self, node: exp.Expr, parent: int, ctes: Ctes, lateral: bool = False) -> None:
        """The tables of FROM: queries in them are derived tables, those in conditions stand in expressions."""
        if isinstance(node, exp.Subquery):
            inner = node.unnest() if not node.alias else node.this
            if isinstance(node.this, exp.Query) and not isinstance(inner, exp.Table):
                self.query(node.this, Context.DERIVED, node.alias, parent, ctes, lateral=lateral)
            else:
                self.relations(node.this, parent, ctes)
            for key in ("joins", "laterals", "pivots", "sample"):
                for part in node.args.get(key) or [] if isinstance(node.args.get(key), list) else []:
                    self.relations(part, parent, ctes)
        elif isinstance(node, exp.Lateral):
            if isinstance(node.this, exp.Subquery):
                self.query(node.this.this, Context.DERIVED, node.alias, parent, ctes, lateral=True)
            else:
                self.nested(node.this, parent, ctes)
        elif isinstance(node, exp.From | exp.Join | exp.Table | exp.Paren):
            for key, value in node.args.items():
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, exp.Expr):
                        if key in ("this", "joins", "laterals"):
                            self.relations(part, parent, ctes)
                        else:
                            self.nested(part, parent, ctes)
        else:
            self.nested(node, parent, ctes)

    def nested(self, node: exp.Expr, parent: int | None, ctes: Ctes, skip: exp.Expr | None = None) -> None:
        """Queries in parentheses anywhere in an expression."""
        stack = [node]
        while stack:
            part = stack.pop()
            if part is skip:
                continue
            if isinstance(part, exp.Select | exp.SetOperation):
                self.query(part, Context.EXPRESSION, "", parent, ctes)
                continue
            stack += list(part.iter_expressions(reverse=True))


def _joins(node: exp.Expr) -> Iterator[Join]:
    """The joins of one FROM, those in parentheses too, and PIVOTs, as far as they stand in no query of their own."""
    sources: list[exp.Expr] = []
    from_ = node.args.get("from_")
    if from_ is not None:
        sources.append(from_.this)
    pending = [*sources, *(node.args.get("joins") or [])]
    while pending:
        part = pending.pop(0)
        if isinstance(part, exp.Join):
            on = part.args.get("on")
            tests = conjuncts(on) if on is not None and "span" in on.meta else []  # else the parser's own ON TRUE
            kind = "NATURAL" if part.args.get("method") else join_kind(part)
            yield Join(kind, tuple(map(span_of, tests)))
            pending.insert(0, part.this)
            continue
        for pivot in part.args.get("pivots") or []:
            yield Join("UNPIVOT" if pivot.args.get("unpivot") else "PIVOT")
        pending = [*(part.args.get("joins") or []), *pending]
        if isinstance(part, exp.Subquery | exp.Paren) and not isinstance(part.this, exp.Query):
            pending.insert(0, part.this)
