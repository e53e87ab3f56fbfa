"""How rows are found again when unique_key changed."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.row_identity import row_identity

pytestmark = pytest.mark.unit


def names(*columns: str) -> dict[str, str]:
    return {column.lower(): column for column in columns}


@pytest.mark.parametrize(
    ("key", "former", "query", "table", "pairs", "rekeyed", "by_former"),
    [
        (["id"], ["id"], ["id"], ["id"], [("id", "id")], False, False),
        (["ID"], ["id"], ["Id"], ["iD"], [("Id", "iD")], False, False),
        (["b", "a"], ["a", "b"], ["a", "b"], ["a", "b"], [("b", "b"), ("a", "a")], False, False),
        # not recorded: the key is what it is now, as far as the table has it
        (["id"], [], ["id"], ["id"], [("id", "id")], False, False),
        (["id", "r"], [], ["id", "r"], ["id"], [("id", "id")], True, True),
        # more, fewer, other columns
        (["id", "r"], ["id"], ["id", "r"], ["id", "r"], [("id", "id"), ("r", "r")], True, False),
        (["id", "r"], ["id"], ["id", "r"], ["id"], [("id", "id")], True, True),
        (["id"], ["id", "r"], ["id", "r"], ["id", "r"], [("id", "id")], True, False),
        (["no"], ["id"], ["id", "no"], ["id", "no"], [("no", "no")], True, False),
        (["no"], ["id"], ["id", "no"], ["id"], [("id", "id")], True, True),
        # another name for the same expression
        (["ticket"], ["id"], ["ticket"], ["id"], [("ticket", "id")], True, False),
        (["ticket", "r"], ["id"], ["ticket", "r"], ["id"], [("ticket", "id")], True, True),
        # nothing to find them by
        (["k"], ["id"], ["k"], ["id"], [], True, False),
    ],
)
def test_pairs(
    key: list[str],
    former: list[str],
    query: list[str],
    table: list[str],
    pairs: list[tuple[str, str]],
    rekeyed: bool,
    by_former: bool,
) -> None:
    prints = {"id": "p1", "ticket": "p1", "r": "p2", "no": "p3", "k": "p4"}
    now = {name: prints[name] for name in names(*query) if name in prints}
    found = row_identity(key, former, names(*query), names(*table), now, {"id": "p1", "r": "p2", "no": "p3"})
    assert (list(found.pairs), found.rekeyed, found.by_former) == (pairs, rekeyed, by_former)
