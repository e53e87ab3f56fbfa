"""What a join of a tree is: the same words mean the same to all who read a FROM."""

from __future__ import annotations

from sqlglot import exp

_KINDS = {
    "": "INNER", "INNER": "INNER", "CROSS": "CROSS", "LEFT": "LEFT", "LEFT OUTER": "LEFT", "RIGHT": "RIGHT",
    "RIGHT OUTER": "RIGHT", "FULL": "FULL", "FULL OUTER": "FULL", "SEMI": "LEFT SEMI", "LEFT SEMI": "LEFT SEMI",
    "ANTI": "LEFT ANTI", "LEFT ANTI": "LEFT ANTI",
}  # fmt: skip

HIDING = frozenset({"LEFT SEMI", "LEFT ANTI"})
"""Joins whose right side has no columns in the result."""

EACH_ROW_ALIKE = frozenset({"INNER", "CROSS"})
"""Joins that fill no side with NULLs and treat both sides alike."""

FILLING_LEFT = frozenset({"RIGHT", "FULL"})
"""Joins that fill what stands before them with NULLs."""


def join_words(join: exp.Expr) -> str:
    """How it is written, without JOIN: `LEFT OUTER`, `NATURAL`."""
    return " ".join(str(join.args[key]).upper() for key in ("method", "side", "kind") if join.args.get(key))


def join_kind(join: exp.Expr) -> str:
    """INNER, CROSS, LEFT, RIGHT, FULL, LEFT SEMI or LEFT ANTI, of a NATURAL join, too; '' for what Spark does not have."""
    return _KINDS.get(" ".join(str(join.args[key]).upper() for key in ("side", "kind") if join.args.get(key)), "")


def merges(join: exp.Expr) -> bool:
    """Whether columns of both sides become one: USING, NATURAL."""
    return bool(join.args.get("using") or join.args.get("method"))
