"""The two ways to recompute a part of a result: from changed rows alone, or for the anchors that changes touch."""

from __future__ import annotations

from spark_mv.maintenance.columns import Role
from spark_mv.maintenance.incremental_facts import IncrementalFacts, Proposal
from spark_mv.maintenance.plan import Candidate, Reason, Step
from spark_mv.maintenance.steps.staging import AffectedRows, merge_rows, stage_affected, stage_sources
from spark_mv.query.delta.restrict import AffectedQuery, NotIncremental, anchor_column
from spark_mv.query.syntax.reserved import relation
from spark_mv.query.syntax.table_name import quoted


def from_changed_rows(known: IncrementalFacts, strategy: str) -> Proposal:
    """For a result that is linear in what came or went, rows of one source, or of several in arms of their own: Q(rows that
    came) − Q(rows that went), the former at the as-of instant, the latter at that of the last run."""
    texts, moved = known.texts, known.moved_windows
    sql = known.tree.sql if known.move is not None else known.on_changed or known.tree.sql
    columns = {key: anchor_column(k) for k, key in enumerate(known.columns.keys)}
    listed = ", ".join(f"{quoted(key)} AS {column}" for key, column in columns.items())
    images = _images(known)
    sides = []
    for came in (True, False):
        at = known.move.before if known.move and not came else known.pins
        query = known.evaluate(texts.on_changes(sql, came, moved, at)).sql
        old = "".join(f", {'NULL' if came else value} AS {name}" for name, value in images.values())
        sides.append(f"SELECT {listed}, {'false' if came else 'true'} AS `__mv_pre`{old} FROM (\n{query}\n)")
    anchors = ", ".join(columns.values())
    union = "\nUNION ALL\n".join(sides)
    old = "".join(f", first({name}, true) AS {name}" for name, _ in images.values())
    affected = f"SELECT {anchors}, max(`__mv_pre`) AS `__mv_pre`{old} FROM (\n{union}\n) GROUP BY {anchors}"
    if moved is not None and known.move is not None and known.changes.sources:
        passing = known.evaluate(texts.on_passing(sql, moved, known.move.before)).sql
        affected = _without_passing(union, f"SELECT {listed} FROM (\n{passing}\n)", anchors)
    # rows of staged changes alone are as quickly asked again as written down once more
    inline = known.only_changes and not known.rewritten.ai_rounds
    steps = (
        *stage_sources(known),
        *([] if inline else [stage_affected(affected)]),
        *merge_rows(
            known,
            texts.on_changes(sql, True, moved, known.pins),
            columns,
            {c: name for c, (name, _) in images.items()},
            AffectedRows(affected, f"SELECT {anchors} FROM (\n{union}\n)") if inline else None,
        ),
    )
    moves = "rows came or went in" if known.changes.sources else "the clock moved rows of"
    whose = known.linear_source or " and ".join(source.name for source in known.changes.sources)
    why = Reason("CHANGED_ROWS", f"only {moves} {whose}, and each of its rows gives rows of its own")
    candidate = Candidate(strategy, True, (why,), known.cost.linear)
    return Proposal(candidate, steps, known.cost.complete, few=known.few)


def _without_passing(sides: str, passing: str, anchors: str) -> str:
    """The affected rows where sources and clock both moved: a row that came and left again at once is among those that
    went, though the table never had it. The table's own row of its key must stay."""
    return (
        f"SELECT {anchors}, sum(`__mv_went`) > 0 AS `__mv_pre` FROM (\n"
        f"SELECT {anchors}, CAST(`__mv_pre` AS INT) AS `__mv_went`, NOT `__mv_pre` AS `__mv_came` FROM (\n{sides}\n)\n"
        f"UNION ALL\nSELECT {anchors}, -1 AS `__mv_went`, false AS `__mv_came` FROM (\n{passing}\n)\n"
        f") GROUP BY {anchors} HAVING sum(`__mv_went`) > 0 OR bool_or(`__mv_came`)"
    )


def _images(known: IncrementalFacts) -> dict[str, tuple[str, str]]:
    """Columns whose values in the table need not be read, because the rows that went give them: the table holds the query
    at the last run's instant. Column → its name among the affected rows, and its value of the query.

    Not with AI answers, which change without their rows; nor where sources and clock both moved, because then a row that
    came and left at once would stand beside the one that the table has.
    """
    if known.rewritten.ai_rounds or (known.move is not None and known.changes.sources):
        return {}
    data = [c for c in known.columns.columns if c.role is Role.DATA and c.in_query and c.in_target and not c.retyped]
    return {
        c.name: (f"`__mv_old_{k}`", f"CAST({quoted(c.name)} AS {c.type})" if c.cast else quoted(c.name))
        for k, c in enumerate(data)
    }


def affected_anchors(known: IncrementalFacts) -> tuple[AffectedQuery, list[Step]]:
    """The anchors that changes and the clock touch, and the steps that stage them. Raises NotIncremental."""
    found = known.tree.affected(known.texts, known.columns.keys, known.comparable, known.move)
    affected = known.evaluate(f"SELECT *, true AS `__mv_pre` FROM (\n{found.sql}\n)").sql
    return found, [*stage_sources(known), stage_affected(affected)]


def for_affected_anchors(known: IncrementalFacts, strategy: str, why: Reason) -> Proposal:
    """Recompute the rows whose anchors a change touches. Raises NotIncremental."""
    found, steps = affected_anchors(known)
    keys = {key.lower() for key in known.columns.keys}
    if known.config.keeps_rows and not {a.lower() for a in found.anchors} <= keys:
        raise NotIncremental("KEPT_ROWS", f"{known.kept_by} needs changes that can be followed to the unique_key")
    if known.columns.stays and known.move is not None:
        raise NotIncremental(
            "FROZEN_ROWS", "freeze_where: the clock takes rows that no row of the sources tells of any more"
        )
    query = known.texts.pinned(known.tree.restricted(relation("affected"), found, known.known_columns))
    sentence = f"{why.sentence}, found again by {', '.join(found.anchors)}"
    return Proposal(
        Candidate(strategy, True, (Reason(why.code, sentence),), known.cost.restricted(found.read)),
        (*steps, *merge_rows(known, query, found.columns)),
        known.cost.complete,
    )
