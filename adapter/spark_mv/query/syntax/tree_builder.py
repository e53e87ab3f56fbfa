"""A parsed query read as a tree of SELECTs, see select_tree. Every use of a CTE has its own copy of the CTE's tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from spark_mv.query.functions.catalogue import Kind, is_kind
from spark_mv.query.syntax.aggregates import aggregates, called, several_sets
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.inline_rows import rows_as_selects
from spark_mv.query.syntax.joins import FILLING_LEFT, join_kind, join_words
from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.placing import SelectParts
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.select_tree import (
    Ctes,
    Leaf,
    Node,
    NotIncremental,
    OutItem,
    Piece,
    SelectNode,
    SetNode,
    Source,
    subquery_texts,
)
from spark_mv.query.syntax.source_blocks import conjuncts, span_of
from spark_mv.query.syntax.source_text import SourceTextError
from spark_mv.query.syntax.table_name import joined, quoted

_CLAUSES = frozenset(
    {
        "FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "LATERAL VIEW", "WINDOW", "ORDER BY", "SORT BY", "CLUSTER BY",
        "DISTRIBUTE BY",
    }
)  # fmt: skip


_MOST_SELECTS = 1000
"""A CTE that is read twice is two places at which a change can come in, and so are all CTEs below it."""


@deep
def build(sql: str) -> Node:
    """The tree of a query. Every use of a CTE has its own copy of the CTE's tree. Raises NotIncremental."""
    found = parse(sql)
    if isinstance(found, QueryError):
        raise NotIncremental("STRUCTURE", f"the structure of the SQL was not understood: {found.message}")
    try:
        return _Builder(sql).query(found.tree, {}, False)
    except (SourceTextError, RecursionError) as error:
        raise NotIncremental("STRUCTURE", f"the structure of the SQL was not understood: {error}") from error


