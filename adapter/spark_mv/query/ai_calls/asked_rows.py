"""Which row asks what: the model's SELECT with a mark of its request in the place of each AI answer.

For a table that holds answers already. A mark is handed on as the answer is: through CTEs, set operations, branches of CASE. So where a row
shows a mark, the table's value in this column is the answer to that request. Calls whose answers go into something else (`upper(…)`,
`max(…)`, a comparison) are left to be looked up, because of those nobody can tell what the answer was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from spark_mv.query.ai_calls.ai_plan import Planner, declared_functions
from spark_mv.query.ai_calls.blocks import TextError, TokenItem
from spark_mv.query.ai_calls.desugar import desugar
from spark_mv.query.ai_calls.groups import with_lists
from spark_mv.query.ai_calls.keys import (
    AiIdentity,
    LookUp,
    arguments_hash_sql,
    identity_hash,
    identity_text,
    key_sql,
    request_sql,
)
from spark_mv.query.ai_calls.signatures import BUILT_IN, AiFunction, ParsedCall, SignatureError, parse_call
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.syntax.condition import read_expression
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.source_text import Span
from spark_mv.query.syntax.source_text import string_literal as quote

MARK = "^mvAI:([0-9]+):([0-9a-f]{64}):([0-9a-f]{64})\\.$"
"""A mark: number of the call, result key, hash of the arguments. Neither upper() nor lower() leaves one as it was."""


@dataclass(frozen=True)
class MarkedCall:
    """What a mark's number stands for. `columns`: the columns that its arguments name, in lower case."""

    function: str
    answer_type: str
    model: str
    model_version: str
    identity_hash: str
    columns: frozenset[str] = frozenset()


@deep
def with_requests(
    sql: str,
    *,
    results_table: str,
    identity: Mapping[str, Any] | AiIdentity,
    functions: Sequence[AiFunction] | Mapping[str, Any] | None = None,
) -> tuple[str, tuple[MarkedCall, ...]]:
    """The SELECT with marks, and the calls that they number. Without a call that can be marked, the tuple is empty."""
    declared, who = declared_functions(functions), AiIdentity.of(identity)
    names = {*BUILT_IN, *declared}
    try:
        text, refused = desugar(with_lists(TokenText(sql))[0], names)
        parsed = [parse_call(text, call, declared, who.is_embedding) for call in text.calls(names)]
        if refused or not parsed:
            return sql, ()
        marking = _Marking(text, parsed, results_table, who)
        plan = marking.plan()
    except (TextError, SignatureError):  # a run says what is wrong with it
        return sql, ()
    return (sql, ()) if plan.errors else (plan.sql, tuple(marking.marked))


@dataclass(frozen=True)
class _Mark(LookUp):
    """A text in the place of an answer."""

    relation: str = ""
    key: str = ""

    def scalar(self) -> str:
        return f"SELECT {self.answer} AS __mv_a"

    def joined(self, name: str) -> str:
        return f"JOIN LATERAL (SELECT NULL AS {name}k, {self.answer} AS {name}) AS {name}_"


class _Marking(Planner):
    """Plans the calls as a run does, but what is looked up for some of them is their own request."""

    def __init__(self, text: TokenText, parsed: list[ParsedCall], results_table: str, identity: AiIdentity) -> None:
        super().__init__(text, parsed, results_table, identity)
        self.marked: list[MarkedCall] = []
        self._handed_on = {id(p) for p in parsed if p.fail_on_error and self._is_handed_on(p)}

    def _lookup(self, parsed: ParsedCall, render: Callable[[Span], str]) -> LookUp:
        if id(parsed) not in self._handed_on:
            return super()._lookup(parsed, render)
        request, who = request_sql(parsed, render), identity_text(parsed, self.identity)
        model, version = self.identity.model_of(parsed)
        names = {name for _, span, _ in parsed.row for name in _names(self.text.text(span))}
        self.marked.append(
            MarkedCall(parsed.function, parsed.answer_type, model, version, identity_hash(who), frozenset(names))
        )
        salt = self.identity.salt
        number = quote(f"mvAI:{len(self.marked) - 1}:")
        return _Mark(f"concat({number}, {key_sql(request, who, salt)}, ':', {arguments_hash_sql(request, salt)}, '.')")

    def _is_handed_on(self, parsed: ParsedCall) -> bool:
        block = self.places.block.get(id(parsed))
        item = next((i for i in block.items if i.span.holds(parsed.call.span)), None) if block else None
        if block is None or item is None or self._inside_another(parsed) or not self._is_value(parsed, item):
            return False
        name = item.name.lower()
        return not any(
            name and name in _columns(other.tree)
            for one in self.text.blocks
            for other in one.items
            if other is not item and not isinstance(other.tree, exp.Star | exp.Column)
        )

    def _inside_another(self, parsed: ParsedCall) -> bool:
        return any(p is not parsed and p.call.span.holds(parsed.call.span) for p in self.calls)

    def _is_value(self, parsed: ParsedCall, item: TokenItem) -> bool:
        """Whether the item is the call, or a CASE that has it in a branch and no other call anywhere."""
        if item.expression == parsed.call.span:
            return True
        if len(self.places.inside([item.span])) > 1:
            return False
        written = self.text.text(item.expression)
        start = parsed.call.span.start - item.expression.start
        end = parsed.call.span.end - item.expression.start
        tree = read_expression(f"{written[:start]}`__mv_call`{written[end:]}")
        values = []
        if isinstance(tree, exp.Case):
            values = [*(branch.args.get("true") for branch in tree.args["ifs"]), tree.args.get("default")]
        return any(isinstance(value, exp.Column) and value.name == "__mv_call" for value in values)


def _names(text: str) -> set[str]:
    """The names of columns in an expression, in lower case; of one that is not understood all its words."""
    tree = read_expression(text)
    return _columns(tree) if tree is not None else {word.lower() for word in re.findall(r"\w+", text)}


def _columns(tree: exp.Expr) -> set[str]:
    return {column.name.lower() for column in tree.find_all(exp.Column)}
