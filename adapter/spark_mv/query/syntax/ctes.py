"""Which CTE a table's name means."""

from __future__ import annotations

from sqlglot import exp


def visible_cte(table: exp.Expr) -> exp.CTE | None:
    """The CTE that a table's name means: the nearest one around the table that is written before it."""
    if not isinstance(table, exp.Table) or len(table.parts) > 1:
        return None
    name = table.name.lower()
    inside: exp.Expr = table
    around = table.parent
    while around is not None:
        with_ = around if isinstance(around, exp.With) else around.args.get("with_")
        if with_ is not None and with_ is not inside:
            end = inside.index if inside.parent is with_ else None
            before = [cte for cte in _named(with_).get(name, ()) if end is None or (cte.index or 0) < end]
            if before:
                return before[-1]
        inside, around = around, around.parent
    return None


def _named(with_: exp.Expr) -> dict[str, list[exp.CTE]]:
    """The CTEs of one WITH by name in lower case, in their order. Remembered on the node: the tree never changes."""
    if "ctes" not in with_.meta:
        found: dict[str, list[exp.CTE]] = {}
        for cte in with_.expressions:
            found.setdefault(cte.alias.lower(), []).append(cte)
        with_.meta["ctes"] = found
    return with_.meta["ctes"]  # type: ignore[no-any-return]
