"""Groups adjusted by what came and went, from the table's own rows: nothing but changed rows is read.

    new = old + Q(rows that came) − Q(rows that went)        per group, with the user's own SELECT as Q

A group whose stored row does not tell the new one (its maximum went, what is left of its sum is zero, nothing proves that
a row is left) is unsure, and recomputed from the sources in the same statement. Where that is not to be expected, the groups
are staged without this part of the statement, and again with it should there be one after all.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_mv.maintenance.columns import Role
from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal
from spark_mv.maintenance.plan import Candidate, Reason
from spark_mv.maintenance.steps.staging import merge_rows, publish_ready, stage_affected, stage_sources
from spark_mv.maintenance.strategies.adjusted_values import Values, value_of
from spark_mv.maintenance.strategies.incremental_rows import for_affected_anchors
from spark_mv.query.delta.distributive import GroupPart, parts
from spark_mv.query.delta.restrict import AffectedQuery, NotIncremental
from spark_mv.query.rewrite.pin import pin
from spark_mv.query.syntax.reserved import relation
from spark_mv.query.syntax.select_tree import SelectNode
from spark_mv.query.syntax.table_name import quoted


def adjusted_groups(known: IncrementalFacts, strategy: str, below: bool = False) -> Proposal:
    """`below`: by the rows of the part below the groups whose keys a change touches, now and before. Raises NotIncremental where the
    groups have to be read again."""
    values = _values(known, below)
    if below:
        terms, estimated = _part_terms(known)
        sentence = (
            "groups are adjusted by what they are made of: of the keys below them that a change touches, now and before"
        )
    else:
        terms, estimated = _terms(known), known.cost.adjusted(len(known.changes.sources))
        sentence = "groups that rows came to or went from are adjusted by these rows"
    found = AffectedQuery("", values.keys)
    anchors = ", ".join(found.columns.values())
    affected = relation("affected")
    unsure = f"(SELECT {anchors} FROM {affected} WHERE `__mv_state` = '?')"
    again = known.tree.restricted(unsure, found, known.known_columns)
    adjusted = ", ".join(
        [f"{anchor} AS {quoted(key)}" for key, anchor in found.columns.items()]
        + [f"{value.new} AS {quoted(value.name)}" for value in values.others]
    )
    listed = ", ".join(quoted(name) for name in (*values.keys, *(value.name for value in values.others)))
    query = (
        f"SELECT {adjusted} FROM {affected} WHERE `__mv_state` = '+'\n"
        f"UNION ALL\nSELECT {listed} FROM (\n{known.texts.pinned(again)}\n)"
    )
    old = {value.name: value.old for value in values.others if value.follows}
    states = _affected(values, found, terms)
    steps = (*stage_sources(known), stage_affected(states), *merge_rows(known, query, found.columns, old))
    candidate = Candidate(strategy, True, (Reason("ADJUSTED_GROUPS", sentence),), estimated)
    if not _sure(known, values, below):
        return Proposal(candidate, steps, known.cost.complete)
    ready = (*stage_sources(known), *publish_ready(known, _ready(known, values, found, states)))
    return Proposal(candidate, ready, known.cost.complete, instead=steps)


def groups_or_parts(known: IncrementalFacts, strategy: str, why: Reason) -> Proposal:
    """Groups or partitions that a change touches, recomputed; where a change cannot be followed to them, adjusted by what is
    below them. Raises NotIncremental."""
    try:
        return for_affected_anchors(known, strategy, why)
    except NotIncremental as error:
        try:
            return adjusted_groups(known, strategy, below=True)
        except NotIncremental:
            raise error from None


def _sure(known: IncrementalFacts, values: Values, below: bool) -> bool:
    """Whether hardly a group will have to be recomputed, so that it is worth trying without."""
    only_came = not below and known.move is None and all(change.append_only for change in known.changes.sources)
    return only_came or (values.counted and not values.extremes)


def _ready(known: IncrementalFacts, values: Values, found: AffectedQuery, states: str) -> str:
    """The adjusted groups as they are staged, without those that stay the same."""
    names = {**found.columns, **{value.name: value.new for value in values.others}}
    listed = ", ".join(f"{text} AS {quoted(name)}" for name, text in names.items())
    return (
        f"SELECT `__mv_op`, {listed}, 1 AS `__mv_n` FROM (\nSELECT *, CASE WHEN `__mv_state` = '?' THEN '?' "
        "WHEN `__mv_state` = '-' THEN CASE WHEN `__mv_pre` THEN 'D' ELSE '=' END "
        f"WHEN NOT `__mv_pre` THEN 'I' WHEN {values.differs} THEN 'U' ELSE '=' END AS `__mv_op` FROM (\n{states}\n)\n)\n"
        "WHERE `__mv_op` <> '='"
    )


def _values(known: IncrementalFacts, below: bool) -> Values:
    columns = known.columns.columns
    if known.config.keeps_rows:
        raise NotIncremental("KEPT_ROWS", f"{known.kept_by} leaves rows that no group stands for")
    if known.rewritten.ai_rounds:
        raise NotIncremental("AI_ANSWERS", "answers of AI functions can change without their rows")
    if not all(c.in_query and c.in_target and not c.retyped and not c.cast for c in columns):
        raise NotIncremental("COLUMNS_CHANGED", "the query and the table differ in their columns")
    kept = {c.name.lower() for c in columns if c.role is Role.KEPT}
    if kept and known.move is not None:
        raise NotIncremental("KEPT_COLUMNS", "a group that the clock lets in draws at another instant than its rows do")
    if any(c.redraw for c in columns):
        raise NotIncremental("REDRAWN", "on_row_update: redraw draws anew for a group that only lost rows")
    types = {c.name.lower(): c.type for c in columns if c.name.lower() not in kept}
    made_of = {name.lower(): part for name, part in parts(known.tree.node, types, known.texts.columns).items()}
    steps = len(known.changes.sources) + (known.move is not None)
    if any(made_of.get(key.lower()) is not GroupPart.PLAIN for key in known.columns.keys):
        raise NotIncremental("KEY_OF_VALUES", "a column of unique_key is computed from the rows of its group")
    return Values(
        known.columns.keys,
        tuple(value_of(k, c.name, c.type, made_of.get(c.name.lower()), below or steps == 1)
              for k, c in enumerate(columns) if c.role is not Role.KEY),
        always=isinstance(known.tree.node, SelectNode) and not known.tree.node.grouped,
        counted=bool({GroupPart.ROWS, GroupPart.COUNT} & set(made_of.values())),
        extremes=bool({GroupPart.MIN, GroupPart.MAX} & set(made_of.values())),
    )  # fmt: skip


def _terms(known: IncrementalFacts) -> list[tuple[bool, str]]:
    """What came (True) and what went, one change after the other: each source from its old to its new rows at the last
    run's instant, then the clock. Raises NotIncremental where a step is not linear."""
    moved = known.moved_windows
    if known.move is not None and moved is None:
        raise NotIncremental("WINDOWS", "the windows stand on more than one source, or are no comparisons")
    changed = [change.name for change in known.changes.sources]
    for name in (*changed, *([moved.name] if moved else ())):
        if not known.tree.linear_below_groups(name):
            raise NotIncremental("NOT_LINEAR", f"a changed row of {name} can change what other rows give")
    sql, texts, terms = known.tree.sql, known.texts, []
    for came in (True, False):
        for k, change in enumerate(known.changes.sources):
            if came or not change.append_only:
                text = texts.on_step(sql, k, came)
                terms.append((came, known.evaluate(pin(text, known.move.before).sql if known.move else text).sql))
        if moved is not None and known.move is not None:
            text = texts.on_move(sql, moved, came)
            terms.append((came, known.evaluate(text if came else pin(text, known.move.before).sql).sql))
    if not terms:
        raise NotIncremental("NOTHING_CHANGED", "no table of the query changed")
    return terms


