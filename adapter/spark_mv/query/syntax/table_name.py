"""Names of tables as one text: parts joined by dots. A part that has a dot or another sign of its own stands in back quotes,
so that the text can be taken apart again: ``delta.`/data/a.b` `` has two parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_PART = re.compile(r"`(?:[^`]|``)*`|[^.`]+")
_PLAIN = re.compile(r"[^.`/()\s]+")
_VERSION_IN_PATH = re.compile(r"/.*@(v\d+|\d{17})$", re.IGNORECASE)


def quoted(name: str) -> str:
    """One part of a name, or a column, in back quotes."""
    return "`" + name.replace("`", "``") + "`"


def unquoted(name: str) -> str:
    """A part of a name as it is, whether it stands in back quotes or not.

    >>> unquoted("`a``b`"), unquoted("a")
    ('a`b', 'a')
    """
    return name[1:-1].replace("``", "`") if len(name) > 1 and name[0] == name[-1] == "`" else name


def joined(parts: Iterable[str]) -> str:
    """The name of these parts (without quotes).

    >>> joined(["s", "t"]), joined(["delta", "/data/a.b"])
    ('s.t', 'delta.`/data/a.b`')
    """
    return ".".join(part if _PLAIN.fullmatch(part) else quoted(part) for part in parts)


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name, quoted or not.

    >>> parts_of("delta.`/data/a.b`"), parts_of("`s`.t")
    (('delta', '/data/a.b'), ('s', 't'))
    """
    return tuple(unquoted(m[0]) for m in _PART.finditer(name))


def quoted_name(name: str) -> str:
    """The name as a statement has it.

    >>> quoted_name("s.t"), quoted_name("delta.`/data/a.b`")
    ('`s`.`t`', '`delta`.`/data/a.b`')
    """
    return ".".join(quoted(part) for part in parts_of(name))


def table_key(name: str) -> str:
    """What tells tables apart: case matters in paths only.

    >>> table_key("`S`.T"), table_key("parquet.`/Data/x`")
    ('s.t', 'parquet.`/Data/x`')
    """
    return joined(part if "/" in part else part.lower() for part in parts_of(name))


def is_old_version(parts: Sequence[str]) -> bool:
    """Whether the path of a Delta table names a version or an instant, as Delta reads it (`DeltaTableUtils.extractIfPathContainsTimeTravel`).

    >>> is_old_version(["delta", "/data/t@v12"]), is_old_version(["delta", "/data/t"])
    (True, False)
    """
    return len(parts) > 1 and parts[0].lower() == "delta" and _VERSION_IN_PATH.search(parts[-1]) is not None
