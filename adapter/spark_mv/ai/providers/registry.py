"""Finds a provider's class by the word in the profile."""

from __future__ import annotations

import importlib
from typing import Any


def provider_class(name: str) -> Any:
    """The class for `openai`, `local`, `scripted` or a dotted class path. Raises AiConfigError."""
    from spark_mv.ai.settings import AiConfigError

    if name == "local":
        from spark_mv.ai.providers.local import LocalProvider

        return LocalProvider
    if name == "scripted":
        from spark_mv.ai.providers.scripted import ScriptedProvider

        return ScriptedProvider
    if name == "openai":
        from spark_mv.ai.providers.openai import OpenAIProvider

        return OpenAIProvider
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise AiConfigError(
            "AI_PROVIDER", f"provider {name!r} in the profile's ai block cannot be loaded: {error}"
        ) from error
    for method in ("answer", "batch_size"):
        if not callable(getattr(found, method, None)):
            raise AiConfigError(
                "AI_PROVIDER", f"provider {name!r} has no method {method}; see spark_mv.ai.protocol.Provider"
            )
    return found
