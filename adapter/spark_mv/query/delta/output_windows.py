"""The windows of a query said of its own result: which of its rows a later instant takes, without asking the sources."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.delta.names import Columns, FromColumns, listed
from spark_mv.query.delta.tables import Window
from spark_mv.query.rewrite.clock_move import is_comparison
from spark_mv.query.syntax.condition import HEAD, read_condition
from spark_mv.query.syntax.select_tree import Leaf, Node, SelectNode, quoted, selects
from spark_mv.query.syntax.source_text import Edit, apply_edits


@dataclass(frozen=True)
class OutputWindows:
    """A row that is in the result stays in it for as long as all `conditions`, which are on output `columns`, hold. `ends`:
    the instant (TIMESTAMP, NULL = never) at which the first of them ceases to; None where a row can also come by the clock,
    or where the instant cannot be said. `bounds`: the instants at which a row comes and leaves by the clock (NULL = always there,
    never leaves); None where they cannot be said."""

    conditions: tuple[str, ...]
    columns: frozenset[str]
    ends: str | None = None
    bounds: tuple[str, str] | None = None


def compared_with(condition: str) -> tuple[tuple[str, str], ...] | None:
    """The columns of a condition, each with an expression without columns that it is compared with, in words that have its
    type. None where the condition is made of anything but comparisons of this kind, joined by AND."""
    tree = read_condition(condition)
    return None if tree is None else _compared(tree)


def _compared(node: exp.Expr) -> tuple[tuple[str, str], ...] | None:
    if isinstance(node, exp.Paren):
        return _compared(node.this)
    if isinstance(node, exp.And):
        sides = _compared(node.left), _compared(node.right)
        return None if sides[0] is None or sides[1] is None else sides[0] + sides[1]
    others: tuple[exp.Expr, ...]
    if isinstance(node, exp.Between):
        column, others = node.this, (node.args["low"], node.args["high"])
    elif isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ):
        turned = not isinstance(node.left, exp.Column)
        column, others = (node.right, (node.left,)) if turned else (node.left, (node.right,))
    else:
        return None
    if (
        not isinstance(column, exp.Column)
        or len(column.parts) > 1
        or any(o.find(exp.Column, exp.Query) for o in others)
    ):
        return None
    return tuple((column.name, other.sql(dialect="spark")) for other in others)


def output_windows(
    node: Node, windows: Mapping[int, Window], tables: Columns, usable: Collection[str], groups: bool = False
) -> OutputWindows | None:
    """The windows as conditions on output columns. `groups`: also of a query whose rows are groups, where its windows stand on the
    groups' keys.

    None where that cannot be said: they stand in the WHERE of more than one SELECT, or of one whose rows do not come through
    one by one; a window is no comparison, or stands on a column that no output column in `usable` (lower case) gives as it is.
    """
    holders = [n for n in selects(node) if any(piece.start in windows for piece in n.where)]
    if len(holders) != 1:
        return None
    (holder,) = holders
    pieces = [piece for piece in holder.where if piece.start in windows]
    given = _passed(node, holder, tables, groups)
    if len(pieces) != len(windows) or given is None:
        return None
    given = {place: name for place, name in given.items() if name.lower() in usable}
    scope, conditions, columns = FromColumns.of(holder, tables), [], set()
    for piece in pieces:
        found = _on_output(piece.text, scope, given)
        if found is None or not is_comparison(piece.node):
            return None
        conditions.append(found[0])
        columns |= found[1]
    bounds = _bounds(windows.values(), scope, given)
    return OutputWindows(tuple(conditions), frozenset(columns), _ends(windows.values(), scope, given), bounds)


def _ends(windows: Collection[Window], scope: FromColumns, given: Mapping[tuple[str, str], str]) -> str | None:
    said = [_on_output(w.valid_to, scope, given) if w.valid_to and not w.valid_from else None for w in windows]
    texts = [found[0] for found in said if found is not None]
    if len(texts) != len(windows):
        return None
    return texts[0] if len(texts) == 1 else f"least({', '.join(texts)})"


def _bounds(
    windows: Collection[Window], scope: FromColumns, given: Mapping[tuple[str, str], str]
) -> tuple[str, str] | None:
    sides = []
    for function, texts in (("greatest", [w.valid_from for w in windows]), ("least", [w.valid_to for w in windows])):
        said = [_on_output(text, scope, given) for text in texts if text]
        if None in said:
            return None
        found = [one[0] for one in said if one is not None]
        sides.append(
            f"{function}({', '.join(found)})" if len(found) > 1 else "".join(found) or "CAST(NULL AS TIMESTAMP)"
        )
    return sides[0], sides[1]


def _passed(node: Leaf | Node, holder: SelectNode, tables: Columns, groups: bool) -> dict[tuple[str, str], str] | None:
    """(alias, column) of the FROM items of `holder`, lower case → the output column of `node` that gives it as it is.
    None where a row of `holder` is not a row of `node`, or one of its partners in a join."""
    if not isinstance(node, SelectNode) or node.windowed or node.laterals:
        return None
    if node.aggregate and (not groups or node.tree.find(exp.GroupingSets, exp.Rollup, exp.Cube)):
        return None
    given = _given(node, FromColumns.of(node, tables), tables)
    if node is holder:
        return given
    for k, source in enumerate(node.sources):
        below = _passed(source.item, holder, tables, groups)
        if below is None:
            continue
        if not node.is_linear_in(k):
            return None
        up = {place: (source.alias.lower(), name.lower()) for place, name in below.items()}
        return {place: given[at] for place, at in up.items() if at in given}
    return None


def _given(node: SelectNode, scope: FromColumns, tables: Columns) -> dict[tuple[str, str], str]:
    """(alias, column), lower case → the output column that gives it as it is."""
    given: dict[tuple[str, str], str] = {}
    for name, by in listed(node, tables):
        if (place := scope.passed_on(by)) is not None:
            given.setdefault(place, name)
    return given


def _on_output(text: str, scope: FromColumns, given: Mapping[tuple[str, str], str]) -> tuple[str, set[str]] | None:
    """The condition on output columns, and these columns."""
    tree = read_condition(text)
    if tree is None:
        return None
    edits, names = [], set()
    for column in tree.find_all(exp.Column):
        place = scope.whole(column)
        name = given.get(place) if place is not None else None
        first, last = column.parts[0].meta.get("start"), column.parts[-1].meta.get("end")
        if name is None or first is None or last is None:
            return None
        edits.append(Edit(first - len(HEAD), last + 1 - len(HEAD), quoted(name)))
        names.add(name.lower())
    return apply_edits(text, edits), names
