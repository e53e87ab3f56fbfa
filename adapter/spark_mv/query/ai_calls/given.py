"""A SELECT with given values in place of AI answers and draws: what a unit test of a model compares with."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from spark_mv.query.ai_calls.blocks import Edit, TokenCall, edited, outermost
from spark_mv.query.ai_calls.groups import with_lists
from spark_mv.query.ai_calls.keys import convert_sql
from spark_mv.query.ai_calls.signatures import BUILT_IN, AiFunction, parse_call
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.nearest import did_you_mean
from spark_mv.query.syntax.source_text import Span
from spark_mv.query.syntax.source_text import string_literal as quote


@deep
def with_given(
    sql: str, answers: Mapping[str, Any], draws: Mapping[str, Any], functions: Sequence[AiFunction] = ()
) -> str:
    """The text with each call of an AI function and of each function in `draws` replaced.

    `answers`: function → the answer to each first argument, by its text, or one answer for all. `draws`: function → its value.
    Raises ValueError for an AI function without answers, and TextError (a ValueError) for a text that is not understood.

    >>> with_given("select floor(rand() * 10) as f", {}, {"rand": 0.25})
    'select floor(0.25D * 10) as f'
    """
    declared = {one.name.lower(): one for one in functions}
    answers = {name.lower(): given for name, given in answers.items()}
    values = {name.lower(): value for name, value in draws.items()}
    names = {*BUILT_IN, *declared}
    _refuse_strange(sql, {*answers, *values}, names)
    if not any(name in sql.lower() for name in {*names, *values}):
        return sql
    text, _ = with_lists(TokenText(sql))
    sql = text.sql
    edits: list[Edit] = []
    for call in sorted(text.calls({*names, *values}), key=lambda one: one.span.end - one.span.start):
        if call.name in values:
            edits.append((call.span, _literal(values[call.name])))
            continue
        if call.name not in answers:
            raise ValueError(
                f"{call.name} at line {call.line} has no answer in this unit test. Give it under `overrides: {{vars: {{ai_answers: "
                f"{{{call.name}: {{'the first argument': 'the answer'}}}}}}}}`"
            )
        edits.append((call.span, _answer(text, call, answers[call.name], edits, declared)))
    whole = Span(0, len(sql))
    return edited(sql, whole, outermost(edits, whole))


def _refuse_strange(sql: str, given: Collection[str], declared: Collection[str]) -> None:
    """Raises ValueError for a name that is no function's and is not called: misspelt, it would let the model draw."""
    unknown = [name for name in given if name not in declared and level_of(name) is None]
    strange = [name for name in unknown if not TokenText(sql).calls({name})]
    if strange:
        hint = did_you_mean(strange[0], [*declared, "rand", "randn", "uuid"])
        raise ValueError(
            f"this unit test gives values of {', '.join(strange)}, which the model does not call, and which is no function that is known{hint}. "
            "Correct the name under `draws` or `ai_answers`"
        )


def _answer(
    text: TokenText, call: TokenCall, given: Any, edits: Sequence[Edit], declared: Mapping[str, AiFunction]
) -> str:
    parsed = parse_call(text, call, declared, lambda name: "embed" in name.lower())
    asked = [span for _, span, _ in parsed.row]
    if not isinstance(given, Mapping) or not asked:
        return f"({convert_sql(_text(given), parsed.result_type)})"
    argument = f"cast({edited(text.sql, asked[0], outermost(edits, asked[0]))} as string)"
    cases = "".join(
        f" when {quote(str(key))} then {convert_sql(_text(answer), parsed.result_type)}"
        for key, answer in given.items()
    )
    none = f"raise_error(concat('ai_answers of this unit test has no answer of {call.name} to: ', {argument}))"
    return f"(case when {argument} is null then null else case {argument}{cases} else {none} end end)"


def _text(value: Any) -> str:
    if value is None:
        return "cast(null as string)"
    return quote(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value!r}D"
    return str(value) if isinstance(value, int) else quote(str(value))
