"""How much a setting holds. YAML lets a few lines stand for billions of values (an alias of a list of aliases …): who prints or walks such a value
is busy for ever, so it is told before that."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import Repr
from typing import Any

MOST = 100_000
"""Values in one setting; more are meant by nobody."""
_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 2, 200, 200


def is_too_large(value: Any, most: int = MOST) -> bool:
    """Whether there are more than `most` values in it. Looks at no more than these.

    >>> nine = lambda inner: [inner] * 9
    >>> bomb = nine(nine(nine(nine(nine(nine(nine(nine("lol"))))))))
    >>> is_too_large(bomb), is_too_large({"a": [1, 2, {"b": 3}]}), is_too_large("x" * 1_000_000)
    (True, False, False)
    """
    waiting, seen = [value], 0
    while waiting:
        one = waiting.pop()
        seen += 1
        if seen + len(waiting) > most:
            return True
        if isinstance(one, Mapping):
            waiting.extend(one.values())
        elif isinstance(one, list | tuple | set):
            waiting.extend(one)
    return False


def short(value: Any) -> str:
    """The value as a message shows it, of whatever size it is.

    >>> short("a"), short([[["lol"]] * 100] * 100)[:40]
    ("'a'", '[[[...], [...], [...], [...], [...], [..')
    """
    return _SHORT.repr(value)
