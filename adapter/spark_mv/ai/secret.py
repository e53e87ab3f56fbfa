"""A text that must not be seen."""

from __future__ import annotations

import re

NAMED_SECRET = re.compile(
    r"passw(or)?d|passphrase|pass$|token(?=$|\.)|secret|api[._-]?key|access[._-]?key|account[._-]?key|private[._-]?key|credential",
    re.IGNORECASE,
)
"""Names of what is secret, in a profile, a provider's options and Spark's settings (wider than `spark.redaction.regex`)."""


class Secret:
    """A text that no repr, str, format or log shows."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)