class _Builder:
    """Reads the pieces of a parsed query off its tree. In a query inside an expression (`inside`), pieces have no place
    in the whole text, because no rewrite edits them there."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.made = 0

    def query(self, node: exp.Expr, ctes: Ctes, inside: bool) -> Node:
        if isinstance(node, exp.SetOperation):
            return self.set_operation(node, ctes, inside)
        ctes = self.visible(node, ctes, inside)
        if isinstance(node, exp.Select):
            return self.select(node, ctes, inside)
        if isinstance(node, exp.Subquery):
            for key in ("limit", "offset"):
                _refuse_limit(node, key)
            if any(node.args.get(key) for key in ("pivots", "sample", "joins", "laterals")):
                raise NotIncremental("STRUCTURE", "a query in parentheses with more than an order")
            return self.query(node.this, ctes, inside)
        raise NotIncremental("STRUCTURE", f"{node.key.upper()} where a SELECT was expected")

    def set_operation(self, node: exp.SetOperation, ctes: Ctes, inside: bool) -> SetNode:
        """All arms of it, the first ones of which stand in set operations of their own; each may have a WITH."""
        keep_all, by_name = True, False
        spine: list[exp.Expr] = []
        part: exp.Expr = node
        while isinstance(part, exp.SetOperation):
            for key in ("limit", "offset"):
                _refuse_limit(part, key)
            ctes = self.visible(part, ctes, inside)
            keep_all = keep_all and isinstance(part, exp.Union) and part.args.get("distinct") is False
            by_name = by_name or bool(part.args.get("by_name"))
            spine.append(part.expression)
            part = part.this
        arms = tuple(self.query(arm, ctes, inside) for arm in (part, *reversed(spine)))
        return SetNode(arms, keep_all, by_name)

    def visible(self, node: exp.Expr, ctes: Ctes, inside: bool) -> Ctes:
        """The CTEs that a query sees with its own WITH, each with those that it sees itself and whether it is written
        inside a condition: a CTE that only a condition reads has its place in the text all the same."""
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        if with_.args.get("recursive"):
            raise NotIncremental("RECURSIVE", "a recursive CTE")
        for cte in with_.expressions:
            if cte.args["alias"].columns:
                raise NotIncremental("CTE_COLUMNS", f"the CTE {cte.alias} renames its columns in parentheses")
            if cte.alias.lower() in ctes:
                raise NotIncremental("CTE_NAME", f"two CTEs are called {cte.alias}, one inside the other")
            ctes = {**ctes, cte.alias.lower(): (cte, ctes, inside)}
        return ctes

    def select(self, tree: exp.Select, ctes: Ctes, inside: bool) -> SelectNode:
        self.made += 1
        if self.made > _MOST_SELECTS:
            sentence = f"the query has more than {_MOST_SELECTS:,} SELECTs, each use of a CTE counted"
            raise NotIncremental("TOO_MANY_READS", sentence)
        parts = tree.meta.get("select")
        if not isinstance(parts, SelectParts) or self.sql[slice(*parts.span)][:6].upper() != "SELECT":
            raise NotIncremental("STRUCTURE", "a SELECT that is not written as one")
        _refuse(tree, parts)
        group, base = tree.args.get("group"), parts.span[0]
        where = tree.args.get("where")
        where_at = next(((start, end) for word, start, end in parts.clauses if word == "WHERE"), None)
        views = [(start, end) for word, start, end in parts.clauses if word == "LATERAL VIEW"]
        joins = list(tree.args.get("joins") or [])
        generators: list[str] = []
        while joins and (view := self.lateral_view(joins[-1])) is not None:
            generators.insert(0, view)
            joins.pop()
        generated = [join.this for join in (tree.args.get("joins") or [])[len(joins) :]]
        node = SelectNode(
            text=self.sql[slice(*parts.span)],
            items=tuple(self.item(item, inside) for item in tree.expressions),
            sources=tuple(self.sources(tree, joins, ctes, inside)),
            laterals=" ".join([*generators, *(self.sql[start:end] for start, end in views)]),
            generators=(*generated, *(tree.args.get("laterals") or [])),
            where=self.pieces(where.this, inside) if where is not None else (),
            tree=tree,
            grouped=group is not None,
            aggregate=group is not None
            or tree.args.get("having") is not None
            or any(aggregates(item) for item in tree.expressions),
            distinct=tree.args.get("distinct") is not None,
            windows=tuple(_windows(tree)),
            clauses=frozenset([*(word for word, _, _ in parts.clauses), *(["FROM"] if parts.from_ else [])]),
            ctes=ctes,
            whole=self.sql,
            start=-1 if inside else base,
            where_span=(where_at[0] - base, where_at[1] - base) if where_at else None,
            where_at=max([(parts.from_ or parts.listed)[1], *(end for _, end in views)]) - base,
        )
        subqueries: dict[str, Node] = {}
        for piece in node.where:
            texts, queries = subquery_texts(piece.text), _queries(piece.node)
            if len(texts) != len(queries):
                raise NotIncremental("STRUCTURE", f"the subqueries of `{piece.text}` were not understood")
            subqueries.update((text, self.query(query, ctes, True)) for text, query in zip(texts, queries, strict=True))
        node.subqueries = subqueries
        node.listed = tuple(self.query(query, ctes, True) for part in tree.expressions for query in _queries(part))
        others = (self.query(query, ctes, True) for part in _deep(tree) for query in _queries(part))
        node.deep = (*node.listed, *others)
        return node

    def pieces(self, condition: exp.Expr, inside: bool) -> tuple[Piece, ...]:
        spans = [(span_of(part), part) for part in conjuncts(condition)]
        return tuple(Piece(span.of(self.sql), -1 if inside else span.start, part) for span, part in spans)

    def item(self, node: exp.Expr, inside: bool) -> OutItem:
        span = span_of(node)
        place = (-1, -1) if inside else (span.start, span.end)
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            return OutItem(span.of(self.sql), None, node, *place)
        if isinstance(node, exp.Aliases) or is_kind(called(node), Kind.GENERATOR):
            raise NotIncremental(
                "GENERATOR",
                "a generator in the select list that has, or may have, several output columns; name one with AS",
            )
        if isinstance(node, exp.Alias):
            return OutItem(span_of(node.this).of(self.sql), node.alias, node.this, *place)
        text = span.of(self.sql)
        return OutItem(text, (node.name if isinstance(node, exp.Column | exp.Dot) else "") or text, node, *place)

    def lateral_view(self, join: exp.Join) -> str | None:
        """The last FROM item as LATERAL VIEW, which makes the same rows, where it is a generator: `, LATERAL explode(a) AS t(c)`."""
        lateral, on = join.this, join.args.get("on")
        if (
            not isinstance(lateral, exp.Lateral)
            or not is_kind(called(lateral.this), Kind.GENERATOR)
            or not lateral.alias
        ):
            return None
        kind = join_kind(join)
        if kind not in ("INNER", "CROSS", "LEFT") or join.args.get("using"):
            return None
        if on is not None and not (isinstance(on, exp.Boolean) and on.this):
            return None
        call = lateral.this.meta["call"]
        columns = ", ".join(quoted(column.name) for column in lateral.args["alias"].columns)
        view = f"LATERAL VIEW {'OUTER ' if kind == 'LEFT' else ''}{self.sql[call.start : call.end]} {quoted(lateral.alias)}"
        return f"{view} AS {columns}" if columns else view

    def sources(self, tree: exp.Select, joins: Sequence[exp.Join], ctes: Ctes, inside: bool) -> Iterator[Source]:
        from_ = tree.args.get("from_")
        if from_ is None:
            return
        yield self.source(from_.this, "", (), (), ctes, inside)
        listed = False
        for join in joins:
            listed = listed or "comma" in join.meta
            if join.args.get("method") or join.args.get("pivots"):
                raise NotIncremental("JOIN_KIND", "NATURAL and ASOF joins are not understood")
            kind = join_kind(join)
            if not kind:
                raise NotIncremental("JOIN_KIND", f"`{join_words(join)}` in FROM is not understood")
            if listed and kind in FILLING_LEFT:
                raise NotIncremental("JOIN_KIND", f"{kind} JOIN behind a comma joins the last FROM item alone")
            on = join.args.get("on")
            tests = self.pieces(on, inside) if on is not None and "span" in on.meta else ()
            using = tuple(column.name for column in join.args.get("using") or [])
            yield self.source(join.this, kind, tests, using, ctes, inside)

    def rows(self, text: str) -> Node:
        """Rows that are written out, as SELECTs."""
        found = parse(text)
        assert not isinstance(found, QueryError), found
        return _Builder(text).query(found.tree, {}, True)

    def source(
        self, node: exp.Expr, kind: str, on: tuple[Piece, ...], using: tuple[str, ...], ctes: Ctes, inside: bool
    ) -> Source:
        if node.args.get("joins") or node.args.get("laterals"):
            raise NotIncremental("STRUCTURE", "joins in parentheses are not understood")
        alias = node.args.get("alias")
        renames = tuple(column.name for column in alias.columns) if isinstance(alias, exp.TableAlias) else ()
        item: Leaf | Node
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query) and not isinstance(node.this, exp.Table):
            return Source(self.query(node.this, ctes, inside), node.alias, kind, on, using, renames)
        if isinstance(node, exp.Values) and (text := rows_as_selects(node)) is not None:
            return Source(self.rows(text), node.alias or "__mv_values", kind, on, using)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
                raise NotIncremental("TABLE_FUNCTION", f"the table function {node.name}")
            raise NotIncremental("STRUCTURE", f"{node.key.upper()} in FROM is not understood")
        for key in ("version", "when", "only", "hints"):
            if node.args.get(key):
                raise NotIncremental("STRUCTURE", f"{key.upper()} in FROM")
        parts = [part.name for part in node.parts]
        if len(parts) == 1 and parts[0].lower() in ctes:
            cte, seen, written_inside = ctes[parts[0].lower()]
            item = self.query(cte.this, seen, written_inside)
        else:
            start, end = node.parts[0].meta.get("start"), node.parts[-1].meta.get("end")
            if start is None or end is None:
                raise NotIncremental("STRUCTURE", f"the place of {'.'.join(parts)} in the text is not known")
            item = Leaf(joined(parts), self.sql[start : end + 1])
        return Source(item, node.alias or parts[-1], kind, on, using, renames)


def _refuse(tree: exp.Select, parts: SelectParts) -> None:
    """What no strategy follows."""
    for key in ("limit", "offset") if not _asks_for_any(tree) else ():
        _refuse_limit(tree, key)
    for word, _, _ in parts.clauses:
        if word not in _CLAUSES and word not in ("LIMIT", "OFFSET"):
            raise NotIncremental("STRUCTURE", f"{word} is not understood here")
    if tree.find(exp.Pivot):
        raise NotIncremental("PIVOT", "PIVOT groups by columns that the query does not name")
    if tree.find(exp.TableSample):
        raise NotIncremental("SAMPLE", "TABLESAMPLE chooses other rows at each read")
    if several_sets(tree.args.get("group")):
        raise NotIncremental("GROUPING_SETS", "ROLLUP, CUBE or GROUPING SETS: one row belongs to several groups")


def _asks_for_any(tree: exp.Select) -> bool:
    """Whether it is the query of an EXISTS with a LIMIT of at least one row, which leaves its answer as it is."""
    limit = tree.args.get("limit")
    count = limit.expression if isinstance(limit, exp.Limit) else None
    above = tree.parent.parent if isinstance(tree.parent, exp.Subquery) else tree.parent
    asked = isinstance(above, exp.Exists) and tree.args.get("offset") is None
    return asked and isinstance(count, exp.Literal) and count.is_int and int(count.name) > 0


def _refuse_limit(node: exp.Expr, key: str) -> None:
    if node.args.get(key) is not None:
        raise NotIncremental("LIMIT", "LIMIT or OFFSET: one changed row can move others in or out")


def _queries(node: exp.Expr) -> list[exp.Expr]:
    """The outermost queries in an expression, in the order of the text."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Select | exp.SetOperation):
            found.append(part)
            continue
        stack += list(part.iter_expressions(reverse=True))
    return sorted(found, key=lambda query: span_of(query).start)


def _deep(tree: exp.Select) -> Iterator[exp.Expr]:
    """Where else a subquery can stand: ON, GROUP BY, HAVING and the like."""
    for key, value in tree.args.items():
        if key in ("with_", "from_", "where", "expressions"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Join):
                if part.args.get("on") is not None:
                    yield part.args["on"]
            elif isinstance(part, exp.Expr):
                yield part


def _windows(tree: exp.Expr) -> Iterator[exp.Window]:
    """The windows of one SELECT, not those of queries inside it."""
    for key, value in tree.args.items():
        if key in ("from_", "joins", "with_", "windows", "laterals"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                yield from (n for n in part.walk(prune=lambda n: isinstance(n, exp.Query)) if isinstance(n, exp.Window))
