"""Bounds of a predicate in the as-of instant T, and how AND and OR combine them."""

from __future__ import annotations

from dataclasses import dataclass

from spark_mv.query.solver.value import operand


@dataclass(frozen=True)
class Bounds:
    """The predicate is true exactly when `guard` is true and valid_from <= T < valid_to.

    `valid_from` and `valid_to` are SQL of type TIMESTAMP over the row's columns; None is unbounded, and so is a NULL
    of theirs for a row whose guard is true. `guard` is a boolean SQL expression over the row, None for true; a row
    whose guard is false or NULL (the predicate itself is NULL, say) is never valid. `open_from` and `open_to` tell
    whether the bound may be NULL for such a row.
    """

    valid_from: str | None = None
    valid_to: str | None = None
    guard: str | None = None
    open_from: bool = False
    open_to: bool = False

    @property
    def unbounded(self) -> bool:
        return self.valid_from is None and self.valid_to is None


def _guards(*guards: str | None) -> tuple[str, ...]:
    parts: list[str] = []
    for guard in guards:
        if guard is not None and guard not in parts:
            parts.append(guard)
    return tuple(parts)


def _nested(guard: str) -> str:
    return f"({guard})"


def both(left: Bounds, right: Bounds) -> Bounds:
    """AND: the later start, the earlier end. greatest and least skip NULLs, which stand for unbounded."""
    return Bounds(
        _pick("greatest", left.valid_from, right.valid_from),
        _pick("least", left.valid_to, right.valid_to),
        conjunction(left.guard, right.guard),
        (left.open_from or left.valid_from is None) and (right.open_from or right.valid_from is None),
        (left.open_to or left.valid_to is None) and (right.open_to or right.valid_to is None),
    )


def conjunction(*guards: str | None) -> str | None:
    """The guards joined by AND; None when there is none."""
    parts = _guards(*guards)
    if len(parts) < 2:
        return parts[0] if parts else None
    return " AND ".join(part if _plain(part) else _nested(part) for part in parts)


def _plain(guard: str) -> bool:
    return guard.endswith(" IS NOT NULL") and operand(guard[: -len(" IS NOT NULL")]) == guard[: -len(" IS NOT NULL")]


def _pick(function: str, left: str | None, right: str | None) -> str | None:
    if left is None or right is None or left == right:
        return left if right is None else right
    return f"{function}({left}, {right})"


def either(left: Bounds, right: Bounds) -> Bounds | None:
    """OR, where the union is one interval for every row: two half-lines of one direction, or one side without clock."""
    if left.guard is None and left.unbounded:
        return left
    if right.guard is None and right.unbounded:
        return right
    guard = None if left.guard is None or right.guard is None else f"{_nested(left.guard)} OR {_nested(right.guard)}"
    if left.unbounded or right.unbounded:
        free, other = (left, right) if left.unbounded else (right, left)
        return Bounds(_unless(free.guard, other.valid_from), _unless(free.guard, other.valid_to), guard, True, True)
    if left.valid_to is None and right.valid_to is None:
        sides = (
            _Side(left.guard, left.valid_from, left.open_from),
            _Side(right.guard, right.valid_from, right.open_from),
        )
        return Bounds(valid_from=_reach("least", *sides), guard=guard, open_from=any(side.open for side in sides))
    if left.valid_from is None and right.valid_from is None:
        sides = _Side(left.guard, left.valid_to, left.open_to), _Side(right.guard, right.valid_to, right.open_to)
        return Bounds(valid_to=_reach("greatest", *sides), guard=guard, open_to=any(side.open for side in sides))
    return None


def _unless(guard: str | None, bound: str | None) -> str | None:
    return None if bound is None else f"CASE WHEN {guard} THEN NULL ELSE {bound} END"


@dataclass(frozen=True)
class _Side:
    guard: str | None
    bound: str | None
    open: bool

    def within(self) -> str:
        """The bound where the side can hold at all, NULL elsewhere (least and greatest skip it)."""
        return str(self.bound) if self.guard is None else f"IF({self.guard}, {self.bound}, NULL)"

    def unbounded(self) -> str:
        null = f"({self.bound}) IS NULL"
        return null if self.guard is None else f"{_nested(self.guard)} AND {null}"


def _reach(function: str, *sides: _Side) -> str:
    reached = f"{function}({', '.join(side.within() for side in sides)})"
    free = [f"({side.unbounded()})" for side in sides if side.open]
    return f"CASE WHEN {' OR '.join(free)} THEN NULL ELSE {reached} END" if free else reached
