"""The comments by which a call says which prompt files its text is from: written beside the text, read where the call is planned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.syntax.source_text import Span

PROMPT, EXAMPLES = "ai_prompt", "ai_examples"
_MARK = re.compile(rf"/\* ({PROMPT}|{EXAMPLES}) (\S+) (\S+) ([0-9a-f]+) \*/")


def mark(kind: str, name: str, version: str, digest: str) -> str:
    """The comment. Names and versions are without blanks.

    >>> mark(PROMPT, "triage", "3", "3fa9c1d2e5f0")
    '/* ai_prompt triage 3 3fa9c1d2e5f0 */'
    """
    return f"/* {kind} {name} {version or '-'} {digest} */"


def shown(kind: str, name: str, version: str, digest: str) -> str:
    """How provenance names a prompt file.

    >>> shown(PROMPT, "triage", "3", "3fa9c1d2e5f0"), shown(EXAMPLES, "cases", "", "77aa00112233")
    ('triage 3 (3fa9c1d2e5f0)', 'examples of cases (77aa00112233)')
    """
    named = f"examples of {name}" if kind == EXAMPLES else name
    return f"{named} {version} ({digest})" if version else f"{named} ({digest})"


def prompts_in(text: TokenText, span: Span, but: Sequence[Span] = ()) -> str:
    """The prompt files that the comments of a call name, '' where there are none. What stands in a string is no comment; what stands in the
    calls `but` inside is theirs."""
    first, end = text.token_range(span)
    inside = [one for one in but if one != span and span.holds(one)]
    gaps = [Span(a.end + 1, b.start) for a, b in pairwise(text.tokens[first:end]) if a.end < b.start]
    own = [gap for gap in gaps if not any(one.holds(gap) for one in inside)]
    found = (match for gap in own for match in _MARK.finditer(text.text(gap)))
    return ", ".join(dict.fromkeys(shown(m[1], m[2], "" if m[3] == "-" else m[3], m[4]) for m in found))
