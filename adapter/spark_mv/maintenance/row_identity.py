"""How a run finds the rows of the table that its query's rows stand for, also when `unique_key` changed since the last run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class RowIdentity:
    """`pairs`: column of the query, column of the table, both of one row. `rekeyed`: they are not simply the key's columns
    in both, or the table's rows need not be unique in them: then a row of the query takes one of the table's, preferably one
    that also has its `former` key (pairs again). Keys of another type are not unique in the new one, either. `by_former`: the pairs are those of the key that the table's rows had, which
    several rows of the query may share; those find none: one draw would be several rows'. `retyped_alone`: the key has the same columns, and another
    type. Without pairs, no row is found."""

    pairs: tuple[tuple[str, str], ...]
    rekeyed: bool = False
    by_former: bool = False
    former: tuple[tuple[str, str], ...] = ()
    retyped_alone: bool = False

    def retyped(self) -> RowIdentity:
        """The same where the key's type is another one: several keys of the table may be one of the query's."""
        return replace(self, rekeyed=True, former=self.former or self.pairs, retyped_alone=not self.rekeyed)


def row_identity(
    key: Sequence[str],
    former: Sequence[str],
    query: Mapping[str, str],
    table: Mapping[str, str],
    prints: Mapping[str, str],
    prints_before: Mapping[str, str],
) -> RowIdentity:
    """Rows are found by the key where the table has its columns, else by the key that they had where the query still gives
    its columns. `former`: that key, empty where it is not known. `query` and `table` give column names as written by lower
    case; `prints` and `prints_before` the fingerprints of the query's columns now and in the last run: a column with a new
    name and the old expression is the old column.

    >>> names = {"id": "id", "region": "region"}
    >>> row_identity(["id", "region"], ["id"], names, {"id": "id"}, {}, {})
    RowIdentity(pairs=(('id', 'id'),), rekeyed=True, by_former=True, former=(('id', 'id'),), retyped_alone=False)
    >>> row_identity(["no"], ["id"], {"no": "no"}, {"id": "id"}, {"no": "1"}, {"id": "1"}).pairs
    (('no', 'id'),)
    """
    if not table:
        return RowIdentity(())
    key = [name.lower() for name in key]
    former = [name.lower() for name in former] or [name for name in key if name in table]

    def in_table(name: str) -> str | None:
        if name in table:
            return table[name]
        print_now = prints.get(name)
        renamed = [t for t in table if t not in query and print_now is not None and prints_before.get(t) == print_now]
        return table[renamed[0]] if renamed else None

    def in_query(name: str) -> str | None:
        if name in query:
            return query[name]
        renamed = [q for q in query if name in prints_before and prints.get(q) == prints_before[name]]
        return query[renamed[0]] if renamed else None

    by_key = [(query.get(name, name), in_table(name)) for name in key]
    by_former = [(in_query(name), table.get(name)) for name in former]
    old = tuple((q, t) for q, t in by_former if q is not None and t is not None)
    found = tuple((q, t) for q, t in by_key if t is not None)
    if len(found) == len(key):
        same = set(key) == set(former) or {t.lower() for _, t in found} == set(former)
        renamed = any(q.lower() != t.lower() for q, t in found)
        return RowIdentity(found, rekeyed=renamed or not same, former=() if same else old)
    if old and len(old) == len(former):
        return RowIdentity(old, rekeyed=True, by_former=True, former=old)
    return RowIdentity((), rekeyed=True)
