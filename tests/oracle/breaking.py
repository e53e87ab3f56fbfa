"""Ways to break a rule: each gets what stands in the engine and gives what stands there instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spark_mv.query.delta import distributive, restrict
from spark_mv.query.delta.anchors import Anchors
from spark_mv.query.syntax.select_tree import SelectNode, SetNode, selects


def always(value: Any) -> Callable[[Any], Any]:
    return lambda _: lambda *args, **kwargs: value


def edited(*pairs: tuple[str, str]) -> Callable[[Any], Any]:
    """The text that a function gives, with parts of it changed."""

    def make(function: Any) -> Any:
        def changed(*args: Any, **kwargs: Any) -> Any:
            text = function(*args, **kwargs)
            for old, new in pairs:
                text = re.sub(old, new, text) if isinstance(text, str) else text
            return text

        return changed

    return make


def forgiving(code: str, otherwise: Any) -> Callable[[Any], Any]:
    """Without the refusal of this code."""

    def make(function: Any) -> Any:
        def changed(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except restrict.NotIncremental as error:
                if error.code != code:
                    raise
                return otherwise(*args, **kwargs) if callable(otherwise) else otherwise

        return changed

    return make


def kinds(choose: Callable[[str, bool], tuple[str, bool]]) -> Callable[[Any], Any]:
    """Another kind of join: `choose` gets the kind and whether the change is inside the joined item, and gives both."""

    def make(function: Any) -> Any:
        def changed(self: Any, alias: str, item: Any, kind: str, on: Any, inside: bool, *more: Any) -> None:
            kind, inside = choose(kind, inside)
            function(self, alias, item, kind, on, inside, *more)

        return changed

    return make


def sure_anti_joins(function: Any) -> Any:
    """An anti-join takes rows away whatever is not known of its side."""

    def changed(self: Any, alias: str, item: Any, kind: str, on: Any, inside: bool, *more: Any) -> None:
        if kind == "LEFT ANTI":
            item, on, inside = replace(item, exact=True), replace(on, whole=True), False
        function(self, alias, item, kind, on, inside, *more)

    return changed


def sum_signs(function: Any) -> Any:
    def changed(*args: Any) -> Any:
        value = function(*args)
        return replace(value, summed=tuple(s.replace("ELSE -", "ELSE ") for s in value.summed))

    return changed


def value(**fields: str) -> Callable[[Any], Any]:
    return lambda function: lambda *args: replace(function(*args), **fields)


def extremes_stay(function: Any) -> Any:
    def changed(number: int, name: str, type_: str, part: Any, one_step: bool) -> Any:
        value = function(number, name, type_, part, one_step)
        return (
            replace(value, unsure="false")
            if part in (distributive.GroupPart.MIN, distributive.GroupPart.MAX)
            else value
        )

    return changed


def first_window(function: Any) -> Any:
    def changed(node: Any, scope: Any) -> Any:
        return function(replace_windows(node), scope)

    return changed


def any_window(function: Any) -> Any:
    """The partitions of all windows together."""

    def changed(node: Any, scope: Any) -> Any:
        found = [function(replace_windows(node, window), scope) for window in node.windows]
        return set().union(*(columns for columns, _ in found)), [e for _, more in found for e in more]

    return changed


def replace_windows(node: SelectNode, window: Any = None) -> SelectNode:
    return replace(node, windows=(window,) if window is not None else node.windows[:1])


def without_last(function: Any) -> Any:
    def changed(self: Any, node: Any, *path: Any) -> Any:
        found = list(function(self, node, *path))
        return iter(found[:-1] if len(found) > 1 else found)

    return changed


def no_subqueries(function: Any) -> Any:
    def changed(self: Any, node: Any, *path: Any) -> Any:
        inside = list(getattr(node, "subqueries", {}).values())
        hidden = {id(focus) for n in inside for focus, _ in function(self, n)}
        return iter([found for found in function(self, node, *path) if id(found[0]) not in hidden])

    return changed


def plain_equals(function: Any) -> Any:
    def changed(*args: Any, **kwargs: Any) -> Any:
        return [
            replace(s, args={**s.args, "anchors": [{**a, "test": "="} for a in s.args["anchors"]]})
            if s.kind == "stage_changes"
            else s
            for s in function(*args, **kwargs)
        ]

    return changed


def drawn_anew(function: Any) -> Any:
    """Steps that read no kept value back."""

    def changed(*args: Any, **kwargs: Any) -> Any:
        return [
            replace(s, args={**s.args, "columns": tuple(replace(c, fresh=True) for c in s.args["columns"])})
            if s.kind == "stage_changes"
            else s
            for s in function(*args, **kwargs)
        ]

    return changed


def unnetted(function: Any) -> Any:
    return lambda number, change, source: {**function(number, change, source), "append_only": True, "how": "feed"}


def kept_windows(function: Any) -> Any:
    def changed(self: Any, *args: Any) -> Any:
        before, self.anchors = self.anchors, Anchors(frozenset(), self.clock, False, self.types)
        try:
            return function(self, *args)
        finally:
            self.anchors = before

    return changed


def one_arm(function: Any) -> Any:
    def changed(self: Any, node: Any, focus: Any, *wanted: Any) -> Any:
        if isinstance(node, SelectNode):
            return function(self, node, focus, *wanted)
        return function(self, SetNode(node.arms[:1], node.all_, node.by_name), focus, *wanted)

    return changed


def without_deep(function: Any) -> Any:
    def changed(*args: Any) -> Any:
        tree = function(*args)
        for node in selects(tree.node):
            node.deep = ()
        return tree

    return changed


def without_having(node: Any) -> Any:
    if not isinstance(node, SelectNode):
        return node
    return replace(node, clauses=node.clauses - {"HAVING"})
