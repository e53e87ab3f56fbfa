"""Of a SELECT with LIMIT, the rows that it may show: no others are asked about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from spark_mv.query.ai_calls.blocks import TokenBlock, TokenItem
from spark_mv.query.ai_calls.places import Places
from spark_mv.query.syntax.aggregates import aggregates, generates, not_of_one_row
from spark_mv.query.syntax.condition import read_expression

RANK = "__mv_rank"
_DIRECTION = frozenset({"ASC", "DESC", "NULLS", "FIRST", "LAST"})


@dataclass(frozen=True)
class FirstRows:
    """The first `number` rows in the `order`, SQL over FROM, and those that tie with the last of them."""

    number: int
    order: str

    def of(self, listed: str, rest: str) -> str:
        """A query with the column `request` of these rows. `listed` is its select list, `rest` what follows it."""
        ranked = f"SELECT {listed}, rank() OVER (ORDER BY {self.order}) AS {RANK}{rest}"
        return f"SELECT request FROM ({ranked}) AS __mv_f WHERE {RANK} <= {self.number}"


def first_rows(places: Places, block: TokenBlock, hidden: Collection[str] = ()) -> FirstRows | None:
    """None where LIMIT bounds nothing, the rows of FROM are not those that it counts, or it is not known by what they are ordered before their
    answers are there: in columns that are `hidden` (lower case), or of calls."""
    alone = not block.query.set_operation and len(block.query.blocks) == 1 and not block.distinct
    if (
        not alone
        or not {"LIMIT", "ORDER BY"} <= block.clauses.keys()
        or {"GROUP BY", "HAVING", "QUALIFY"} & block.clauses.keys()
    ):
        return None  # of a LIMIT alone, another statement may take other rows
    if not all(_a_row_each(places, item) for item in block.items) or places.outer.named_in(block, block.span):
        return None
    args, where = block.tree.args, block.clauses["ORDER BY"]
    limit, offset = _number(args.get("limit")), _number(args.get("offset"))
    if limit is None or offset is None or args.get("limit") is None:
        return None
    if args.get("order") is None or places.inside([where]):
        return None  # SORT BY orders parts of the rows
    text = places.text
    found = [_ordered(places, block, *part, hidden) for part in text.split(*text.token_range(where), ",")]
    known = [order for order in found if order is not None]
    return FirstRows(limit + offset, ", ".join(known)) if len(known) == len(found) else None


def _a_row_each(places: Places, item: TokenItem) -> bool:
    """Whether there is a row for each one of FROM, and answers are about that one."""
    if item.star:
        return True
    return not (
        not_of_one_row(item.tree) if places.inside([item.span]) else aggregates(item.tree) or generates(item.tree)
    )


def _number(clause: exp.Expr | None) -> int | None:
    if clause is None:
        return 0
    amount = clause.args.get("expression")
    written = isinstance(amount, exp.Literal) and not amount.is_string and amount.name.isdigit()
    return int(amount.name) if written and amount is not None else None


def _ordered(places: Places, block: TokenBlock, first: int, end: int, hidden: Collection[str]) -> str | None:
    """An expression of ORDER BY with its direction, over the columns of FROM."""
    text, last = places.text, end
    while last > first and set(text.words[last - 1].split()) <= _DIRECTION and text.words[last - 1]:
        last -= 1
    written = text.text(text.span(first, last))
    if last - first == 1:
        item = _item(block, written)
        if item is not None and places.inside([item.span]):
            return None
        written = text.text(item.expression) if item is not None else written
        named = item
        if item is None and (written.isdigit() or text.words[first] == "ALL"):
            return None
    else:
        named = None
    tree = read_expression(written)
    if (
        tree is None
        or not_of_one_row(tree)
        or any(column.name.lower() in hidden for column in tree.find_all(exp.Column))
    ):
        return None
    bare = {column.name.lower() for column in tree.find_all(exp.Column) if not column.table}
    if any(i is not named and i.name.lower() in bare and not text.own_column(i) for i in block.items if i.name):
        return None  # perhaps the alias of another column, which FROM does not have
    return f"{written} {text.text(text.span(last, end))}" if last < end else written


def _item(block: TokenBlock, written: str) -> TokenItem | None:
    """The column that an ordinal or an alias in ORDER BY stands for."""
    if written.isdigit():
        at = int(written) - 1
        counted = 0 <= at < len(block.items) and not any(item.star for item in block.items[: at + 1])
        return block.items[at] if counted else None
    return next((item for item in block.items if item.name and item.name.lower() == written.strip("`").lower()), None)
