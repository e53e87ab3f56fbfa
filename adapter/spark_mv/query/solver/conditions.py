"""Conditions around clock comparisons: CASE and IF, coalesce, IS TRUE, `= true`, each as bounds of what is inside.

SQL's third truth value decides how far: `coalesce(expires > now(), true)` also holds where `expires` is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from spark_mv.query.solver.bounds import Bounds, both, either
from spark_mv.query.solver.predicate import call_name, is_stable
from spark_mv.query.solver.scene import Scene, Unsolvable

Solve = Callable[[exp.Expr, bool, Scene], Bounds]
NEVER = Bounds(guard="false")
_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ)


def condition(node: exp.Expr, negated: bool, scene: Scene, solve: Solve) -> Bounds | None:
    """The bounds of one of these conditions, None if `node` is none of them. Raises Unsolvable."""
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        wanted = bool(node.expression.this)
        # NOT (p IS TRUE) holds where p is false or NULL
        return _holds(node.this, negated == wanted, negated, scene, solve)
    if isinstance(node, exp.EQ | exp.NullSafeEQ):
        sides = (node.left, node.right) if isinstance(node.right, exp.Boolean) else (node.right, node.left)
        if isinstance(sides[1], exp.Boolean):
            wanted = bool(sides[1].this)
            return _holds(sides[0], negated == wanted, negated and isinstance(node, exp.NullSafeEQ), scene, solve)
    arguments = node.expressions
    if call_name(node) in ("coalesce", "nvl", "ifnull") and len(arguments) == 2:
        if isinstance(arguments[1], exp.Boolean):
            return _holds(arguments[0], negated, bool(arguments[1].this) != negated, scene, solve)
        return None
    branches = _branches(node, scene)
    return _chosen(branches, negated, scene, solve) if branches is not None else _compared(node, negated, scene, solve)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _holds(node: exp.Expr, negated: bool, unknown: bool, scene: Scene, solve: Solve) -> Bounds:
    """Where `node` (its negation) is true, and with `unknown` also where it is NULL."""
    found = solve(node, negated, scene)
    if not unknown:
        return found
    inner = _bare(node)
    while isinstance(inner, exp.Not):
        inner = _bare(inner.this)
    # CASE, coalesce and the like inside a comparison may make something of NULL
    plain = isinstance(inner, _COMPARISONS) and condition(inner, False, scene, solve) is None
    if not plain or found.guard is None or not found.guard.endswith(" IS NOT NULL"):
        raise Unsolvable("where this condition is NULL is not known")
    # one comparison is NULL where what it compares is NULL, and so are its bounds: no bound
    return replace(found, guard=None, open_from=True, open_to=True)


_Branch = tuple["exp.Expr | str | None", "exp.Expr | None"]


def _branches(node: exp.Expr, scene: Scene) -> list[_Branch] | None:
    """(condition, value) of a CASE or IF, the last one without condition; None for anything else."""
    if isinstance(node, exp.If):
        return [(node.this, node.args.get("true")), (None, node.args.get("false"))]
    if call_name(node) == "if" and len(node.expressions) == 3:
        return [(node.expressions[0], node.expressions[1]), (None, node.expressions[2])]
    if not isinstance(node, exp.Case):
        return None
    found: list[_Branch] = []
    for branch in node.args["ifs"]:
        when: exp.Expr | str = branch.this
        if node.this is not None:
            when = f"({scene.row(node.this)}) = ({scene.row(branch.this)})"
        found.append((when, branch.args.get("true")))
    return [*found, (None, node.args.get("default"))]


def _chosen(branches: list[_Branch], negated: bool, scene: Scene, solve: Solve) -> Bounds:
    if not any(isinstance(when, exp.Expr) and scene.clocked(when) for when, _ in branches):
        return _by_row(branches, negated, scene, solve)
    taken: list[bool] = []
    for _, result in branches:
        literal = _bare(result) if result is not None else exp.Null()
        if isinstance(literal, exp.Null):
            taken.append(False)
        elif isinstance(literal, exp.Boolean):
            taken.append(bool(literal.this) != negated)
        else:
            raise Unsolvable("a CASE with the clock in its conditions and in its results")
    return _by_clock([when for when, _ in branches], taken, scene, solve)


def _by_row(branches: list[_Branch], negated: bool, scene: Scene, solve: Solve) -> Bounds:
    """The row chooses the branch, so each bound is a CASE of theirs."""
    whens, parts = [], []
    for when, result in branches:
        if isinstance(when, exp.Expr):
            if not is_stable(when):
                raise Unsolvable("a condition beside the clock may differ between evaluations")
            when = scene.text.of(when)
        whens.append(when)
        empty = result is None or isinstance(_bare(result), exp.Null)
        parts.append(NEVER if empty or result is None else solve(result, negated, scene))

    return choice([str(when) for when in whens[:-1]], parts)


def choice(whens: list[str], parts: list[Bounds]) -> Bounds:
    """The bounds of the first part whose condition (SQL over the row) is true; the last part has none."""

    def case(results: list[str | None], default: str) -> str:
        shown = [result or default for result in results]
        steps = " ".join(f"WHEN {when} THEN {text}" for when, text in zip(whens, shown, strict=False))
        return f"CASE {steps} ELSE {shown[-1]} END"

    lower, upper = [part.valid_from for part in parts], [part.valid_to for part in parts]
    return Bounds(
        case(lower, "NULL") if any(lower) else None,
        case(upper, "NULL") if any(upper) else None,
        case([part.guard for part in parts], "true"),
        any(part.open_from or part.valid_from is None for part in parts),
        any(part.open_to or part.valid_to is None for part in parts),
    )


def _by_clock(whens: list[exp.Expr | str | None], taken: list[bool], scene: Scene, solve: Solve) -> Bounds:
    """The clock chooses the branch: a branch is taken where its condition is true and none before it is."""
    found: Bounds | None = None
    before = Bounds()
    for when, wanted in zip(whens, taken, strict=True):
        if isinstance(when, str):
            raise Unsolvable("a CASE with a value that mixes the clock and the row")
        here = before if when is None else both(before, solve(when, False, scene))
        if wanted:
            joined = here if found is None else either(found, here)
            if joined is None:
                raise Unsolvable("the instants of the branches of a CASE do not form one interval")
            found = joined
        if when is not None and any(taken):
            before = both(before, _otherwise(when, scene, solve))
    return found or NEVER


def _otherwise(when: exp.Expr, scene: Scene, solve: Solve) -> Bounds:
    """Where the condition is false or NULL."""
    if not scene.clocked(when):
        return Bounds(guard=f"NOT coalesce({scene.row(when)}, false)")
    return _holds(when, True, True, scene, solve)


def _same_literal(one: exp.Literal, other: exp.Literal) -> bool:
    """Whether two literals of one kind are equal: 1 and 1.0 are."""
    if one.is_string or one.name == other.name:
        return bool(one.name == other.name)
    try:
        return Fraction(one.name) == Fraction(other.name)
    except ValueError as error:
        raise Unsolvable("numbers that are not written plainly") from error


def _compared(node: exp.Expr, negated: bool, scene: Scene, solve: Solve) -> Bounds | None:
    """`CASE … END = 'new'`, every result being a literal: the branches with that result are the true ones."""
    if not isinstance(node, exp.EQ | exp.NEQ):
        return None
    for case, other in ((node.left, node.right), (node.right, node.left)):
        branches = _branches(_bare(case), scene)
        if branches is None or not isinstance(_bare(other), exp.Literal):
            continue
        wanted = _bare(other)
        taken = []
        for _, result in branches:
            literal = _bare(result) if result is not None else exp.Null()
            if not isinstance(literal, exp.Literal | exp.Null):
                return None
            if isinstance(literal, exp.Literal) and literal.is_string != wanted.is_string:
                return None
            same = (
                isinstance(literal, exp.Literal) and isinstance(wanted, exp.Literal) and _same_literal(literal, wanted)
            )
            known = isinstance(literal, exp.Literal)
            taken.append(known and same != (isinstance(node, exp.NEQ) != negated))
        return _by_clock([when for when, _ in branches], taken, scene, solve)
    return None
