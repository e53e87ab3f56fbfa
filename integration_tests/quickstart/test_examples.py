"""What a user would copy is at least Python."""

from __future__ import annotations

import py_compile
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*/*.py")), ids=lambda path: path.name)
def test_compiles(file: Path, tmp_path: Path) -> None:
    py_compile.compile(str(file), cfile=str(tmp_path / "compiled.pyc"), doraise=True)
