"""A query as a tree of SELECTs whose pieces are spans of the user's own text, for rewrites that change only table names.

The pieces are checked: each SELECT is put together again from them and must parse to the same tree as the original.
What cannot be read this way raises NotIncremental, and the model is recomputed completely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.syntax.aggregates import aggregates
from spark_mv.query.syntax.condition import read_condition
from spark_mv.query.syntax.parse import Call, parse
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_blocks import Context, select_blocks
from spark_mv.query.syntax.source_text import SourceTextError, Token, closing, tokenize
from spark_mv.query.syntax.table_name import joined
from spark_mv.query.syntax.table_name import quoted as quoted


class NotIncremental(Exception):
    """Why a query cannot be maintained by a strategy: a stable code and a sentence."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence


@dataclass(frozen=True)
class Piece:
    """Text with its parse; `start` is its offset in the text that the tree was built from, -1 in a view's text."""

    text: str
    start: int
    node: exp.Expr


@dataclass(frozen=True)
class OutItem:
    """One entry of a select list. `name` is the output name, None for a star; `text` without the alias."""

    text: str
    name: str | None
    node: exp.Expr
    start: int
    end: int


@dataclass(eq=False)
class Leaf:
    """One occurrence of a table. `name` as the analysis has it (parts joined by dots), `text` as written."""

    name: str
    text: str


@dataclass(eq=False)
class Source:
    """One FROM item: a table or a query, under `alias`, joined to those before it. `kind` is '' for the first one,
    else CROSS, INNER, LEFT, RIGHT, FULL, LEFT SEMI, LEFT ANTI."""

    item: Leaf | Node
    alias: str
    kind: str = ""
    on: tuple[Piece, ...] = ()
    using: tuple[str, ...] = ()
    renames: tuple[str, ...] = ()  # AS alias(a, b)


@dataclass(eq=False)
class SelectNode:
    """One SELECT. `subqueries` are the queries inside expressions, by their text."""

    text: str
    items: tuple[OutItem, ...]
    sources: tuple[Source, ...]
    laterals: str
    where: tuple[Piece, ...]
    tree: exp.Select
    grouped: bool
    aggregate: bool
    distinct: bool
    windows: tuple[exp.Window, ...]
    clauses: frozenset[str]
    subqueries: Mapping[str, Node] = field(default_factory=dict)
    deep: tuple[Node, ...] = ()  # subqueries outside WHERE conjuncts
    head: str = ""  # WITH and the CTEs that the SELECT sees
    start: int = -1  # offset of the text in the whole
    where_span: tuple[int, int] | None = None  # in `text`, keyword included
    where_at: int = 0  # in `text`: where a WHERE would stand

    @property
    def windowed(self) -> bool:
        return bool(self.windows)


@dataclass(eq=False)
class SetNode:
    """UNION, EXCEPT or INTERSECT of `arms`, in order. `all_` is UNION ALL throughout."""

    arms: tuple[Node, ...]
    all_: bool
    by_name: bool = False


Node = SelectNode | SetNode

_JOIN_WORDS = {"INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL", "LATERAL"}
_SET = {"UNION", "EXCEPT", "INTERSECT", "MINUS"}
_AFTER = (
    _JOIN_WORDS | _SET | {"JOIN", "ON", "USING", "WHERE", "TABLESAMPLE", "PIVOT", "UNPIVOT", "VERSION", "TIMESTAMP"}
)
_KINDS = {
    "": "INNER", "INNER": "INNER", "CROSS": "CROSS", "LEFT": "LEFT", "LEFT OUTER": "LEFT", "RIGHT": "RIGHT",
    "RIGHT OUTER": "RIGHT", "FULL": "FULL", "FULL OUTER": "FULL", "SEMI": "LEFT SEMI", "LEFT SEMI": "LEFT SEMI",
    "ANTI": "LEFT ANTI", "LEFT ANTI": "LEFT ANTI",
}  # fmt: skip
_Ctes = Mapping[str, "tuple[str, int, _Ctes]"]


def build(sql: str) -> Node:
    """The tree of a query. Every use of a CTE has its own copy of the CTE's tree. Raises NotIncremental."""
    try:
        return _query(sql.rstrip().rstrip(";"), 0, {})
    except (SourceTextError, RecursionError) as error:
        raise NotIncremental("STRUCTURE", f"the structure of the SQL was not understood: {error}") from error


