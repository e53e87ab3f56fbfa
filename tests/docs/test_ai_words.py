"""Every word of the ai block is on the page about it, with its default where that is a number or a word."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from spark_mv.ai.settings import AiSettings

PAGE = Path(__file__).parents[2] / "docs" / "ai.md"


def test_every_setting_is_documented() -> None:
    text = PAGE.read_text()
    lacking = [
        f.name
        for f in fields(AiSettings)
        if f"`{f.name}`" not in text and f"`{f.name}:" not in text and f"    {f.name}:" not in text
    ]
    assert lacking == []