def _part_terms(known: IncrementalFacts) -> tuple[list[tuple[bool, str]], float]:
    """What came and went, as rows of the part below the groups; and what it costs to find them. Raises NotIncremental."""
    if known.move is not None:
        raise NotIncremental("WINDOWS", "the clock moved rows below the groups")
    types = {s.name.lower(): {c.name.lower(): c.type for c in s.columns} for s in known.facts.sources}
    changed = [change.name.lower() for change in known.changes.sources]
    touched = "`__mv_touched`"
    found, text = known.tree.touched_part(known.texts, changed, types, touched)
    sides = ((True, known.texts.pinned(text)), (False, known.texts.pinned_before(text)))
    terms = [
        (came, known.evaluate(f"WITH {touched} AS (\n{found.sql}\n)\nSELECT * FROM (\n{side}\n)").sql)
        for came, side in sides
    ]
    return terms, known.cost.below(found.read)


def _affected(values: Values, found: AffectedQuery, terms: Sequence[tuple[bool, str]]) -> str:
    """One row for each group that a row came to or went from: its key, old and new values, and what is to be done:
    `+` take the new values, `-` the group is gone, `?` recompute it. `__mv_pre`: whether the table has the group."""
    keys = [f"{quoted(key)} AS {anchor}" for key, anchor in found.columns.items()]
    anchors = ", ".join(found.columns.values())
    sides = "\nUNION ALL\n".join(
        f"SELECT {', '.join([*keys, *(f'{quoted(v.name)} AS {v.value}' for v in values.others)])}, "
        f"{str(came).lower()} AS `__mv_came` FROM (\n{text}\n)"
        for came, text in terms
    )
    summed = ",\n".join(["bool_or(NOT `__mv_came`) AS `__mv_went`", *(s for v in values.others for s in v.summed)])
    on = " AND ".join(f"t.{quoted(key)} = s.{anchor}" for key, anchor in found.columns.items())
    listed = [f"s.{anchor}" for anchor in found.columns.values()]
    there = f"t.{quoted(values.keys[0])} IS NOT NULL"
    compared = ",\n".join([
        *listed, f"{there} AS `__mv_pre`", "s.`__mv_went`",
        *(f"t.{quoted(v.name)} AS {v.old}" for v in values.others), *(c for v in values.others for c in v.carried),
    ])  # fmt: skip
    news = ", ".join(f"{v.adjusted} AS {v.new}" for v in values.others)
    return (
        f"WITH `__mv_terms` AS (\n{sides}\n),\n"
        f"`__mv_sums` AS (\nSELECT {anchors},\n{summed}\nFROM `__mv_terms` GROUP BY {anchors}\n),\n"
        f"`__mv_groups` AS (\nSELECT {compared}\nFROM `__mv_sums` AS s LEFT JOIN {relation('target')} AS t ON {on}\n),\n"
        f"`__mv_adjusted` AS (\nSELECT *{', ' if news else ''}{news} FROM `__mv_groups`\n)\n"
        f"SELECT *, {values.state} AS `__mv_state` FROM `__mv_adjusted`"
    )
