"""How the files of a model's table are laid out: `partition_by`, in which Iceberg has transforms of columns too, and `liquid_clustered_by`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import Column, TargetFacts
from spark_mv.query.analysis.field_types import struct_fields
from spark_mv.query.syntax.table_name import parts_of, quoted, unquoted

_NO_LAYOUT = ("map", "array", "struct", "variant")
MOST_CLUSTERS = 4
"""Columns by which Delta clusters a table."""

_CALL = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")
_PERIODS = {"date": "days", "date_hour": "hours", "year": "years", "month": "months", "day": "days", "hour": "hours"}
_COUNTED = ("bucket", "truncate")
_TRANSFORMS = (
    "years(column), months(column), days(column), hours(column), bucket(number, column) and truncate(number, column)"
)


@dataclass(frozen=True)
class LayoutPart:
    """A column by which files are laid out, or a field of one: its `path`. `transform`: Iceberg's, of these `numbers`."""

    path: tuple[str, ...]
    transform: str = ""
    numbers: tuple[str, ...] = ()

    @property
    def sql(self) -> str:
        """As a statement has it."""
        name = ".".join(map(quoted, self.path))
        return f"{self.transform}({', '.join((*self.numbers, name))})" if self.transform else name

    @property
    def same(self) -> str:
        """Equal for parts that lay out in the same way."""
        return self.sql.lower()

    @property
    def known(self) -> bool:
        """Whether Iceberg has this transform."""
        if self.transform in _COUNTED:
            return len(self.numbers) == 1
        return not self.numbers and (not self.transform or self.transform in _PERIODS.values())


def layout_part(text: str, file_format: str, columns: Collection[str] = ()) -> LayoutPart:
    """A part as the settings or the table say it: a column of `columns` (lower case), a field of one, or a transform of either in one of the
    ways in which Iceberg's are written.

    >>> layout_part("`a b`", "delta").sql, layout_part("st.x", "delta").sql, layout_part("a.b", "delta", ["a.b"]).sql
    ('`a b`', '`st`.`x`', '`a.b`')
    >>> [layout_part(text, "iceberg").sql for text in ("bucket( 16, Id)", "day(at)", "truncate(`body`, 3)", "my day")]
    ['bucket(16, `Id`)', 'days(`at`)', 'truncate(3, `body`)', '`my day`']
    >>> layout_part("days(at)", "delta").sql
    '`days(at)`'
    """
    found = _CALL.fullmatch(text) if file_format == "iceberg" else None
    if found is None or text.lower() in columns:
        name = unquoted(text)
        return LayoutPart((name,) if name.lower() in columns else parts_of(text) or (text,))
    word, given = found[1].lower(), [word.strip() for word in found[2].split(",")]
    names = [name for name in given if not name.isdigit()]
    numbers = tuple(name for name in given if name.isdigit())
    inner = layout_part(names[0], "", columns) if len(names) == 1 else LayoutPart((text,))
    return LayoutPart(inner.path, _PERIODS.get(word, word), numbers)


def layout_clause(config: ModelConfig, columns: Iterable[str]) -> str:
    """CLUSTER BY or PARTITIONED BY of a model's table with these columns, or neither."""
    names = {name.lower() for name in columns}
    parts = [layout_part(text, config.file_format, names).sql for text in config.cluster_by or config.partition_by]
    return f"{'cluster by' if config.cluster_by else 'partitioned by'} ({', '.join(parts)})" if parts else ""


def layout_changed(query: Sequence[Column], config: ModelConfig, target: TargetFacts) -> bool:
    """Whether the table is laid out in another way than the settings say."""
    names = {c.name.lower() for c in (*query, *target.columns)}

    def same(texts: Iterable[str]) -> list[str]:
        return [layout_part(text, config.file_format, names).same for text in texts]

    return target.exists and (
        same(config.partition_by) != same(target.partition_by) or same(config.cluster_by) != same(target.cluster_by)
    )


def layout_problems(query: Sequence[Column], config: ModelConfig) -> list[str]:
    """What keeps a table of these columns from being laid out as the settings say."""
    types = {c.name.lower(): c.type for c in query}
    settings = {"partition_by": config.partition_by, "liquid_clustered_by": config.cluster_by}
    parts = [
        (word, text, layout_part(text, config.file_format, types)) for word, texts in settings.items() for text in texts
    ]
    asked = [(word, text, part, _type_of(part.path, types)) for word, text, part in parts]
    problems = [
        f"{word}: the query has no column {'.'.join(part.path)!r}; its columns are {', '.join(c.name for c in query)}"
        for word, _, part, kind in asked
        if not kind
    ]
    problems += [
        f"{word}: column {'.'.join(part.path)} is of type {kind}, by which no files are laid out; name another"
        for word, _, part, kind in asked
        if kind.lower().startswith(_NO_LAYOUT)
    ]
    problems += [
        f"{word}: {text!r} is no transform of Iceberg's; these are {_TRANSFORMS}"
        for word, text, part, _ in asked
        if not part.known
    ]
    if len(config.cluster_by) > MOST_CLUSTERS and config.file_format == "delta":
        problems.append(
            f"liquid_clustered_by: Delta clusters by {MOST_CLUSTERS} columns at most; these are {len(config.cluster_by)}"
        )
    return problems


def stays_clustered(config: ModelConfig, target: TargetFacts) -> bool:
    """Whether the table is to be partitioned, and Delta does not replace it by such a table: not one that is clustered, or ever was."""
    clustered = target.cluster_by or "delta.feature.clustering=supported" in target.written
    to_be_partitioned = config.partition_by and not target.partition_by
    return bool(target.provider == config.file_format == "delta" and to_be_partitioned and clustered)


def _type_of(path: Sequence[str], types: Mapping[str, str]) -> str:
    """Of a column (`types` by names in lower case), or of a field in it; '' where there is none.

    >>> _type_of(["St", "x"], {"st": "struct<X:int>"}), _type_of(["st", "y"], {"st": "struct<x:int>"})
    ('int', '')
    """
    kind = types.get(path[0].lower(), "")
    for name in path[1:]:
        kind = next((kind for field, kind in struct_fields(kind) if field.lower() == name.lower()), "")
    return kind
