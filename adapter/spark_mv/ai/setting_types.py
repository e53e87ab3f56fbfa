"""Values of the `ai` block that YAML gives in another type than is meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_text(value: Any) -> bool:
    """Whether YAML's value can stand for a text: 4 and 2024-08-06 can, yes and a list cannot.

    >>> [is_text(value) for value in ("gpt", 4, True, ["gpt"], {})]
    [True, True, False, False, False]
    """
    return not isinstance(value, bool | Mapping | list | tuple | set)


def problem_of_keep_requests(value: Any) -> str | None:
    """What is wrong with `keep_requests`: whatever else were said would mean false, in silence."""
    return None if str(value).lower() in ("true", "false") else f"keep_requests must be true or false, not {value!r}"


def problem_of_models(value: Any) -> str | None:
    """What is wrong with `embedding_models`."""
    listed = isinstance(value, list | tuple) and all(isinstance(model, str) for model in value)
    return (
        None
        if listed or isinstance(value, str)
        else f"embedding_models must be a model's name or a list of them, not {value!r}"
    )


def problem_of_versions(versions: Mapping[Any, Any]) -> str | None:
    """What is wrong with `versions`, of models by name."""
    wrong = next((model for model, version in versions.items() if version is None or not is_text(version)), None)
    return None if wrong is None else f"versions.{wrong} must be a text, not {versions[wrong]!r}"
