"""The macros of the macro-only mode that are pure functions, called from Python."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2

ROOT = Path(__file__).parents[2] / "macros" / "macro_only"


class _Returned(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


def _return(value: Any) -> Any:
    raise _Returned(value)


def _fromjson(text: str, otherwise: Any = None) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return otherwise


class Stopped(Exception):
    """What a macro stops with."""


class _Exceptions:
    def raise_compiler_error(self, text: str) -> None:
        raise Stopped(text)


class _Package:
    """What a macro finds under the package's name: the other macros, which return values as dbt's do."""

    module: Any = None

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            try:
                return str(getattr(self.module, name)(*args))
            except _Returned as returned:
                return returned.value

        return call


def load(*texts: str, **world: Any) -> Any:
    """The macros of these texts, or of all files of the mode. `world`: what else there is."""
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    package = _Package()
    found: dict[str, Any] = {
        "return": _return,
        "context": {},
        "exceptions": _Exceptions(),
        "dbt": package,
        "fromjson": _fromjson,
        "tojson": json.dumps,
        "model": SimpleNamespace(name="m", unique_id="model.p.m"),
        "project_name": "p",
        "local_md5": lambda text: hashlib.md5(text.encode()).hexdigest(),
        **world,
    }
    environment.globals.update(found)
    files = [file.read_text(encoding="utf-8") for file in sorted(ROOT.glob("*.sql"))]
    package.module = environment.from_string("\n".join(texts or files)).module
    return package
