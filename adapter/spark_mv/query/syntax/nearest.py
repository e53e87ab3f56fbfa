"""Which word was meant: the one rule for words that are misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, words: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The word that is most like it, one with the same letters first; None where none is like it (`cutoff` as of difflib).

    >>> nearest("modle", ["mode", "model"]), nearest("concurency", ["concurrency"]), nearest("x", ["model"])
    ('model', 'concurrency', None)
    """
    known, asked = list(words), str(word).lower()
    for one in known:
        if sorted(one.lower()) == sorted(asked):
            return one
    found = difflib.get_close_matches(asked, {one.lower(): one for one in reversed(known)}, n=1, cutoff=cutoff)
    return next(one for one in known if one.lower() == found[0]) if found else None


def did_you_mean(word: str, words: Iterable[str], otherwise: str = "") -> str:
    """What to say behind a word that is not known.

    >>> did_you_mean("input", ["inputs"]), did_you_mean("x", ["inputs"], "; it has inputs")
    (" (did you mean 'inputs'?)", '; it has inputs')
    """
    found = nearest(word, words)
    return f" (did you mean {found!r}?)" if found else otherwise
