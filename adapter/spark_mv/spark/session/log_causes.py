"""What a log says went wrong: its messages, without the stacks between which they stand."""

from __future__ import annotations

import re

_FRAME = re.compile(
    r"\s*(at\s+[\w.$<>/]+\(.*|at\s+[\w.$<>/]+$|\.\.\. \d+ (more|common frames omitted)|File \".*\", line \d+.*)"
)
_TELLS = re.compile(r"\bERROR\b|(Exception|Error)\b(:|$)|could not|cannot", re.IGNORECASE)
_TELLS_NEXT = "Error occurred during initialization of VM"
"""What Java says before it says why."""
MOST = 6


def causes(log: str, most: int = MOST) -> str:
    """The last lines, up to `most`, that name an error, each once; where none does, the last lines that are no frames of a stack.

    >>> causes("INFO started\\njava.net.BindException: Address in use\\n\\tat sun.nio.Net.bind(Net.java:555)\\n\\t... 3 more")
    'java.net.BindException: Address in use'
    >>> causes("Error occurred during initialization of VM\\nMultiple garbage collectors selected\\nINFO")
    'Error occurred during initialization of VM\\nMultiple garbage collectors selected'
    >>> causes("INFO started\\nINFO ended")
    'INFO started\\nINFO ended'
    """
    lines = [line.strip() for line in log.splitlines() if line.strip() and not _FRAME.fullmatch(line)]
    before = ["", *lines]
    telling = [
        line for last, line in zip(before, lines, strict=False) if _TELLS.search(line) or last == _TELLS_NEXT
    ] or lines
    last: dict[str, None] = {}
    for line in reversed(telling):
        last.setdefault(line)
    return "\n".join(reversed(list(last)[:most]))
