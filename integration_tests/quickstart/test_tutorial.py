"""The tutorial, as somebody does it who copies each file and types each command: what is printed is what the page says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blocks import ROOT, blocks
from dbt.cli.main import dbtRunner

TUTORIAL = ROOT / "docs" / "tutorial.md"
RESULTS = ("LogModelResult", "LogSeedResult", "ShowNode")


@pytest.fixture
def folder(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project of the page in a folder of its own; its schema is dropped before and afterwards."""
    for block in blocks(pages=(TUTORIAL,)):
        if block.title:
            (tmp_path / block.title).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    spark.sql("drop schema if exists analytics cascade")
    yield tmp_path
    spark.sql("drop schema if exists analytics cascade")


def typed(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """The commands of a console block, each with the lines that follow it."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, *lines = part.rstrip().splitlines()
        yield shlex.split(command), lines


def comparable(lines: list[str]) -> list[str]:
    """Without what differs from run to run: seconds, what was drawn, and how wide the terminal is."""
    text = "\n".join(line.strip() for line in lines if line.strip())
    text = re.sub(r"in [\d.]+s\]", "in …s]", text)
    text = re.sub(r" \.{3,} ", " ... ", text)
    return re.sub(r"\| (train|test ) \|", "| drawn |", text).splitlines()


def test_the_tutorial(folder: Path) -> None:
    heard: list[str] = []
    asked, splits = 0, []

    def hear(event: Any) -> None:
        if event.info.name in RESULTS:
            heard.extend(event.info.msg.splitlines())

    for block in blocks("console", pages=(TUTORIAL,)):
        for (program, *words), wanted in typed(block.text):
            assert program == "dbt", block
            heard.clear()
            folders = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
            result = dbtRunner(callbacks=[hear]).invoke([*words, *folders, "--no-use-colors"])
            assert result.success, (words, result.exception)
            asked += 1
            if wanted:
                assert comparable([line for line in heard if "START" not in line]) == comparable(wanted), str(block)
            if words[0] == "show":
                splits.append(dict(re.findall(r"^\| +(\d+) \|.*\| (\w+) *\|$", "\n".join(heard), re.M)))

    assert asked == 7
    first, second = splits
    assert len(first) == 4 and second == {ticket: first[ticket] for ticket in ("2", "3", "4")}
