"""Types of a query's columns, as far as they follow from those of its tables: what is no plain column, cast or text has none here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from spark_mv.query.delta.names import Columns, FromColumns, Place, aliases, listed, output
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.solver.predicate import PredicateText
from spark_mv.query.solver.types import type_of
from spark_mv.query.syntax.parser import Call
from spark_mv.query.syntax.select_tree import Leaf, Node, NotIncremental, OutItem, SelectNode, SetNode, reads, selects

FLOATING = frozenset({"double", "float"})
"""Types of which 0.0 and -0.0 are equal, and not the same value."""


def is_floating(type_: str) -> bool:
    """Whether it is one of them, or has one in it.

    >>> is_floating("array<double>"), is_floating("struct<floats: int>")
    (True, False)
    """
    return re.search(r"\b(double|float)\b(?! *:)", type_, re.IGNORECASE) is not None


_DOUBLES = frozenset(
    [
        "avg", "mean", "try_avg", "sqrt", "cbrt", "exp", "ln", "log", "log10", "log2", "power", "pow", "sin", "cos", "tan", "asin", "acos", "atan",
        "atan2", "sinh", "cosh", "tanh", "degrees", "radians", "months_between", "percentile", "percentile_approx", "percentile_cont", "median",
        "stddev", "stddev_pop", "stddev_samp", "std", "variance", "var_pop", "var_samp", "corr", "covar_pop", "covar_samp", "skewness", "kurtosis",
        "regr_slope", "regr_intercept", "regr_r2", "regr_avgx", "regr_avgy", "try_divide", "double", "float", "to_number", "rand", "randn",
        "percent_rank", "cume_dist", "rint", "hypot", "expm1", "log1p", "cot", "sec", "csc", "from_json", "from_csv", "variant_get",
    ]
)  # fmt: skip
"""Functions that may give one of what is none."""


def _is_double(node: exp.Expr) -> bool:
    """Whether a node is a cast to one of them, or a call that may give one."""
    call = node.meta.get("call")
    if isinstance(node, exp.Cast):
        return is_floating(node.to.sql("spark"))
    return isinstance(call, Call) and (call.name in _DOUBLES or level_of(call.name) is None)


@dataclass(frozen=True)
class ColumnTypes:
    """`of_table`: a table's columns with their types, all in lower case, by its name. `scope`: the FROM items of a SELECT."""

    of_table: Callable[[str], Mapping[str, str]]
    tables: Columns
    scope: Callable[[SelectNode], FromColumns]
    _known: dict[tuple[int, str], str | None] = field(default_factory=dict)  # by the id of a node, which outlives this
    _two: dict[tuple[int, str], bool] = field(default_factory=dict)
    _dividing: dict[int, bool] = field(default_factory=dict)
    _guessed: dict[tuple[int, str], str | None] = field(default_factory=dict)

    def of(self, node: Leaf | Node, column: str) -> str | None:
        """The type of an output column (lower case); None where it is not known."""
        if (id(node), column) not in self._known:
            self._known[id(node), column] = self._of(node, column)
        return self._known[id(node), column]

    def _of(self, node: Leaf | Node, column: str) -> str | None:
        if isinstance(node, Leaf):
            return self.of_table(node.name.lower()).get(column)
        if isinstance(node, SetNode):
            names = [name.lower() for name in output(node, self.tables)]
            return self._in_arms(node, names.index(column)) if names.count(column) == 1 else None
        found = [by for name, by in listed(node, self.tables) if name.lower() == column]
        if len(found) != 1:
            return None
        given = found[0]
        return self._of_expression(given.node, node) if isinstance(given, OutItem) else self.of_place(given, node)

    def alike(self, node: SetNode) -> bool:
        """Whether all arms give columns of the same types, so that each has by itself those that it has among the others."""
        return all(self._in_arms(node, k) is not None for k in range(len(output(node, self.tables))))

    def may_float(self, place: Place, node: SelectNode) -> bool:
        """Whether a column of FROM is, or has in it, floating-point numbers; also where its type is not known."""
        item = self._item(place, node)
        return item is None or self._floats(item, place[1])

    def may_stand_for_two(self, place: Place, node: SelectNode) -> bool:
        """Whether a value of a column of FROM may be one of two that are equal, and not the same, with the other one left out or counted with
        it: 0.0 and -0.0 of one group, of one partition, of rows of which a set operation keeps one."""
        item = self._item(place, node)
        return item is None or self._of_two(item, place[1])

    def _of_two(self, item: Leaf | Node, column: str) -> bool:
        if isinstance(item, Leaf):
            return False
        if (id(item), column) not in self._two:
            self._two[id(item), column] = self._made_of_two(item, column)
        return self._two[id(item), column]

    def _made_of_two(self, item: Node, column: str) -> bool:
        if isinstance(item, SetNode):
            arms = self._by_arm(item, column)
            return (not item.all_ and self._floats(item, column)) or any(self._of_two(arm, own) for arm, own in arms)
        one_of_several = item.aggregate or item.distinct or item.windowed
        return (one_of_several and self._floats(item, column)) or any(
            self.may_stand_for_two(place, item) for place in self._read_by(item, column)
        )

    def _floats(self, item: Leaf | Node, column: str) -> bool:
        if isinstance(item, SetNode):
            return any(self._floats(arm, own) for arm, own in self._by_arm(item, column))
        guess = self._guess(item, column)
        if guess is not None:
            return is_floating(guess)
        if isinstance(item, Leaf) or any(
            is_floating(kind) for name in reads(item) for kind in self.of_table(name).values()
        ):
            return True
        return any(self._divides(node) for node in selects(item))

    def _divides(self, node: SelectNode) -> bool:
        """Whether numbers that are none may give one: `/` does of whole ones, as functions do that say so."""
        if id(node) not in self._dividing:
            self._dividing[id(node)] = any(isinstance(part, exp.Div) or _is_double(part) for part in node.tree.walk())
        return self._dividing[id(node)]

    def _by_arm(self, node: SetNode, column: str) -> list[tuple[Leaf | Node, str]]:
        """The arms with their own names of an output column, all that it may be."""
        names = [name.lower() for name in output(node, self.tables)]
        columns = [[name.lower() for name in output(arm, self.tables)] for arm in node.arms]
        if node.by_name:
            return [(arm, column) for arm, own in zip(node.arms, columns, strict=True) if column in own]
        places = [k for k, name in enumerate(names) if name == column]
        return [(arm, own[k]) for arm, own in zip(node.arms, columns, strict=True) for k in places]

    def _read_by(self, node: SelectNode, column: str) -> set[Place]:
        """The columns of FROM that an output column is made of, of all that are called so."""
        found = [by for name, by in listed(node, self.tables) if name.lower() == column]
        places = [self.scope(node).references(by.node)[0] if isinstance(by, OutItem) else {by} for by in found]
        return {place for some in places for place in some}

    def _guess(self, item: Leaf | Node, column: str) -> str | None:
        """The type as `of` has it, else what sqlglot makes of the expression: enough to tell what is no floating-point number."""
        if (known := self.of(item, column)) is not None or not isinstance(item, SelectNode):
            return known
        if (id(item), column) not in self._guessed:
            found = [by for name, by in listed(item, self.tables) if name.lower() == column]
            alone = found[0] if len(found) == 1 else None
            if isinstance(alone, OutItem):
                guess = self._annotated(alone.node, item)
            else:
                below = self._item(alone, item) if alone else None
                guess = self._guess(below, alone[1]) if alone and below is not None else None
            self._guessed[id(item), column] = guess
        return self._guessed[id(item), column]

    def _annotated(self, tree: exp.Expr, node: SelectNode) -> str | None:
        scope = self.scope(node)
        typed = copy = tree.copy()
        for part, twin in list(zip(tree.walk(), copy.walk(), strict=True)):
            place = scope.whole(part) if isinstance(part, exp.Column) else None
            item = self._item(place, node) if place else None
            guess = self._guess(item, place[1]) if place and item is not None else None
            if (
                isinstance(part, exp.Literal)
                and not part.is_string
                and not part.is_int
                and "e" not in part.name.lower()
            ):
                guess = "decimal(38, 18)"
            if guess is not None:
                value = exp.cast(exp.Null(), guess, dialect="spark")
                typed = value if twin is copy else typed
                twin.replace(value)
        read = PredicateText(typed.sql("spark")).tree
        own = type_of(read, {}) if read is not None else None
        if own is not None and own != "double":  # there, that is a whole number divided
            return own
        found = annotate_types(typed, dialect="spark").type
        return None if found is None or found.is_type(exp.DType.UNKNOWN, exp.DType.NULL) else found.sql("spark").lower()

    def check_using(self, node: SelectNode, scope: FromColumns) -> None:
        """Raises where what RIGHT JOIN USING shows, the right side's column, may be of another type than the left side's: once partners are
        all that is looked for, it is the left side's."""
        for alias, source in zip(aliases(node), node.sources, strict=True):
            for column in map(str.lower, source.using if source.kind == "RIGHT" else ()):
                left = self.of_place((scope.compared[alias.lower(), column], column), node)
                if left is None or left != self.of(source.item, column):
                    raise NotIncremental("JOIN_KIND", f"RIGHT JOIN USING ({column}): its two sides may be of two types")

    def _in_arms(self, node: SetNode, position: int) -> str | None:
        found = {self.of(arm, output(arm, self.tables)[position].lower()) for arm in node.arms}
        return found.pop() if len(found) == 1 else None

    def of_place(self, place: Place, node: SelectNode) -> str | None:
        """The type of a column of FROM; None where it is not known."""
        item = self._item(place, node)
        return self.of(item, place[1]) if item is not None else None

    def _item(self, place: Place, node: SelectNode) -> Leaf | Node | None:
        sources = dict(zip((alias.lower() for alias in aliases(node)), node.sources, strict=True))
        return sources[place[0]].item if place[0] in sources else None

    def _of_expression(self, tree: exp.Expr, node: SelectNode) -> str | None:
        tree = tree.unnest()
        if isinstance(tree, exp.Cast):
            return tree.to.sql("spark").lower()
        if isinstance(tree, exp.Literal):
            return "string" if tree.is_string else None
        place = self.scope(node).whole(tree)
        return self.of_place(place, node) if place is not None else None
