"""The AI functions that a project declares: `functions` of the profile's `ai` block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from spark_mv.ai.setting_types import is_text
from spark_mv.query.ai_calls.signatures import BUILT_IN, AiFunction
from spark_mv.query.syntax.nearest import did_you_mean
from spark_mv.query.syntax.parse import is_spark_type

WORDS = tuple(f.name for f in fields(AiFunction) if f.name != "name")
_TEXTS = ("returns", "model", "model_version")


def problem_of_functions(functions: Any) -> str | None:
    """What is wrong with the declared functions, None if nothing.

    >>> problem_of_functions({"tone": {"promt": "{content}"}})
    "functions.tone has an unknown word 'promt' (did you mean 'prompt'?)"
    >>> problem_of_functions({"tone": {"prompt": "{content}", "arguments": {"content": 1}}})
    "functions.tone.arguments must be a name or a list of names, not {'content': 1}"
    """
    if not isinstance(functions, Mapping):
        return "functions must map each function's name to its settings"
    return next((problem for name, block in functions.items() if (problem := _problem(name, block))), None)


def _problem(name: Any, block: Any) -> str | None:
    if str(name).lower() in BUILT_IN:
        return f"functions.{name} has the name of a built-in AI function"
    if not isinstance(block or {}, Mapping):
        return f"functions.{name} must be a mapping with a prompt, not {block!r}"
    values = block or {}
    for word in values:
        if word not in WORDS:
            return f"functions.{name} has an unknown word {word!r}{did_you_mean(word, WORDS)}"
    if not values.get("prompt") or not isinstance(values["prompt"], str):
        return f"functions.{name} needs a prompt that holds its arguments as {{name}}"
    for word in _TEXTS:
        if not is_text(values.get(word)):
            return f"functions.{name}.{word} must be a text, not {values[word]!r}"
    arguments = values.get("arguments") or ()
    listed = [arguments] if isinstance(arguments, str) else arguments
    if not isinstance(listed, list | tuple) or not all(isinstance(a, str) for a in listed):
        return f"functions.{name}.arguments must be a name or a list of names, not {arguments!r}"
    if len({*listed}) < len(listed):
        return f"functions.{name}.arguments names one twice: {', '.join(listed)}"
    if unread := [argument for argument in listed or ("content",) if f"{{{argument}}}" not in values["prompt"]]:
        return f"functions.{name}: its prompt does not hold {{{unread[0]}}}, so that no row's value would be asked about; write the argument there"
    if values.get("returns") and not is_spark_type(str(values["returns"])):
        return f"functions.{name}.returns is no Spark type: {values['returns']!r}"
    return None


def functions_of(functions: Mapping[str, Any]) -> tuple[AiFunction, ...]:
    """Those of a config in which nothing is wrong."""
    return tuple(_function(name, block) for name, block in functions.items())


def _function(name: Any, block: Mapping[str, Any]) -> AiFunction:
    arguments = block.get("arguments") or ()
    version = block.get("model_version")
    return AiFunction(
        name=str(name).lower(),
        returns=str(block.get("returns") or "STRING"),
        arguments=(arguments,) if isinstance(arguments, str) else tuple(arguments),
        prompt=str(block["prompt"]),
        model=None if block.get("model") is None else str(block["model"]),
        model_version=None if version is None else str(version),
    )
