"""Fingerprints: of an expression, a query block, a model. Equal means that nothing was changed but names and layout.

A fingerprint is of the whole tree: the class of every node, every argument of it, the types of literals. Names that the
walk resolved count as what they stand for (`Walk.prints`), and what is left out stands in `LEFT_OUT`, with the reason.
Whatever sqlglot learns to parse is part of it without a change here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.analysis.taint import digest
from spark_mv.query.syntax.joins import HIDING, join_kind
from spark_mv.query.syntax.parse import Parsed
from spark_mv.query.syntax.parser import Call

if TYPE_CHECKING:
    from spark_mv.query.analysis.walk import Walk

_LITERALS = (TokenType.STRING, TokenType.NUMBER, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING)


def _always(_: exp.Expr) -> bool:
    return True


def _names_rows_only(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.Select)


def _plain_word(node: exp.Expr) -> bool:
    return str(node.args.get("kind") or "").upper() in ("INNER", "OUTER")


def _of_semi_join(node: exp.Expr) -> bool:
    return join_kind(node) in HIDING


def _is_all(node: exp.Expr) -> bool:
    amount = node.args["limit"].args.get("expression")
    return isinstance(amount, exp.Column | exp.Var) and amount.name.upper() == "ALL"


LEFT_OUT: Mapping[tuple[type[exp.Expr], str], tuple[Callable[[exp.Expr], bool], str]] = {
    # (class, argument): (when, why)
    (exp.Alias, "alias"): (_names_rows_only, "columns are followed to their expressions; names of the output are kept"),
    (exp.Table, "alias"): (_always, "an alias of a table: its columns are followed"),
    (exp.Subquery, "alias"): (_always, "an alias of a subquery: its columns are followed"),
    (exp.Values, "alias"): (_always, "an alias of inline rows: columns are followed by their position"),
    (exp.Lateral, "alias"): (_always, "an alias of a lateral view: its columns are followed"),
    (exp.Unnest, "alias"): (_always, "an alias of a table function: its columns are followed"),
    (exp.Identifier, "quoted"): (_always, "`a` and a are one name"),
    (exp.Join, "kind"): (_plain_word, "INNER and OUTER change nothing"),
    (exp.Join, "side"): (_of_semi_join, "SEMI and ANTI are LEFT without the word"),
    (exp.Select, "with_"): (_always, "a CTE counts where it is read"),
    (exp.Union, "with_"): (_always, "a CTE counts where it is read"),
    (exp.Intersect, "with_"): (_always, "a CTE counts where it is read"),
    (exp.Except, "with_"): (_always, "a CTE counts where it is read"),
    (exp.Subquery, "with_"): (_always, "a CTE counts where it is read"),
    (exp.Select, "windows"): (_always, "a named window counts where it is used"),
    (exp.Select, "hint"): (_always, "advice for the optimizer"),
    (exp.Select, "limit"): (_is_all, "LIMIT ALL is no limit"),
}
"""Beside these: parentheses, comments, white space, the case of keywords, of functions and of resolved names, names of lambda
parameters, and the ORDER BY of the whole query without a LIMIT (rows of a table have no order)."""

_NAMES_FIELDS = frozenset({"struct", "arrays_zip"})
"""Functions that name the fields of their result after the columns they are given, as `(a, b)` does."""


def fingerprint(walk: Walk, node: exp.Expr) -> str:
    """That of `node` itself, computed from those of its parts; parts that the walk has resolved count as resolved."""
    arguments = list(_arguments(walk, node))
    if isinstance(node, exp.Paren | exp.Subquery) and [key for key, _ in arguments] == ["this"]:
        return _part(walk, node.this)
    if not arguments and id(node) in walk.named_tables:
        return walk.notes[id(node)][1]
    parts: list[object] = [type(node).__name__]
    call = node.meta.get("call")
    if isinstance(call, Call):
        parts.append(f"call {call.name}")
    if isinstance(node, exp.Tuple) or (isinstance(call, Call) and call.name in _NAMES_FIELDS):
        parts += [item.output_name for item in node.iter_expressions()]
    if isinstance(node, exp.Join) and _joins_last(node):
        parts.append("comma")
    if id(node) in walk.notes:
        parts.append(walk.notes[id(node)][1])
    for key, item in arguments:
        parts.append(f"{key}:{_part(walk, item)}" if isinstance(item, exp.Expr) else f"{key}={_word(node, item)}")
    return digest(*parts)


def _joins_last(join: exp.Join) -> bool:
    """Whether it is a comma beside a join that keeps rows of its right side: a comma binds less than CROSS JOIN."""
    joins = join.parent.args.get("joins") or [] if join.parent is not None else []
    return "comma" in join.meta and any(other.side in ("RIGHT", "FULL") for other in joins)


def _part(walk: Walk, node: exp.Expr) -> str:
    known = walk.prints.get(id(node))
    return known[1] if known is not None else fingerprint(walk, node)


def _arguments(walk: Walk, node: exp.Expr) -> Iterator[tuple[str, object]]:
    for key, child in sorted(node.args.items()):
        if child is None or child is False or child == [] or is_left_out(node, key):
            continue
        if key == "order" and id(node) in walk.unordered:
            continue
        if key in ("this", "db", "catalog") and id(node) in walk.named_tables:
            continue
        for item in child if isinstance(child, list) else [child]:
            yield key, item


def is_left_out(node: exp.Expr, key: str) -> bool:
    """Whether an argument of a node is no part of a fingerprint (`LEFT_OUT`)."""
    rule = LEFT_OUT.get((type(node), key))
    return rule is not None and bool(rule[0](node))


def _word(node: exp.Expr, item: object) -> str:
    """Words of the grammar in capitals, names of functions in small letters; literals and other names exactly."""
    if isinstance(node, exp.Anonymous) and isinstance(item, str):
        return item.lower()
    if isinstance(item, str) and not isinstance(node, exp.Literal | exp.Identifier | exp.RawString):
        return item.upper() if isinstance(node, exp.Var | exp.Join | exp.WindowSpec) else item
    return f"{type(item).__name__} {item}"


def resolved(walk: Walk, node: exp.Expr, print_: str) -> str:
    """Remember what a node stands for. The node is kept too: its id is its name in the walk."""
    walk.prints[id(node)] = (node, print_)
    return print_


def noted(walk: Walk, node: exp.Expr, *facts: str) -> None:
    """Remember what the tree does not say about a node: the columns that NATURAL joins, say."""
    walk.notes[id(node)] = (node, facts[0] if len(facts) == 1 else digest(*facts))


def table_print(parts: Iterable[str]) -> str:
    """That of a table's name: case does not matter, except in a path."""
    return digest("table", *(part if "/" in part else part.lower() for part in parts))


def literals(parsed: Parsed, unread: Iterable[exp.Expr] = ()) -> str:
    """That of all literals in a text, but those of CTEs that nobody reads: the net below a parser that drops one."""
    found = Counter(token.text for token in parsed.tokens if token.token_type in _LITERALS)
    found.subtract(item.name for node in unread for item in node.find_all(exp.Literal))
    return digest("literals", *sorted(f"{text} {times}" for text, times in found.items() if times > 0))
