"""A query about changes as text, and several of them as one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from spark_mv.query.syntax.select_tree import quoted


@dataclass
class Rendered:
    """A query's text with the output columns that it still has: position and name."""

    text: str
    columns: list[str | None]  # by position; None where the column was left out

    def gains(self, other: Rendered, wanted: Collection[str] | None) -> bool:
        """Whether it has a column that `other` has not, of those that are `wanted` (lower case; None: of all)."""
        both = zip(self.columns, other.columns, strict=True)
        return any(own and not there and (wanted is None or own.lower() in wanted) for own, there in both)


def united(names: Sequence[str], parts: Sequence[Rendered]) -> Rendered:
    """All rows of the parts, with the columns that each of them has, under `names`."""
    kept = [all(part.columns[k] is not None for part in parts) for k in range(len(names))]
    texts = []
    for part in parts:
        columns = ", ".join(
            f"{quoted(own or '')} AS {quoted(name)}"
            for own, name, keep in zip(part.columns, names, kept, strict=True)
            if keep
        )
        texts.append(f"SELECT {columns or '1 AS `__mv_none`'} FROM (\n{part.text}\n)")
    return Rendered(
        "\nUNION ALL\n".join(texts), [name if keep else None for name, keep in zip(names, kept, strict=True)]
    )
