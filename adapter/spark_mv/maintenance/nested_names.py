"""Fields of structs that no table can have: Spark finds out when it writes, after AI answers were paid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from spark_mv.maintenance.facts import Column


def repeated_field_problems(columns: Sequence[Column]) -> list[str]:
    """Which columns have a struct with two fields of one name, whatever the case, each with the cure.

    >>> repeated_field_problems([Column("c", "array<struct<a:int,`A`:int>>"), Column("d", "struct<a:int,b:struct<a:int>>")])
    ['column c has a struct with two fields called a: tables tell no names apart that differ in case only; rename one']
    """
    return [
        f"column {column.name} has a struct with two fields called {name}: tables tell no names apart that differ in case only; rename one"
        for column in columns
        for name in dict.fromkeys(_repeated(column.type))
    ]


def _repeated(kind: str) -> Iterator[str]:
    if "struct<" not in kind.lower():
        return
    try:
        whole = exp.DataType.build(kind, dialect="spark")
    except SqlglotError:  # a type that it does not know: Spark has the word
        return
    for found in whole.find_all(exp.DataType):
        if found.is_type(exp.DataType.Type.STRUCT):
            names = Counter(field.name.lower() for field in found.expressions)
            yield from (name for name, number in names.items() if number > 1)
