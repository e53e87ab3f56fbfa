"""A condition or an expression by itself: the grammar wants a statement around it."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.syntax.parse import parse
from spark_mv.query.syntax.query_error import QueryError

ALWAYS = "1 = 1"
"""A condition that holds, wherever it stands. In a user's brackets TRUE would be a name to Spark, see `where_clause`."""
HEAD = "SELECT 1 WHERE "
"""Comes before a condition that is read. The places of its words count from there."""


def read_condition(text: str) -> exp.Expr | None:
    """The tree of a condition, or None where it is not understood, or is more than one: another clause behind it, for instance."""
    found = parse(HEAD + text)
    if isinstance(found, QueryError) or not isinstance(found.tree, exp.Select):
        return None
    parts = {key for key, value in found.tree.args.items() if value}
    return found.tree.args["where"].this if parts == {"expressions", "where"} else None


def is_one_condition(text: str) -> bool:
    """Whether the text is one condition, however it is put into brackets with line ends around it.

    >>> is_one_condition("a = 1 -- why"), is_one_condition("true) or (true"), is_one_condition("true) group by (a")
    (True, False, False)
    """
    return isinstance(read_condition(f"(\n{text}\n)"), exp.Paren)


def read_expression(text: str) -> exp.Expr | None:
    """The tree of one expression, with or without an alias, or None where it is not understood. Places in it count from
    the word SELECT and a blank before it."""
    found = parse(f"SELECT {text}")
    if isinstance(found, QueryError) or not isinstance(found.tree, exp.Select):
        return None
    tree = found.tree
    whole = len(tree.expressions) == 1 and not any(value for key, value in tree.args.items() if key != "expressions")
    return tree.expressions[0] if whole else None


def bracketed(condition: str) -> str:
    """A condition in brackets, to stand behind WHERE; a word by itself in two pairs, see `where_clause`.

    >>> bracketed("a = 1"), bracketed("flag"), bracketed("`my flag`")
    ('(a = 1)', '((flag))', '((`my flag`))')
    """
    word = condition.strip()
    alone = word.isidentifier() or (word.startswith("`") and word.endswith("`") and "`" not in word[1:-1])
    return f"(({condition}))" if alone else f"({condition})"


def where_clause(condition: str) -> str:
    """The clause of a condition behind a table without an alias. In two pairs of brackets: Spark reads `FROM t WHERE (flag)` as a table called
    `where` with a column called `flag`, and filters nothing.

    >>> where_clause("flag")
    'where ((\\nflag\\n))'
    """
    return f"where ((\n{condition}\n))"
