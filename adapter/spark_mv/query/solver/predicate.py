"""A predicate parsed with every function under the name the user wrote, and every node tied to its text.

sqlglot rewrites functions while it parses (`date_sub(d, 3)` becomes an addition of -3 days). The solver has to know
which Spark function it turns around, and what it does not touch has to come out as it was written.
"""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from spark_mv.query.functions.catalogue import Mark, is_clock, is_marked, level_of
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.clock_words import CASTING_CALLS, is_clock_word
from spark_mv.query.syntax.parse import verbatim
from spark_mv.query.syntax.source_text import SourceTextError


class PredicateText:
    """A predicate's text and tree. `tree` is None when it cannot be read safely."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tree = verbatim(sql)

    def of(self, node: exp.Expr) -> str:
        """The text of a node as written. Raises SourceTextError when its place is not known."""
        span = node.meta.get("span")
        if span is None:
            raise SourceTextError("an expression has no known place in the text")
        return self.sql[span[0] : span[1]]


def call_name(node: exp.Expr) -> str:
    """Lower-case name of a function called as name(…), '' for anything else."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) and isinstance(node.this, str) else ""


def clock_leaf(node: exp.Expr, columns: frozenset[str] = frozenset()) -> str:
    """The clock function that this node is (lower-case name, 'special' for date'today' and the like), or ''.

    `columns` are column names in scope: a bare word that names a column is that column.
    """
    name = call_name(node)
    if is_clock(name) and (not node.expressions or name == "current_time"):
        return name
    if isinstance(node, exp.Column) and not node.table and not cast(exp.Identifier, node.this).quoted:
        word = node.name.lower()
        return word if is_clock(word) and is_marked(word, Mark.KEYWORD) and word not in columns else ""
    return "special" if special_word(node) else ""


def special_word(node: exp.Expr) -> tuple[str, str] | None:
    """(word, type) of DATE'today', CAST('now' AS TIMESTAMP), to_date('tomorrow') and their like."""
    if isinstance(node, exp.Cast):
        literal, kind = node.this, node.to.sql("spark").lower()
    elif call_name(node) in CASTING_CALLS and len(node.expressions) == 1:
        literal, kind = node.expressions[0], CASTING_CALLS[call_name(node)]
    else:
        return None
    word = literal.name.strip().lower() if isinstance(literal, exp.Literal) and literal.is_string else ""
    return (word, kind) if is_clock_word(word) else None


def has_clock(node: exp.Expr, columns: frozenset[str] = frozenset()) -> bool:
    """Whether a clock function stands anywhere in the expression."""
    return any(clock_leaf(part, columns) for part in node.walk())


def is_stable(node: exp.Expr) -> bool:
    """Whether the expression may be evaluated again and elsewhere: built-in functions only, no draw, no subquery.

    A bound repeats the row's expressions; one that differs between evaluations would make it lie.
    """
    for part in node.walk():
        if isinstance(part, (exp.Query, exp.Star, exp.Placeholder, exp.Parameter)):
            return False
        name = call_name(part)
        level = level_of(name) or Level.NONDETERMINISTIC
        if name == "unix_timestamp" and part.expressions:
            level = Level.DETERMINISTIC
        if isinstance(part, exp.Anonymous) and level > Level.USER:
            return False
        if isinstance(part, exp.Dot):
            return False
    return True
