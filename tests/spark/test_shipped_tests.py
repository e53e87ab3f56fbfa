"""The generic tests that come with the package: what is wrong with one of them stops that test, and no command that compiles it."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = sorted((Path(__file__).parents[2] / "macros" / "tests").glob("*.sql"))


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_compiling_one_never_stops_docs_generate(file: Path) -> None:
    assert "raise_compiler_error" not in file.read_text(encoding="utf-8")
