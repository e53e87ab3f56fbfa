"""The statement macros rendered by Jinja alone: what a run sends to Spark, without a dbt project around it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2

FOLDER = Path(__file__).parents[2] / "macros" / "statements"


class _Config:
    """A model without settings that the statements would ask for."""

    def get(self, key: str, default: Any = None, **_: Any) -> Any:
        return SimpleNamespace(enforced=False) if key == "contract" else default


@lru_cache(maxsize=1)
def _module() -> Any:
    class Adapter:
        def type(self) -> str:
            return "spark_mv"

        def quote(self, name: str) -> str:
            return "`" + name.replace("`", "``") + "`"

        def dispatch(self, name: str, package: str) -> Any:
            return lambda *args: getattr(module, f"default__{name}")(*args)

    class Package:
        """What a macro finds under the package's name: the other macros."""

        def __getattr__(self, name: str) -> Any:
            return getattr(module, name)

    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    environment.globals.update(
        {
            "adapter": Adapter(),
            "return": lambda value: value,
            "context": {},
            "dbt": Package(),
            "config": _Config(),
            "model": SimpleNamespace(unique_id="model.test"),
            "this": "none",
            "invocation_id": "test",
            "modules": SimpleNamespace(re=re),
            "partition_cols": lambda **_: "",
            "location_clause": str,
            "comment_clause": str,
        }
    )
    texts = [file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.sql")) if file.stem != "mv_statement"]
    module: Any = environment.from_string("\n".join(texts)).module
    return module


def statement(step: Any) -> str | None:
    """The SQL of one step, as `mv_statement` picks it."""
    return None if step.macro is None else str(getattr(_module(), f"default__{step.macro}")(step.args)).strip()
