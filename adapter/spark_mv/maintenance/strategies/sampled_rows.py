"""ROW_BASED for a random filter: the candidates that changes touch get their draws first, then the rows of the result follow.

What the filter leaves out is told by the query without it: its anchors are those of all candidates. For these alone the state table
is brought up to date, and the query that reads it is asked; all other candidates keep their draws, and so their rows.
"""

from __future__ import annotations

from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal, rejected
from spark_mv.maintenance.plan import Candidate, Reason, Step
from spark_mv.maintenance.state import PUBLISHED, draws_to_drop
from spark_mv.maintenance.steps.staging import merge_rows
from spark_mv.maintenance.strategies.incremental_rows import affected_anchors
from spark_mv.maintenance.strategies.row_based import STRATEGY
from spark_mv.maintenance.strategies.state_steps import Known, Touched, drop_draws, keep_draws
from spark_mv.query.delta.restrict import AffectedQuery, NotIncremental, QueryTree
from spark_mv.query.rewrite.draw_texts import FilterTexts
from spark_mv.query.syntax.reserved import relation
from spark_mv.query.syntax.table_name import quoted
from spark_mv.query.syntax.tree_builder import build


def propose(known: IncrementalFacts, strategy: str) -> Proposal:
    """Raises NotIncremental."""
    filter_ = known.rewritten.filter_texts
    if filter_ is None or strategy != STRATEGY or known.shape != STRATEGY or known.tree.limited is not None:
        why = "a random filter is followed by ROW_BASED alone, where each row of the result is one of a source"
        return rejected(strategy, Reason("RANDOM_FILTER", why))
    if known.ai is not None:
        return rejected(strategy, Reason("RANDOM_FILTER", "a random filter beside AI functions is not followed"))
    if known.state is not None:
        _refuse_ahead(known.state)
    found, steps = affected_anchors(known)
    if not {anchor.lower() for anchor in found.anchors} <= {key.lower() for key in known.columns.keys}:
        raise NotIncremental("RANDOM_FILTER", "a change cannot be followed to the unique_key, by which draws are kept")
    if known.columns.stays:
        raise NotIncremental("FROZEN_ROWS", "freeze_where beside a random filter is not followed")
    because = Reason(
        "AFFECTED_ROWS",
        f"rows that a change or the clock touches, found again by {', '.join(found.anchors)}; the others keep their draws",
    )
    candidate = Candidate(strategy, True, (because,), known.cost.restricted(found.read))
    return Proposal(candidate, (*steps, *_of_candidates(known, filter_, found)), known.cost.complete)


def _of_candidates(known: IncrementalFacts, filter_: FilterTexts, found: AffectedQuery) -> list[Step]:
    steps: list[Step] = []
    if known.state is not None:
        candidates = known.evaluate(_touched(known, filter_.candidates, found)).sql
        steps += keep_draws(known.state, Touched(candidates, found.columns)).steps
    query = _touched(known, filter_.filtered.replace(relation("state"), _touched_draws(found)), found)
    return [*steps, *merge_rows(known, query, found.columns), drop_draws(known.columns)]


def _touched(known: IncrementalFacts, sql: str, found: AffectedQuery) -> str:
    """The rows of a query whose anchors are affected, with every source at its version."""
    tree = QueryTree(sql, build(sql), frozenset(), {})
    return known.texts.pinned(tree.restricted(relation("affected"), found, known.known_columns))


def _touched_draws(found: AffectedQuery) -> str:
    """The state table without the draws of other candidates."""
    same = " AND ".join(f"__mv_k.{affected} = __mv_d.{quoted(key)}" for key, affected in found.columns.items())
    return f"(SELECT * FROM {relation('state')} AS __mv_d WHERE EXISTS (SELECT 1 FROM {relation('affected')} AS __mv_k WHERE {same}))"


def _refuse_ahead(state: Known) -> None:
    """Raises NotIncremental where the state table is not known to be as the last run left it: draws of candidates that are gone would
    stay there, and be taken for those of a key that comes back."""
    ours, record, newest = state.state.record, state.facts.target.record, state.state.newest
    known = state.standing.trusted and state.standing.at_version is None and state.seed.trial_sql is None
    as_left = False
    if known and ours is not None and newest is not None and record is not None and record.state_version is not None:
        dead = newest.number > record.state_version and ours.made_for != PUBLISHED  # a run that did not publish
        as_left = not dead and not draws_to_drop(state.state, record) and ours.id == record.state
    if not as_left:
        raise NotIncremental(
            "STATE_AHEAD", "the state table is not as the last run left it, so that all its draws are looked through"
        )
