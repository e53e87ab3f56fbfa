"""The same query with names that collide: FROM items called like columns and tables, and structs called like FROM items. What a name means,
Spark's rules say, not what else is called so."""

from __future__ import annotations

import re
from random import Random

from histories import SCHEMAS
from packed import packed

_ALIAS = re.compile(r"\ba\d+\b")
NAMES = sorted({*SCHEMAS, *(column for columns in SCHEMAS.values() for column in columns)})


def colliding(sql: str, random: Random) -> str:
    """The query with aliases `a1`, `a2`, … that are names of columns and tables, over structs that have such names, too, where it can be
    packed into structs."""
    aliases = sorted(set(_ALIAS.findall(sql)))
    names = dict(zip(aliases, random.sample(NAMES, min(len(aliases), len(NAMES))), strict=False))
    struct = random.choice([*names.values(), "zz"])
    inside = packed(sql, random, struct, 0.5) if struct not in _columns(sql) else None
    return _ALIAS.sub(lambda found: names.get(found[0], found[0]), inside or sql)


def _columns(sql: str) -> set[str]:
    """The columns of tables that the query reads: a struct of that name would stand beside one of them."""
    return {column for table, columns in SCHEMAS.items() if re.search(rf"\b{table}\b", sql) for column in columns}
