"""Commands of the documentation that stand in indented blocks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from blocks import FENCE, PAGES, ROOT

LINE = re.compile(r"(?:^|(?<=\n))\n(?P<block>(?:    .*\n)(?:(?:    .*)?\n)*)", re.M)
PROGRAM = re.compile(r"(dbt|spark-mv|make|pip) ")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Page and words of each command of dbt, spark-mv, make or pip in a block that is indented by four spaces."""
    for page in PAGES:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        for block in LINE.finditer(text):
            for line in _whole(block["block"]):
                for one in line.removeprefix("$ ").split(" && "):
                    if PROGRAM.match(one):
                        yield page.relative_to(ROOT).as_posix(), shlex.split(one, comments=True)


def _whole(block: str) -> Iterator[str]:
    """Its lines; a quotation over several lines is one."""
    said = ""
    for line in block.splitlines():
        said = f"{said}\n{line}" if said else line.strip()
        try:
            shlex.split(said, comments=True)
        except ValueError:
            if PROGRAM.match(said.removeprefix("$ ")):
                continue
        yield said
        said = ""
    if said:
        yield said
