"""For the test `matches_recompute`: where a table differs from a complete recompute of what its last run has read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spark_mv.maintenance.adoption import ADOPTED
from spark_mv.maintenance.columns import Role, StagedColumn
from spark_mv.maintenance.decide_audit import decide_audit
from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.facts import SourceFacts
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.row_limit import row_limit
from spark_mv.maintenance.steps.versions import MOVED
from spark_mv.maintenance.strategies.no_op import setting_changes
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.commits import Ask
from spark_mv.spark.run.execute import MvRun
from spark_mv.spark.run.invocation import Invocation
from spark_mv.spark.run.look_up import target_facts
from spark_mv.spark.run.planning import set_for
from spark_mv.spark.run.prepare import look
from spark_mv.spark.run.prepared import Prepared

_FINE = 1_000_000  # parts into which the keys are dealt for a sample


def recompute_args(adapter: Any, invocation: Invocation, profile: Mapping[str, Any], sample: Any) -> dict[str, Any]:
    """Arguments of the macro that stages what differs: the query at the versions, instant and kept values of the last run,
    against the table. `sample`: a share of the keys, None for all. Raises RefusedError where that cannot be compared, and
    says why."""
    name, share = invocation.name, _share(invocation.name, sample)
    query = Ask(adapter.query, adapter.mv_spark())
    target = target_facts(query, invocation.target, invocation.target_exists)
    record = target.record
    if record is None:
        raise _cannot(name, "it has no record of a run yet. Run it first")
    asked = replace(
        invocation.by_any_strategy(),
        as_of=f"{record.as_of}+00:00",
        allow_future_as_of=True,  # it was, when the run was
        full_refresh=False,
        partial=False,
    )
    seen = look(adapter, asked, profile)
    _same_query(name, seen, record)
    set_for(adapter, seen.rewritten.sql)  # of the session in which the test's own statement comes next
    facts = replace(
        seen.facts,
        # as it is: what others wrote is a difference, and nothing is put right here
        target=replace(target, intact=True, forget=()),
        sources=tuple(_as_read(name, source, record) for source in seen.facts.sources),
    )
    plan = decide_audit(seen.to_audit(query, facts))
    moved = [s.name for s, now in zip(facts.sources, seen.facts.sources, strict=True) if s.version != now.version]
    if moved and any(step.kind == "confirm_sources" for step in plan.steps):
        raise _cannot(
            name,
            f"{', '.join(moved)} was written to since its last run, and is read through a view, which cannot be read at an older "
            "version. Test right after the run, or read the table itself",
        )
    stage = next(step for step in plan.steps if step.kind == "stage_changes" and step.args["into"] == "stage")
    relations = {
        "target": invocation.target,
        "state": invocation.state_table,
        "stage": "",
        "state_stage": "",
        "affected": "",
    }
    run = MvRun(adapter, plan, relations, seen.rewritten.sql, "", facts.as_of)
    args = dict(run._view(stage).args)
    if share is not None:
        condition = _sampled(plan.columns, share)
        args["query"] = f"SELECT * FROM (\n{args['query']}\n) WHERE {condition}"
        args["target"] = f"(SELECT * FROM {args['target']} WHERE {condition})"
    return args


def _share(model: str, sample: Any) -> int | None:
    try:
        limit = row_limit(sample)
    except ValueError:
        limit = None
    if sample is not None and (limit is None or not limit.share):  # of no keys at all, nothing can be found
        raise RefusedError(
            "WRONG_SAMPLE", f"model {model}: matches_recompute: sample: {sample!r} is no share such as 0.1 or '10%'"
        )
    return limit.most(_FINE) if limit is not None else None


def _sampled(columns: Sequence[StagedColumn], share: int) -> str:
    keys = ", ".join(f"CAST({quoted(c.name)} AS {c.type})" for c in columns if c.role is Role.KEY)
    return f"pmod(xxhash64({keys}), {_FINE}) < {share}"


def _same_query(model: str, seen: Prepared, record: RunRecord) -> None:
    if record.strategy == ADOPTED:
        raise _cannot(model, "it was adopted and has not been run since. Run it first")
    if record.partial:
        raise _cannot(model, "its last run saw only part of its sources (--empty or --sample). Run it first")
    if record.query != seen.analysis.fingerprint:
        raise _cannot(model, "its SQL was changed since its last run. Run it first")
    pins = seen.rewritten.pins
    other = sorted(n for n in {*pins, *record.pins} if pins.get(n) != record.pins.get(n))
    if changed := setting_changes(seen.facts, record):
        raise _cannot(model, f"this session is not that of its last run: {changed[0].sentence}")
    if other:
        raise _cannot(model, f"{', '.join(other)} differs in this session from that of its last run")


def _as_read(model: str, source: SourceFacts, record: RunRecord) -> SourceFacts:
    """The source as the last run read it."""
    if source.view_text is not None:
        return source
    read = record.sources.get(source.name)
    if source.version is None or read is None:
        raise _cannot(model, f"{source.without_version}, so that what its last run read cannot be read again")
    if read.version == MOVED:
        raise _cannot(model, f"{source.name} was written to while its last run read it. Run it again")
    return replace(source, version=read)


def _cannot(model: str, why: str) -> RefusedError:
    return RefusedError("NOT_COMPARABLE", f"model {model} cannot be compared with a recompute: {why}")
