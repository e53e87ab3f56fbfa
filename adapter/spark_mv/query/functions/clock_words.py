"""Words that Spark reads as the clock where they are cast to a date or timestamp: 'now', 'today', 'yesterday', 'tomorrow'.

The rule is `convertSpecialDate` and its sisters in Spark's SparkDateTimeUtils. A pin is named after the function it stands
for, or after type and word: `date 'today'`.
"""

from __future__ import annotations

from spark_mv.query.functions.catalogue import level_of
from spark_mv.query.functions.level import Level

CLOCK_WORDS = {"now": 0, "today": 0, "yesterday": -1, "tomorrow": 1}
"""The word → by how many days its date is not today's."""

CASTING_CALLS = {
    "date": "date", "to_date": "date", "timestamp": "timestamp", "to_timestamp": "timestamp",
    "to_timestamp_ltz": "timestamp", "to_timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
"""Functions that cast their first argument → the type they cast to."""

CASTING_TYPES = {
    "date": "date", "timestamp": "timestamp", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
"""Types as written, whose literals and casts know the words → the type."""


def is_clock_word(text: str) -> bool:
    """Whether Spark takes this string for the clock where it is cast to a date or timestamp."""
    return text.strip().lower() in CLOCK_WORDS


def word_pin(kind: str, word: str) -> str:
    """The name of the pin of a word that is cast to the type `kind`."""
    return f"{kind} '{word}'"


def pin_level(name: str) -> Level:
    """The level of what a pinned literal stands for: a function of the table, or a word of the clock."""
    return Level.COMMAND if name.endswith("'") else level_of(name) or Level.COMMAND
