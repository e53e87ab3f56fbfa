"""The rooms of the house and the way down through them: who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[1] / "adapter" / "spark_mv"
QUERY = ("functions", "syntax", "solver", "analysis", "rewrite", "ai_calls", "delta")
"""Rooms of `query/`, each of which imports only those before it."""
LAYERS = ("query", "maintenance", "ai", "explain", "report", "spark", "cli")
SPARK = ("session", "serve", "formats", "run", "adapter", "doctor")
"""Rooms of `spark/`. What a run needs of the adapter is handed to it."""

IMPORT_ALL = """
import importlib, sys
for stranger in ("dbt", "pyspark", "agate"):
    sys.modules[stranger] = None  # importing it fails
for module in sys.argv[1:]:
    importlib.import_module(module)
"""


def modules(*rooms: str) -> list[Path]:
    return [file for room in rooms for file in sorted((ROOT / room).rglob("*.py"))]


def dotted(file: Path) -> str:
    parts = file.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each of our modules that a file imports, in functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.startswith("spark_mv."))


def upward(order: tuple[str, ...], under: Path) -> list[str]:
    """The imports that lead up, among the rooms `order` under a folder."""
    prefix = dotted(under / "__init__.py") + "."
    found = []
    for place, room in enumerate(order):
        files = [under / f"{room}.py"] if (under / f"{room}.py").exists() else sorted((under / room).rglob("*.py"))
        assert files, room
        for file in files:
            for line, name in imports(file):
                target = name.removeprefix(prefix).split(".")[0] if name.startswith(prefix) else ""
                if target in order and order.index(target) > place:
                    found.append(f"{file.relative_to(ROOT)}:{line} imports {name}")
    return found


def test_layers_import_downwards() -> None:
    assert upward(LAYERS, ROOT) == []


def test_rooms_of_the_query_import_downwards() -> None:
    assert upward(QUERY, ROOT / "query") == []


def test_rooms_of_spark_import_downwards() -> None:
    assert upward(SPARK, ROOT / "spark") == []


def test_every_room_has_a_place() -> None:
    folders = {path.name for path in (ROOT / "query").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(QUERY)


def test_no_module_imports_itself_on_the_way_round() -> None:
    """Imports for type checkers and in functions count: whoever reads one module of a circle has to read all of them."""
    files = {dotted(file): file for file in ROOT.rglob("*.py")}
    above = {
        module: {name if name in files else name.rpartition(".")[0] for _, name in imports(file)}
        for module, file in files.items()
    }
    done: set[str] = set()

    def follow(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " → ".join([*way[way.index(module) :], module])
        if module not in done:
            for other in sorted(above.get(module, ())):
                follow(other, (*way, module))
            done.add(module)

    for module in files:
        follow(module, ())


MOST_LINES = 400


def test_no_module_is_too_long_to_be_read() -> None:
    long = {
        str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in ROOT.rglob("*.py")
    }
    assert {name: lines for name, lines in long.items() if lines > MOST_LINES} == {}


def test_public_functions_say_what_they_do() -> None:
    bare = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in sorted(ROOT.rglob("*.py"))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert bare == []


def test_query_and_maintenance_know_neither_dbt_nor_spark() -> None:
    names = [dotted(file) for file in modules("query", "maintenance", "explain", "report")]
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
