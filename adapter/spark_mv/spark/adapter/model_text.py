"""The text of a model with another config: what `adopt` and `eject` print for the user to save."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_CONFIG = re.compile(r"\{\{-?\s*config\s*\(")
_END = re.compile(r"\s*\)\s*-?\}\}[ \t]*\n?")


def with_config(raw_code: str, words: Mapping[str, Any], remarks: Sequence[str] = ()) -> str:
    """The model's text with a config of these words alone instead of its own, below `remarks` as comments.

    >>> print(with_config("{{ config(materialized='table', tags=['a)']) }}\\nselect 1 as id", {"unique_key": "id"}))
    {{ config(unique_key='id') }}
    <BLANKLINE>
    select 1 as id
    """
    head = [f"-- {line}" for remark in remarks for line in remark.splitlines()]
    written = ", ".join(f"{word}={_literal(value)}" for word, value in words.items() if value not in (None, (), []))
    body = without_config(raw_code).strip("\n")
    return "\n".join([*head, f"{{{{ config({written}) }}}}", "", body])


def without_config(raw_code: str) -> str:
    """The text without its `{{ config(…) }}`; as it is where none is found, or none that can be read."""
    found = _CONFIG.search(raw_code)
    if found is None:
        return raw_code
    close = _closing(raw_code, found.end())
    end = _END.match(raw_code, close) if close is not None else None
    if end is None:
        return raw_code
    return without_config(raw_code[: found.start()] + raw_code[end.end() :])


def _closing(text: str, start: int) -> int | None:
    """Where the parenthesis that is open at `start` closes; None where it does not. Strings are skipped."""
    depth, quote, at = 1, "", start
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
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