def leaves(node: Node) -> Iterator[Leaf]:
    """Every occurrence of a table, those in subqueries included."""
    for child in children(node):
        if isinstance(child, Leaf):
            yield child
        else:
            yield from leaves(child)


def children(node: Node) -> Iterator[Leaf | Node]:
    if isinstance(node, SetNode):
        yield from node.arms
        return
    for source in node.sources:
        yield source.item
    yield from node.subqueries.values()
    yield from node.deep


def selects(node: Node) -> Iterator[SelectNode]:
    """Every SELECT of the tree, those in subqueries included."""
    if isinstance(node, SelectNode):
        yield node
    for child in children(node):
        if not isinstance(child, Leaf):
            yield from selects(child)


def _word(tokens: tuple[Token, ...], i: int) -> str:
    if i < 0 or i >= len(tokens) or (i > 0 and tokens[i - 1].kind == TokenType.DOT):
        return ""
    return tokens[i].word


def _query(sql: str, base: int, ctes: _Ctes) -> Node:
    """`base` is the offset of `sql` in the whole text."""
    tokens = tokenize(sql)
    if not tokens:
        raise NotIncremental("STRUCTURE", "an empty query")
    i, visible = 0, dict(ctes)
    if _word(tokens, 0) == "WITH":
        i = _read_ctes(sql, base, tokens, visible)
    arms: list[tuple[int, int]] = []
    keep_all, by_name, start, depth = True, False, i, i
    while depth < len(tokens):
        if tokens[depth].kind == TokenType.L_PAREN:
            depth = closing(tokens, depth) + 1
            continue
        starred = depth > start and tokens[depth - 1].kind == TokenType.STAR  # * EXCEPT (column)
        if _word(tokens, depth) in _SET and depth > start and not starred:
            keep_all = keep_all and _word(tokens, depth) == "UNION" and _word(tokens, depth + 1) == "ALL"
            arms.append((start, depth))
            depth += 2 if _word(tokens, depth + 1) in ("ALL", "DISTINCT") else 1
            if _word(tokens, depth) == "BY":
                by_name, depth = True, depth + 2
            start = depth
            continue
        depth += 1
    arms.append((start, len(tokens)))
    nodes = []
    for lo, hi in arms:
        if hi <= lo:
            raise NotIncremental("STRUCTURE", "an empty side of a set operation")
        text, at = sql[tokens[lo].start : tokens[hi - 1].end], base + tokens[lo].start
        if tokens[lo].kind == TokenType.L_PAREN and closing(tokens, lo) == hi - 1:
            inner = sql[tokens[lo].end : tokens[hi - 1].start]
            nodes.append(_query(inner, base + tokens[lo].end, visible))
        elif _word(tokens, lo) == "SELECT":
            nodes.append(_select(text, at, visible))
        else:
            raise NotIncremental("STRUCTURE", f"`{text.split()[0]}` where a SELECT was expected")
    if len(nodes) == 1:
        return nodes[0]
    for lo, hi in arms[-1:]:
        if any(_word(tokens, k) in ("LIMIT", "OFFSET") for k in range(lo, hi)):
            raise NotIncremental("LIMIT", "LIMIT or OFFSET: one changed row can move others in or out")
    return SetNode(tuple(nodes), keep_all, by_name)


def _read_ctes(sql: str, base: int, tokens: tuple[Token, ...], visible: dict[str, tuple[str, int, _Ctes]]) -> int:
    i = 1
    while True:
        name = _unquoted(tokens[i].text)
        if _word(tokens, i) == "RECURSIVE":
            raise NotIncremental("RECURSIVE", "a recursive CTE")
        i += 1
        if i < len(tokens) and tokens[i].kind == TokenType.L_PAREN:
            raise NotIncremental("CTE_COLUMNS", f"the CTE {name} renames its columns in parentheses")
        if _word(tokens, i) == "AS":
            i += 1
        if i >= len(tokens) or tokens[i].kind != TokenType.L_PAREN:
            raise NotIncremental("STRUCTURE", f"the CTE {name} was not understood")
        close = closing(tokens, i)
        inner = sql[tokens[i].end : tokens[close].start]
        if name.lower() in visible:
            raise NotIncremental("CTE_NAME", f"two CTEs are called {name}, one inside the other")
        visible[name.lower()] = (inner, base + tokens[i].end, dict(visible))
        i = close + 1
        if i < len(tokens) and tokens[i].kind == TokenType.COMMA:
            i += 1
            continue
        return i


