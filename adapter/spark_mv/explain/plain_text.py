"""Other people's texts, made safe for a terminal."""

from __future__ import annotations

import re

_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """Without control characters other than line ends and tabs, and without marks that change the direction of writing:
    texts are other people's.

    >>> plain(chr(27) + "[31mred")
    '[31mred'
    """
    return _HIDDEN.sub("", text)
