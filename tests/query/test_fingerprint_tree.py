"""Fingerprints are of the whole tree: pairs of statements, and every argument of every node changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from spark_mv.query.analysis import analyze as module
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.analysis.fingerprint import is_left_out
from spark_mv.query.syntax.parse import Parsed, parse

pytestmark = pytest.mark.unit

FIXTURE = Path(__file__).parent / "fixtures" / "fingerprints.sql"
PAIRS = [block.splitlines() for block in FIXTURE.read_text(encoding="utf-8").split("\n\n")[1:]]
DIFFERENT = {lines[0][14:]: lines[1:3] for lines in PAIRS if lines[0].startswith("-- different: ")}
SAME = {lines[0][9:]: lines[1:3] for lines in PAIRS if lines[0].startswith("-- same: ")}
ROWS_ONLY = {
    "distinct inner",
    "group by all",
    "order of collected rows",
}  # which rows there are changed; the expression of `r` did not

RESOLVED: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Column, "table"): "which FROM item is meant: the column is followed to it",
    (exp.Window, "alias"): "the name of a window: its definition counts",
    (exp.Lambda, "expressions"): "names of parameters: they count by position",
    (exp.With, "expressions"): "CTEs count where they are read, not in the order they are written",
    (exp.With, "recursive"): "the word alone changes nothing; a CTE that reads itself does",
    (exp.CTE, "alias"): "the name of a CTE: it counts where it is read",
    (exp.TableAlias, "this"): "the name of a FROM item",
}


def test_the_fixture_is_read() -> None:
    assert len(DIFFERENT) > 130 and len(SAME) > 25


@pytest.mark.parametrize("name", DIFFERENT)
def test_changed_logic(name: str) -> None:
    one, other = (analyze(sql, unique_key="id") for sql in DIFFERENT[name])
    assert not [e for e in (*one.errors, *other.errors) if e.code == "PARSE_ERROR"]
    assert one.fingerprint != other.fingerprint
    before, after = one.column("r"), other.column("r")
    if before and after and name not in ROWS_ONLY:
        assert before.fingerprint != after.fingerprint


@pytest.mark.parametrize("name", SAME)
def test_same_logic(name: str) -> None:
    one, other = (analyze(sql, unique_key="id") for sql in SAME[name])
    assert not [e for e in (*one.errors, *other.errors) if e.code == "PARSE_ERROR"]
    assert one.fingerprint == other.fingerprint
    assert [c.fingerprint for c in one.columns] == [c.fingerprint for c in other.columns]


def _mutations(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """Every node's every argument that counts: words and switches changed, lists shortened and turned round."""
    for place, node in enumerate(tree.walk()):
        if _left_out(node):
            continue
        for key, child in node.args.items():
            if not child or is_left_out(node, key) or (type(node), key) in RESOLVED:
                continue
            if isinstance(child, str):
                yield f"{type(node).__name__}.{key} = {child!r}", _changed(tree, place, key, child + "x")
            elif isinstance(child, bool):
                yield f"{type(node).__name__}.{key} off", _changed(tree, place, key, False)
            elif isinstance(child, list):
                yield f"{type(node).__name__}.{key} shorter", _changed(tree, place, key, child[:-1])
                if len(child) > 1 and child[0] != child[-1]:
                    yield f"{type(node).__name__}.{key} turned", _changed(tree, place, key, child[::-1])
            elif isinstance(child, exp.Expr) and not node.arg_types.get(key):
                yield f"{type(node).__name__}.{key} gone", _changed(tree, place, key, None)


def _left_out(node: exp.Expr) -> bool:
    """Whether the node stands below an argument that does not count."""
    while node.parent is not None:
        parent, key = node.parent, node.arg_key or ""
        if is_left_out(parent, key) and not isinstance(parent, exp.Select | exp.SetOperation):
            return True
        if (type(parent), key) in RESOLVED or (key in ("hint", "limit") and is_left_out(parent, key)):
            return True
        if key == "order" and parent.parent is None and not parent.args.get("limit"):
            return True
        node = parent
    return False


def _changed(tree: exp.Expr, place: int, key: str, value: Any) -> exp.Expr:
    copy = tree.copy()
    node = next(n for i, n in enumerate(copy.walk()) if i == place)
    node.set(key, [item.copy() for item in value] if isinstance(value, list) else value)
    return copy


def _fingerprint(sql: str) -> str:
    try:
        return analyze(sql, unique_key="id").fingerprint
    except (AttributeError, TypeError, ValueError):
        return "a tree that no text gives"


def test_every_argument_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree as parsed, changed at one place: another fingerprint."""
    silent, changes = [], 0
    for name, (sql, _) in DIFFERENT.items():
        parsed = parse(sql)
        assert isinstance(parsed, Parsed), name
        whole = analyze(sql, unique_key="id").fingerprint
        for what, tree in _mutations(parsed.tree):
            other = replace(parsed, tree=tree)
            monkeypatch.setattr(module, "parse", lambda _, other=other: other)
            changes += 1
            if _fingerprint(sql) == whole:
                silent.append(f"{name}: {what}")
        monkeypatch.undo()
    assert changes > 1500
    assert not silent, "\n".join(silent)