def _unquoted(text: str) -> str:
    return text[1:-1].replace("``", "`") if text[:1] == "`" else text


def _parsed(text: str) -> exp.Expr:
    found = parse(text)
    if isinstance(found, QueryError):
        raise NotIncremental("STRUCTURE", f"a part of the query was not understood: {found.message}")
    return found.tree


def _condition(text: str, start: int) -> Piece:
    tree = read_condition(text)
    if tree is None:
        raise NotIncremental("STRUCTURE", f"a condition was not understood: {text}")
    return Piece(text, start, tree)


def _select(sql: str, base: int, ctes: _Ctes) -> SelectNode:
    blocks = select_blocks(sql)
    block = blocks[0]
    tree = _parsed(sql)
    if not isinstance(tree, exp.Select) or block.context != Context.OUTERMOST:
        raise NotIncremental("STRUCTURE", "a SELECT was not understood")
    for clause in ("LIMIT", "OFFSET"):
        if clause in block.clauses:
            raise NotIncremental("LIMIT", "LIMIT or OFFSET: one changed row can move others in or out")
    others = dict(block.others)
    for clause in block.clauses - {"FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "LATERAL VIEW", "WINDOW", "ORDER BY",
                                   "SORT BY", "CLUSTER BY", "DISTRIBUTE BY"}:  # fmt: skip
        raise NotIncremental("STRUCTURE", f"{clause} is not understood here")
    if tree.find(exp.Pivot):
        raise NotIncremental("PIVOT", "PIVOT groups by columns that the query does not name")
    if tree.find(exp.TableSample):
        raise NotIncremental("SAMPLE", "TABLESAMPLE chooses other rows at each read")
    group = tree.args.get("group")
    if group is not None and any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "totals")):
        raise NotIncremental("GROUPING_SETS", "ROLLUP, CUBE or GROUPING SETS: one row belongs to several groups")
    if group is not None and any(isinstance(g, exp.Cube | exp.Rollup | exp.GroupingSets) for g in group.expressions):
        raise NotIncremental("GROUPING_SETS", "ROLLUP, CUBE or GROUPING SETS: one row belongs to several groups")
    sources = _sources(block.from_.of(sql), base + block.from_.start, ctes) if block.from_ else ()
    laterals = " ".join(span.of(sql) for name, span in block.others if name == "LATERAL VIEW")
    where = tuple(_condition(span.of(sql), base + span.start) for span in block.conjuncts)
    items = []
    for item, node in zip(block.items, tree.expressions, strict=True):
        text = item.span.of(sql)
        items.append(_item(text, node, base + item.span.start, base + item.span.end))
    node = SelectNode(
        text=sql,
        items=tuple(items),
        sources=sources,
        laterals=laterals,
        where=where,
        tree=tree,
        grouped=group is not None,
        aggregate=group is not None or "HAVING" in others or any(aggregates(item) for item in tree.expressions),
        distinct=block.distinct,
        windows=tuple(_windows(tree)),
        clauses=block.clauses,
        head=_head(ctes),
        start=base,
        where_span=(block.where.start, block.where.end) if block.where else None,
        where_at=max([block.clause_end(), *(span.end for name, span in block.others if name == "LATERAL VIEW")]),
    )
    _check(node, block.from_.of(sql) if block.from_ else "")
    subqueries: dict[str, Node] = {}
    for piece in where:
        for text in subquery_texts(piece.text):
            subqueries[text] = _query(text, -(10**9), ctes)
    node.subqueries = subqueries
    node.deep = tuple(_query(text, -(10**9), ctes) for text in _deep_subqueries(node, block.others, sql))
    return node


def _head(ctes: _Ctes) -> str:
    return f"WITH {', '.join(f'{quoted(name)} AS ({body})' for name, (body, _, _) in ctes.items())} " if ctes else ""


def subquery_texts(text: str) -> list[str]:
    """The queries in parentheses inside an expression, outermost ones only."""
    tokens = tokenize(text)
    found, i = [], 0
    while i < len(tokens):
        if tokens[i].kind == TokenType.L_PAREN and _word(tokens, i + 1) in ("SELECT", "WITH"):
            close = closing(tokens, i)
            found.append(text[tokens[i].end : tokens[close].start])
            i = close
        i += 1
    return found


