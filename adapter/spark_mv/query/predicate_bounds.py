"""The predicates on the clock, each with the instants at which it holds, as far as it can be solved."""

from __future__ import annotations

from dataclasses import replace

from .clock import solve
from .field_types import known_types
from .parse import Parsed, first_offset, sql_text
from .source_blocks import Block, select_blocks
from .source_text import SourceTextError, Span
from .verdict import PredicateVerdict
from .walk import Walk


def with_bounds(walk: Walk, time_zone: str | None) -> dict[tuple[object, ...], PredicateVerdict]:
    """All predicates of the walk; those on the clock with their text as written, and solved where that is exact.

    Like clock_split: HAVING, QUALIFY and the ON of an outer join do not decide alone when a row is there, so they are
    not solved; nor are predicates inside a subquery of an expression.
    """
    texts: dict[int, list[Span]] = {}
    found: dict[tuple[object, ...], PredicateVerdict] = {}
    for key, verdict in walk.predicates.items():
        node, scope, parsed, lone = walk.nodes[key]
        if not verdict.clock:
            found[key] = verdict
            continue
        spans = texts.setdefault(id(parsed), _spans(parsed))
        text = _written(parsed, spans, first_offset(node)) or sql_text(node)
        found[key] = verdict = replace(verdict, text=text)
        bounds = solve(text, known_types(node, scope), time_zone) if lone else None
        if bounds is not None:
            found[key] = replace(
                verdict, solved=True, valid_from=bounds.valid_from, valid_to=bounds.valid_to, guard=bounds.guard
            )
    return found


def _spans(parsed: Parsed) -> list[Span]:
    try:
        blocks = select_blocks(parsed.sql)
    except SourceTextError:
        return []
    return [span for block in blocks for span in _conditions(block)]


def _conditions(block: Block) -> list[Span]:
    return [*block.conjuncts, *(span for join in block.joins for span in join.on)]


def _written(parsed: Parsed, spans: list[Span], offset: int | None) -> str:
    """The conjunct at `offset` as the user wrote it, '' if it is not found."""
    around = [span for span in spans if offset is not None and span.start <= offset < span.end]
    if not around:
        return ""
    return min(around, key=lambda span: span.end - span.start).of(parsed.sql)
