"""The text of a model with another config: what `adopt` and `eject` print for the user to save."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

_CONFIG = re.compile(r"\{\{-?\s*config\s*\(")
_END = re.compile(r"\s*\)\s*-?\}\}[ \t]*\n?")
_PYTHON_CONFIG = re.compile(r"\bdbt\.config\s*\(")
_NAMED = re.compile(r"\s*(\w+)\s*=(?!=)\s*(.*)", re.DOTALL)


def with_config(
    raw_code: str,
    words: Mapping[str, Any],
    remarks: Sequence[str] = (),
    without: Collection[str] = (),
    python: bool = False,
) -> str:
    """The model's text with a config of these words and those of its own, as they are written, that neither `words` nor `without`
    names; below `remarks` as comments.

    >>> print(with_config("{{ config(materialized='table', tags=['a)'], freeze='b') }}\\nselect 1 as id", {"unique_key": "id"}, (), ["materialized", "freeze"]))
    {{ config(unique_key='id', tags=['a)']) }}
    <BLANKLINE>
    select 1 as id
    """
    own, bare = own_words(raw_code, python)
    remarks = [*remarks, *(f"To be carried over by hand, as words: {text}" for text in bare)]
    head = [f"{'#' if python else '--'} {line}" for remark in remarks for line in remark.splitlines()]
    said = [f"{word}={_literal(value)}" for word, value in words.items() if value not in (None, (), [])]
    left = [f"{word}={text}" for word, text in own.items() if word not in words and word not in without]
    written = ", ".join(said + left)
    if python:
        spans = list(_spans(raw_code, python))
        if not spans:
            return "\n".join([*head, f"# in model(), to begin with: dbt.config({written})", "", raw_code.strip("\n")])
        begin, _, close = spans[0]
        return "\n".join([*head, raw_code[:begin] + f"dbt.config({written}" + raw_code[close:].rstrip("\n")])
    body = without_config(raw_code).strip("\n")
    return "\n".join([*head, f"{{{{ config({written}) }}}}", "", body])


def own_words(raw_code: str, python: bool = False) -> tuple[dict[str, str], list[str]]:
    """The words of the model's own `config(…)` with their values as written, and what in it is no word (a dictionary).

    >>> own_words("{{ config({'alias': 'a'}, tags=['x', 'y=z'], pre_hook='call(1, 2)') }} select 1")
    ({'tags': "['x', 'y=z']", 'pre_hook': "'call(1, 2)'"}, ["{'alias': 'a'}"])
    """
    named, bare = {}, []
    for _, begin, close in _spans(raw_code, python):
        at = begin
        while at < close:
            end = min(_closing(raw_code, at, ",") or close, close)
            if text := raw_code[at:end].strip():
                if found := _NAMED.fullmatch(text):
                    named[found[1]] = found[2]
                else:
                    bare.append(text)
            at = end + 1
    return named, bare


def without_config(raw_code: str) -> str:
    """The text without its `{{ config(…) }}`; as it is where none is found, or none that can be read."""
    for begin, _, close in _spans(raw_code):
        end = _END.match(raw_code, close)
        if end is not None:
            return without_config(raw_code[:begin] + raw_code[end.end() :])
    return raw_code


def _spans(raw_code: str, python: bool = False) -> Iterator[tuple[int, int, int]]:
    """Of each call of config: where it begins, where its arguments begin, and where its parenthesis closes."""
    for found in (_PYTHON_CONFIG if python else _CONFIG).finditer(raw_code):
        close = _closing(raw_code, found.end())
        if close is not None:
            yield found.start(), found.end(), close


def _closing(text: str, start: int, also: str = "") -> int | None:
    """Where the parenthesis that is open at `start` closes, or the character `also` stands within it; None where neither does.
    Strings are skipped."""
    depth, quote, at = 1, "", start
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif depth == 1 and char == also:
            return at
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return None


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        values = [str(one) for one in value]
        return repr(values[0]) if len(values) == 1 and isinstance(value, tuple) else repr(values)
    return repr(value)