def _deep_subqueries(node: SelectNode, others: tuple[tuple[str, object], ...], sql: str) -> list[str]:
    """Subqueries of the select list, of ON, GROUP BY, HAVING and the like."""
    texts = [item.text for item in node.items]
    texts += [piece.text for source in node.sources for piece in source.on]
    texts += [span.of(sql) for _, span in others]  # type: ignore[attr-defined]
    return [query for text in texts for query in subquery_texts(text)]


def _item(text: str, node: exp.Expr, start: int, end: int) -> OutItem:
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return OutItem(text, None, node, start, end)
    if isinstance(node, exp.Aliases):
        raise NotIncremental("GENERATOR", "a generator with several output columns in the select list")
    if not isinstance(node, exp.Alias):
        name = node.name if isinstance(node, exp.Column | exp.Dot) else ""
        return OutItem(text, name or text, node, start, end)
    tokens = tokenize(text)
    cut = len(tokens) - 1
    if _word(tokens, cut - 1) == "AS":
        cut -= 1
    body = text[: tokens[cut - 1].end]
    again = _parsed(f"SELECT {body}").expressions[0]
    if again != node.this:
        raise NotIncremental("STRUCTURE", f"the alias of `{text}` was not understood")
    return OutItem(body, node.alias, node.this, start, end)


def _sources(text: str, base: int, ctes: _Ctes) -> tuple[Source, ...]:
    """The FROM items of a FROM clause, keyword included."""
    tokens = tokenize(text)
    found: list[Source] = []
    i, kind, listed = 1, "", False
    while True:
        item, alias, renames, i = _relation(text, base, tokens, i, ctes)
        on: tuple[Piece, ...] = ()
        using: tuple[str, ...] = ()
        if _word(tokens, i) == "ON":
            end = i + 1
            while end < len(tokens) and _word(tokens, end) != "JOIN" and tokens[end].kind != TokenType.COMMA:
                end = closing(tokens, end) + 1 if tokens[end].kind == TokenType.L_PAREN else end + 1
            if _word(tokens, end) == "JOIN":
                while _word(tokens, end - 1) in _JOIN_WORDS:
                    end -= 1
            lo = tokens[i + 1].start
            on = _conjuncts(text[lo : tokens[end - 1].end], base + lo)
            i = end
        elif _word(tokens, i) == "USING":
            close = closing(tokens, i + 1)
            using = tuple(_unquoted(t.text) for t in tokens[i + 2 : close] if t.kind != TokenType.COMMA)
            i = close + 1
        found.append(Source(item, alias, kind, on, using, renames))
        if i >= len(tokens):
            return tuple(found)
        if tokens[i].kind == TokenType.COMMA:
            kind, i, listed = "CROSS", i + 1, True
            continue
        words = []
        while _word(tokens, i) in _JOIN_WORDS:
            words.append(_word(tokens, i))
            i += 1
        if _word(tokens, i) != "JOIN" or " ".join(words) not in _KINDS:
            raise NotIncremental("JOIN_KIND", f"`{' '.join(words) or tokens[i].text}` in FROM is not understood")
        kind, i = _KINDS[" ".join(words)], i + 1
        if listed and kind in ("RIGHT", "FULL"):
            raise NotIncremental("JOIN_KIND", f"{kind} JOIN behind a comma joins the last FROM item alone")


def _conjuncts(text: str, base: int) -> tuple[Piece, ...]:
    block = select_blocks(f"SELECT 1 FROM t WHERE {text}")[0]
    head = len("SELECT 1 FROM t WHERE ")
    whole = f"SELECT 1 FROM t WHERE {text}"
    return tuple(_condition(span.of(whole), base + span.start - head) for span in block.conjuncts)


