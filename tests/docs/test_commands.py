"""Each command that the documentation shows outside of its fenced blocks is one: its words, its options, its arguments."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import metadata
from pathlib import Path

import click
import pytest
import yaml
from blocks import ROOT
from indented import commands

pytestmark = pytest.mark.unit

SHOWN = list(commands())


@cache
def operations() -> dict[str, set[str]]:
    """Macro → names of its arguments."""
    found = {}
    for file in (ROOT / "macros").rglob("*.sql"):
        for name, said in re.findall(r"\{%-? *macro (\w+)\(([^)]*)\)", file.read_text(encoding="utf-8")):
            found[name] = {one.split("=")[0].strip() for one in said.split(",") if one.strip()}
    return found


def of_dbt(words: list[str]) -> None:
    from dbt.cli.main import cli

    command = cli.commands[words[0]]
    with command.make_context(words[0], words[1:]) as context:
        variables = context.params.get("vars")
        assert variables is None or isinstance(variables, dict)
        if words[0] == "run-operation":
            given = context.params["args"] or {}
            given = yaml.safe_load(given) if isinstance(given, str) else given
            assert set(given) <= operations()[context.params["macro"]], words


def of_spark_mv(words: list[str]) -> None:
    from spark_mv.cli import main

    with click.Context(main) as context:
        command = main.get_command(context, words[0])
        assert command is not None, words
        command.make_context(words[0], words[1:])


def of_make(words: list[str]) -> None:
    assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M), words


def of_pip(words: list[str]) -> None:
    wanted = re.search(r"\[(.*)\]", words[-1])
    assert words[0] == "install" and wanted
    assert set(wanted[1].split(",")) <= set(metadata("dbt-spark-mv").get_all("Provides-Extra") or ()), words


@pytest.mark.parametrize(("page", "words"), SHOWN, ids=[f"{page}: {' '.join(words)[:60]}" for page, words in SHOWN])
def test_it_is_a_command(page: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "DBT_PROFILES_DIR", str(tmp_path)
    )  # dbt wants its folder to be there, and a new machine has none
    {"dbt": of_dbt, "spark-mv": of_spark_mv, "make": of_make, "pip": of_pip}[words[0]](words[1:])


def test_commands_are_found() -> None:
    """Those of several lines, too."""
    assert len(SHOWN) > 50 and sum("run-operation" in words for _, words in SHOWN) > 10
    assert any("\n" in word for _, words in SHOWN for word in words)
