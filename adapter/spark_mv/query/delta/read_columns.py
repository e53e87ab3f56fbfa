"""Which columns of its tables a query can read: what else changes in a row changes nothing that the query gives."""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot import exp

from spark_mv.query.delta.names import Columns
from spark_mv.query.syntax.select_tree import Leaf, Node, SelectNode, SetNode, selects

_COMPUTED = re.compile(r"\bidentifier\s*\(|\$\{")
_QUOTED = re.compile(r"`([^`]*)`?")
_PLAIN = re.compile(r"[\w\s./:-]*")


def read_columns(node: Node, tables: Columns, texts: Collection[str] = ()) -> Columns:
    """The columns of each table, in its order, without those that the query cannot read: their names stand nowhere in its text or in `texts`,
    and no star hands them on to where all columns count. All of a table of which none is left: its rows count. And all of them where
    names are computed: by IDENTIFIER, from a variable, or by a pattern in backticks (spark.sql.parser.quotedRegexColumnNames)."""
    all_texts = {*texts, *(text for select in selects(node) for text in (select.text, select.whole))}
    written = "\n".join(all_texts).lower()
    if _COMPUTED.search(written) or any(
        not _PLAIN.fullmatch(name) for text in all_texts for name in _QUOTED.findall(text)
    ):
        return tables
    whole: set[str] = set()
    _whole(node, True, whole)
    return {
        name: columns
        if name in whole
        else tuple(c for c in columns if not _is_plain(c) or c.lower() in written) or columns
        for name, columns in tables.items()
    }


def _is_plain(column: str) -> bool:
    """Whether the name can be looked for: in backticks one is written as it is, but for backticks in it; and case is one thing in ASCII alone."""
    return column.isascii() and "`" not in column


def _whole(node: Leaf | Node, all_: bool, found: set[str]) -> None:
    """The tables (lower case) all of whose columns count. `all_`: all output columns of the query do. A column that is said by its name is
    none of a star."""
    if isinstance(node, Leaf):
        if all_:
            found.add(node.name.lower())
        return
    if isinstance(node, SetNode):
        for arm in node.arms:  # columns by their place
            _whole(arm, True, found)
        return
    star = any(item.name is None for item in node.items)
    handed_on = star and (all_ or node.distinct or node.grouped)  # GROUP BY ALL groups by what the star gives
    for source in node.sources:
        _whole(source.item, handed_on or _takes_rows(node) or bool(source.renames), found)
    for query in (*node.subqueries.values(), *node.deep):
        _whole(query, True, found)


def _takes_rows(node: SelectNode) -> bool:
    """Whether an expression takes whole rows, as `hash(*)` does; `count(*)` only counts them."""
    stars = {id(part) for item in node.items if item.name is None for part in item.node.find_all(exp.Star)}
    own = node.tree.walk(prune=lambda part: isinstance(part, exp.Query) and part is not node.tree)
    return any(
        isinstance(part, exp.Star) and id(part) not in stars and not isinstance(part.parent, exp.Count) for part in own
    )