def _relation(
    text: str, base: int, tokens: tuple[Token, ...], i: int, ctes: _Ctes
) -> tuple[Leaf | Node, str, tuple[str, ...], int]:
    if i >= len(tokens):
        raise NotIncremental("STRUCTURE", "a FROM item is missing")
    item: Leaf | Node
    if tokens[i].kind == TokenType.L_PAREN:
        close = closing(tokens, i)
        if _word(tokens, i + 1) not in ("SELECT", "WITH") and tokens[i + 1].kind != TokenType.L_PAREN:
            raise NotIncremental("STRUCTURE", "joins in parentheses are not understood")
        item = _query(text[tokens[i].end : tokens[close].start], base + tokens[i].end, ctes)
        default, i = "", close + 1
    else:
        lo, parts = i, [_unquoted(tokens[i].text)]
        if not (tokens[i].word or tokens[i].kind == TokenType.IDENTIFIER) or tokens[i].word in ("LATERAL", "VALUES"):
            raise NotIncremental("STRUCTURE", f"`{tokens[i].text}` in FROM is not understood")
        i += 1
        while i + 1 < len(tokens) and tokens[i].kind == TokenType.DOT:
            parts.append(_unquoted(tokens[i + 1].text))
            i += 2
        if i < len(tokens) and tokens[i].kind == TokenType.L_PAREN:
            raise NotIncremental("TABLE_FUNCTION", f"the table function {'.'.join(parts)}")
        default = parts[-1]
        if len(parts) == 1 and parts[0].lower() in ctes:
            body, offset, visible = ctes[parts[0].lower()]
            item = _query(body, offset, visible)
        else:
            item = Leaf(joined(parts), text[tokens[lo].start : tokens[i - 1].end])
    if _word(tokens, i) == "AS":
        i += 1
    alias = default
    if i < len(tokens) and (
        tokens[i].kind == TokenType.IDENTIFIER or (_word(tokens, i) and _word(tokens, i) not in _AFTER)
    ):
        alias = _unquoted(tokens[i].text)
        i += 1
    renames: tuple[str, ...] = ()
    if i < len(tokens) and tokens[i].kind == TokenType.L_PAREN:
        close = closing(tokens, i)
        renames = tuple(_unquoted(t.text) for t in tokens[i + 1 : close] if t.kind != TokenType.COMMA)
        i = close + 1
    if _word(tokens, i) in ("TABLESAMPLE", "PIVOT", "UNPIVOT", "VERSION", "TIMESTAMP", "FOR"):
        raise NotIncremental("STRUCTURE", f"{_word(tokens, i)} in FROM")
    return item, alias, renames, i


def _windows(tree: exp.Expr) -> Iterator[exp.Window]:
    """The windows of one SELECT, not those of queries inside it."""
    for key, value in tree.args.items():
        if key in ("from_", "joins", "with_", "windows", "laterals"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                yield from (n for n in part.walk(prune=lambda n: isinstance(n, exp.Query)) if isinstance(n, exp.Window))


def calls(node: exp.Expr) -> Iterator[str]:
    """Names of all functions called in `node`, as written, lower case; inside subqueries too."""
    for item in node.walk():
        call = item.meta.get("call")
        if isinstance(call, Call):
            yield call.name


def _check(node: SelectNode, from_text: str) -> None:
    """Put FROM together again from the pieces: it must parse as the original does."""
    if not from_text:
        return
    parts = []
    for k, source in enumerate(node.sources):
        joined = source.kind if k else ""
        text = f"SOURCE_{k}"
        on = f" ON {' AND '.join(f'({p.text})' for p in source.on)}" if source.on else ""
        using = f" USING ({', '.join(quoted(c) for c in source.using)})" if source.using else ""
        parts.append(f"{joined + ' JOIN ' if k else ''}{text} AS {quoted(source.alias or f'_{k}')}{on}{using}")
    again = _parsed(f"SELECT 1 FROM {' '.join(parts)}")
    wanted = node.tree.args.get("joins") or []
    found = again.args.get("joins") or []
    if len(wanted) != len(found):
        raise NotIncremental("STRUCTURE", "the FROM clause was not understood")
    for left, right in zip(wanted, found, strict=True):
        if left.args.get("method") or left.args.get("pivots"):
            raise NotIncremental("JOIN_KIND", "NATURAL and ASOF joins are not understood")
        kinds = [
            (str(j.args.get("side") or ""), str(j.args.get("kind") or "").replace("INNER", "").replace("OUTER", ""))
            for j in (left, right)
        ]
        plain = [("", "") if kind in (("", "CROSS"), ("", "")) else kind for kind in kinds]
        plain = [("LEFT", kind[1]) if kind[1] in ("SEMI", "ANTI") else kind for kind in plain]
        if plain[0] != plain[1]:
            raise NotIncremental("STRUCTURE", "a JOIN was not understood")
        if _flat(left.args.get("on")) != _flat(right.args.get("on")):
            raise NotIncremental("STRUCTURE", "an ON condition was not understood")
        if [c.name for c in left.args.get("using") or []] != [c.name for c in right.args.get("using") or []]:
            raise NotIncremental("STRUCTURE", "a USING clause was not understood")


def _flat(node: exp.Expr | None) -> list[exp.Expr]:
    if node is None:
        return []
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*_flat(node.left), *_flat(node.right)]
    return [node]
