"""The code blocks of the documentation, for the tests that read, parse and run them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(
    r'^(?P<indent> *)(?:<!-- check: (?P<check>[^>]+) -->\n *)?```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^ *```$',
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, its language, the file it is (`title`), what is to be checked of it (`check`)."""

    page: str
    line: int
    language: str
    title: str
    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(language: str = "", pages: tuple[Path, ...] = PAGES) -> Iterator[Block]:
    """The blocks of a language, of all of them if it is empty, in the order of pages."""
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if not language or match["language"] == language:
                line = text.count("\n", 0, match.start()) + 1
                name = page.relative_to(ROOT).as_posix()
                yield Block(
                    name, line, match["language"], match["title"] or "", (match["check"] or "").strip(), match["text"]
                )


def rendered(model: str) -> tuple[dict[str, Any], str]:
    """A model's config and its SQL, with `ref` and `source` put in as names. `is_incremental()` is false, as in the materialization."""
    config: dict[str, Any] = {}

    def configure(**words: Any) -> str:
        config.update(words)
        return ""

    names = {
        "config": configure,
        "ref": lambda name: name,
        "source": lambda schema, name: f"{schema}.{name}",
        "is_incremental": lambda: False,
    }
    sql = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(model).render(**names)
    return config, sql
