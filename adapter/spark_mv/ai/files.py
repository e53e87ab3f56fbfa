"""Images and documents of a request: how the canonical request has them, and how a chat message does.

A BINARY value is base64 in the request, a text is an address, `data:` or `https:`. What a file is, its first bytes tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ADDRESS = "url:"
_BEGINS = {
    "/9j/": "image/jpeg",
    "iVBORw0KGgo": "image/png",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi": "application/pdf",
}
"""The first bytes of a file, in base64."""
FILE_TOKENS = 1000
"""Of a file, as an estimate: endpoints count pixels and pages, not bytes."""


def part_of(file: str) -> dict[str, Any]:
    """The part of a message for a file of a canonical request.

    >>> part_of("url:https://example.com/a.png")
    {'type': 'image_url', 'image_url': {'url': 'https://example.com/a.png'}}
    >>> part_of("iVBORw0KGgoAAA")["image_url"]["url"]
    'data:image/png;base64,iVBORw0KGgoAAA'
    """
    if file.startswith(ADDRESS):
        return {"type": "image_url", "image_url": {"url": file[len(ADDRESS) :]}}
    file = "".join(file.split())  # Spark 3.5 breaks base64 into lines
    kind = next((kind for begin, kind in _BEGINS.items() if file.startswith(begin)), "application/octet-stream")
    url = f"data:{kind};base64,{file}"
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": "document.pdf" if kind.endswith("pdf") else "file", "file_data": url}}


def with_file(messages: list[dict[str, Any]], file: str) -> list[dict[str, Any]]:
    """The messages, the last of which has the file, too."""
    *before, last = messages
    content = last["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": str(content)}]
    return [*before, {**last, "content": [*parts, part_of(file)]}]


def without_files(row: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """A request's arguments without their file, and the tokens that it is taken for."""
    return {name: value for name, value in row.items() if name != "files"}, FILE_TOKENS * ("files" in row)


def text_of(content: Any) -> tuple[str, int]:
    """What a message says as text, and the tokens that its files are taken for. A part of an odd shape counts as text.

    >>> text_of([{"type": "text", "text": "a"}, {"type": "image_url"}, "b", {"type": "text"}])
    ("a\\nb\\n{'type': 'text'}", 1000)
    """
    if not isinstance(content, list):
        return str(content), 0
    files = [part for part in content if isinstance(part, Mapping) and part.get("type") != "text"]
    texts = [part.get("text", part) if isinstance(part, Mapping) else part for part in content if part not in files]
    return "\n".join(map(str, texts)), FILE_TOKENS * len(files)
