"""What the site shows that is not written in docs/: the README as its first page, pages from the root, and what the code says of itself.

mkdocs calls these functions. A page asks for something by a comment: `<!-- generated: codes -->`, `<!-- include: examples/… -->`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import codes  # noqa: E402 (mkdocs loads this file by its path, beside nothing)
import settings  # noqa: E402

FROM_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository's root that are pages of the site."""
GENERATED = re.compile(r"^<!-- generated: (.+?) -->$", re.M)
INCLUDE = re.compile(r"^<!-- include: (.+?) -->$", re.M)
IMAGE = re.compile(r'<img alt="([^"]*)" src="(?:\.\./)*assets/([\w-]+\.svg)" ?/?>')


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that stand in the repository's root."""
    for name, page in FROM_ROOT.items():
        text = relative_to_docs((ROOT / name).read_text(encoding="utf-8"))
        if name == "README.md":
            text = re.sub(r"\A# .*\n", "---\ntitle: Home\n---\n\n# dbt-spark-mv\n", text)
        files.append(File.generated(config, page, content=text))
    return files


def relative_to_docs(text: str) -> str:
    """Links of a file in the root as a page in docs/ writes them. What is no page (an example) is shown by its path."""
    text = re.sub(r"\]\(docs/", "](", text)
    for name, page in FROM_ROOT.items():
        text = text.replace(f"]({name})", f"]({page})")
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#|[\w/-]+\.(?:md|svg))([\w./-]+)\)", r"\1 (`\2`)", text)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Puts what is generated or included in place of its comment."""
    made: dict[str, Callable[[], str]] = {
        "codes": codes.page, "command line": _command_line, "protocol": _protocol, "settings": settings.page,
    }  # fmt: skip
    for name, of_root in FROM_ROOT.items():  # the root's files are beside the folders of docs/
        markdown = markdown.replace(f"../{name})", f"{of_root})")
    markdown = GENERATED.sub(lambda match: made[match[1]](), markdown)
    return INCLUDE.sub(lambda match: _fenced(ROOT / match[1]), markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Draws pictures into the page, so that they follow its colours."""
    return IMAGE.sub(lambda match: f'<span class="picture">{_inline(match[2])}</span>', html)


def _inline(name: str) -> str:
    svg = (ROOT / "docs" / "assets" / name).read_text(encoding="utf-8")
    # several pictures of one page must not share the name of their arrow's tip
    return svg.replace("tip", f"tip-{name.removesuffix('.svg')}").replace("\n\n", "\n")


def _fenced(file: Path) -> str:
    return f'```python title="{file.relative_to(ROOT).as_posix()}"\n{file.read_text(encoding="utf-8").rstrip()}\n```'


def _command_line() -> str:
    """Each command of `spark-mv` with its own help."""
    import click

    from spark_mv.cli import main

    parts = []
    with click.Context(main, info_name="spark-mv") as context:
        for name in main.list_commands(context):
            command = main.get_command(context, name)
            assert command is not None
            with click.Context(command, info_name=f"spark-mv {name}", max_content_width=100) as own:
                parts.append(f"### `spark-mv {name}`\n\n```text\n{command.get_help(own)}\n```")
    return "\n\n".join(parts)


def _protocol() -> str:
    """The classes of the provider protocol with their docstrings and fields, as they stand in the code."""
    file = ROOT / "adapter" / "spark_mv" / "ai" / "protocol.py"
    text = file.read_text(encoding="utf-8")
    parts = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            lines = text.splitlines()[
                node.decorator_list[0].lineno - 1 if node.decorator_list else node.lineno - 1 : node.end_lineno
            ]
            parts.append(f"## {node.name}\n\n```python\n" + "\n".join(lines) + "\n```")
    return "\n\n".join(parts)
