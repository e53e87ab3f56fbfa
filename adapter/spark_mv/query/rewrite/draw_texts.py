"""The statements around draws in a filter: candidates with their draws, and the query that reads these from the state table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.syntax.condition import ALWAYS
from spark_mv.query.syntax.reserved import TRIAL
from spark_mv.query.syntax.source_blocks import Block, Item, alone
from spark_mv.query.syntax.source_text import Edit, Span, apply_edits, tokenize
from spark_mv.query.syntax.table_name import quoted, unquoted

STATE, DRAW, KEY, SHOWN = "__mv_state", "__mv_draw_", "__mv_key_", "__mv_shown_"


@dataclass(frozen=True)
class Members:
    """Rows that are known to have passed the filter, by the keys in `table`, while their draws are lost. So many `trials` are
    drawn for each of them (`trial_sql`, numbered in the column TRIAL) and written to the table `tried`; those that pass
    (`accepted_sql`) are distributed as the lost ones were. A column that was drawn below has one value for all trials: it is read from the
    column of the table that shows it (`shown`, by its fingerprint)."""

    table: str
    tried: str
    trials: int
    shown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FilterTexts:
    """A query with a random filter: `filtered` reads the draws from the state table, `candidates` gives the key and the draws of every row
    that the filter judges."""

    filtered: str
    candidates: str


@dataclass(frozen=True)
class Draw:
    """`fingerprint`: '' for a call, else that of the column that is read here."""

    span: Span
    block: int
    clause: str
    fingerprint: str = ""


def expression_of(sql: str, item: Item) -> tuple[str, str]:
    """(text without the alias, output name) of an entry; the name is '' where Spark makes one up."""
    text = item.span.of(sql)
    tokens = tokenize(text)
    if item.alias:
        last = len(tokens) - (2 if len(tokens) > 1 and tokens[-2].word == "AS" else 1)
        return text[: tokens[last - 1].end], item.alias
    named = [t for t in tokens if t.word or t.kind == TokenType.IDENTIFIER]
    plain = len(tokens) == 2 * len(named) - 1 and all(t.kind == TokenType.DOT for t in tokens[1::2])
    return text, unquoted(tokens[-1].text) if plain else ""


def stars(block: Block) -> list[exp.Star]:
    """The stars of the SELECT itself, also those in its functions. count(*) counts rows, whatever their columns are."""
    found = block.tree.find_all(exp.Star)
    return [s for s in found if s.find_ancestor(exp.Query) is block.tree and not isinstance(s.parent, exp.Count)]


def of_all_items(star: exp.Star) -> bool:
    """Whether it stands for the columns of all FROM items, as `o.*` does not."""
    return not isinstance(star.parent, exp.Column | exp.Dot)


def _without(star: exp.Star, names: str) -> Edit:
    """The star EXCEPT these columns too."""
    if star.args.get("except_"):
        end = star.meta["span"][1] - 1
        return Edit(end, end, f", {names}")
    end = star.meta["start"] + 1
    return Edit(end, end, f" EXCEPT ({names})")


def draw_sql_of(
    sql: str,
    block: Block,
    draws: Sequence[Draw],
    keys: Sequence[tuple[str, str]],
    columns: Sequence[str],
    members: Members | None = None,
) -> str:
    """For every candidate row its key and its draws; with `members`, several trials for each row that is known to have passed."""
    edits = [
        Edit(conjunct.start, conjunct.end, ALWAYS)
        for conjunct in block.conjuncts
        if any(conjunct.start <= draw.span.start and draw.span.end <= conjunct.end for draw in draws)
    ]
    entries = [f"{text} AS {quoted(name)}" for name, text in keys]
    shown = {draw.fingerprint: members.shown[draw.fingerprint] for draw in draws if draw.fingerprint} if members else {}
    at = {fingerprint: f"{SHOWN}{i}" for i, fingerprint in enumerate(shown)}
    for draw, column in zip(draws, columns, strict=True):
        value = f"{STATE}.{at[draw.fingerprint]}" if draw.fingerprint in at else draw.span.of(sql)
        entries.append(f"{value} AS {column}")
    if members is not None:
        entries.append(f"{TRIAL}s.{TRIAL}")
        read = [f"{quoted(shown[fingerprint])} AS {name}" for fingerprint, name in at.items()]
        edits += joined(sql, block, keys, read, members.table)
        edits.append(
            Edit(_end(block), _end(block), f", (SELECT id AS {TRIAL} FROM range({members.trials})) AS {TRIAL}s")
        )
    return _selected(sql, block, entries, edits)


def _end(block: Block) -> int:
    assert block.from_ is not None
    return block.from_.end


def _selected(sql: str, block: Block, entries: Sequence[str], edits: Sequence[Edit]) -> str:
    """Another select list over FROM and WHERE of the block; what follows them is left out."""
    start, end = block.select.end, block.where.end if block.where else block.select.end
    moved = [Edit(edit.start - start, edit.end - start, edit.replacement) for edit in edits]
    return alone(sql, block, f"SELECT {', '.join(entries)}{apply_edits(sql[start:end], moved)}")


def accepted_sql_of(
    sql: str,
    block: Block,
    draws: Sequence[Draw],
    keys: Sequence[tuple[str, str]],
    columns: Sequence[str],
    members: Members,
) -> str:
    """The key and the draws of those trials that pass the filter."""
    entries = [f"{STATE}.{KEY}{i} AS {quoted(name)}" for i, (name, _) in enumerate(keys)]
    entries += [f"{STATE}.{column}" for column in (*columns, TRIAL)]
    judged = [(d, c) for d, c in zip(draws, columns, strict=True) if d.clause == "WHERE"]  # the select list is another
    edits = joined(sql, block, keys, (*columns, TRIAL), members.tried)
    return _selected(sql, block, entries, [*edits, *_read_back(*zip(*judged, strict=True))])


def filtered_sql_of(
    sql: str,
    block: Block,
    draws: Sequence[Draw],
    keys: Sequence[tuple[str, str]],
    columns: Sequence[str],
    state_table: str,
) -> str:
    """The state table joins as one more entry of FROM: that works behind every kind of join."""
    outputs = [
        # an output column that is the draw alone keeps its name
        Edit(item.span.end, item.span.end, f" AS {quoted(expression_of(sql, item)[1])}")
        for item in block.items
        if not item.alias and any(draw.span == item.span for draw in draws)
    ]
    edits = [*outputs, *joined(sql, block, keys, columns, state_table), *_read_back(draws, columns)]
    hidden = ", ".join([*(f"{KEY}{i}" for i in range(len(keys))), *columns])
    edits += [_without(star, hidden) for star in stars(block) if of_all_items(star)]
    return apply_edits(sql, edits)


def _read_back(draws: Sequence[Draw], columns: Sequence[str]) -> list[Edit]:
    return [Edit(d.span.start, d.span.end, f"{STATE}.{column}") for d, column in zip(draws, columns, strict=True)]


def joined(sql: str, block: Block, keys: Sequence[tuple[str, str]], columns: Sequence[str], table: str) -> list[Edit]:
    """The rows of `table` with the block's keys, and its `columns`, beside the block's own rows."""
    assert block.from_ is not None
    kept = [f"{quoted(name)} AS {KEY}{i}" for i, (name, _) in enumerate(keys)]
    state = f", (SELECT {', '.join([*kept, *columns])} FROM {table}) AS {STATE}"
    matches = " AND ".join(f"({text}) <=> {STATE}.{KEY}{i}" for i, (_, text) in enumerate(keys))
    if block.where is None:
        grouping = next(body.start for word, body in block.others if word == "GROUP BY")
        return [Edit(block.from_.end, block.from_.end, state), Edit(grouping, grouping, f"WHERE {matches} ")]
    body = block.where.of(sql)[len("WHERE") :]
    condition = block.where.end - len(body.lstrip())
    return [
        Edit(block.from_.end, block.from_.end, state),
        Edit(condition, condition, "("),
        Edit(block.where.end, block.where.end, f") AND {matches}"),
    ]
