"""Relations whose names are quoted where Spark needs it, and left bare where it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dbt.adapters.spark.relation import SparkRelation

from spark_mv.spark.adapter.column import quote

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")

#: words that Spark's parser refuses as a bare table or schema name, and those that the analysis of a model's SQL would read as something else
_RESERVED = frozenset(
    [
        "anti", "cross", "except", "full", "inner", "intersect", "join", "lateral", "left", "minus", "natural", "on", "right", "semi", "union",
        "using",
        "alter", "and", "any", "as", "between", "create", "describe", "distinct", "drop", "else", "fetch", "for", "from", "glob", "grant", "having",
        "ilike", "insert", "into", "like", "not", "notnull", "or", "outer", "partitioned_by", "qualify", "regexp", "returning", "revoke", "rlike",
        "rollback", "select", "serdeproperties", "tablesample", "then", "uncache", "values", "when", "where", "with", "xor",
    ]
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class SparkMvRelation(SparkRelation):
    """A database that is an empty text, as `target.database` is here, is none: a relation made with it is that which dbt itself makes."""

    def __post_init__(self) -> None:
        if self.database == "":
            object.__setattr__(self, "path", self.path.replace(database=None))
        super().__post_init__()

    def _render_iterator(self) -> Iterator[tuple[Any, str | None]]:
        for key, part in super()._render_iterator():
            if part is not None and not part.startswith("`") and needs_quotes(part):
                part = quote(part)
            yield key, part

    def quoted(self, identifier: str) -> str:
        return quote(identifier)


def needs_quotes(name: str) -> bool:
    """True for a name with a dash, a dot, a blank, a leading digit, or one of the words Spark keeps for itself.

    >>> [name for name in ("orders", "my-model", "2024", "a.b", "left") if needs_quotes(name)]
    ['my-model', '2024', 'a.b', 'left']
    """
    return not _PLAIN.match(name) or name.lower() in _RESERVED
