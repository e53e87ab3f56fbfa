"""The record that this run's commit will carry, as far as it is known before the run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from spark_mv.maintenance.columns import ColumnPlan
from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.second_reading import carried
from spark_mv.maintenance.situation import Situation

MOST = 20
"""Models that are remembered of one AI call."""


def config_fingerprint(config: ModelConfig, ai_identity: str = "") -> str:
    """Hash of the settings that decide which rows and values the table holds."""
    parts = {
        "unique_key": [key.lower() for key in config.unique_key],
        "on_source_delete": config.on_source_delete,
        "freeze": sorted(name.lower() for name in config.freeze),
        "on_schema_change": config.on_schema_change,
        "partition_by": config.partition_by,
        "cluster_by": config.cluster_by,
        "ai": ai_identity,
    }
    if config.freeze_where:  # only then: what runs without it have recorded stays theirs
        parts["freeze_where"] = config.freeze_where
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def settings_print(situation: Situation) -> str:
    """The fingerprint of the settings of this run."""
    return config_fingerprint(situation.config, situation.ai.identity_text if situation.ai else "")


def next_record(situation: Situation, columns: ColumnPlan) -> RunRecord:
    """What the steps find out is added by the run."""
    facts, rewritten, target = situation.facts, situation.rewritten, situation.facts.target
    last = target.record
    bounded = target.intact and not columns.identity.rekeyed and not situation.config.sensitive_key
    ranged = last if last and bounded else None
    return RunRecord(
        query=situation.analysis.fingerprint,
        config=settings_print(situation),
        as_of=facts.as_of,
        time_zone=facts.time_zone,
        sources=facts.source_versions,
        kept=columns.kept_prints,
        filter_print=rewritten.filter_print,
        columns=columns.prints,
        keys=tuple(name.lower() for name in situation.config.unique_key),
        pins=dict(rewritten.pins),
        settings=dict(facts.settings),
        functions=facts.functions,
        source_columns=facts.source_columns,
        clock_solved=rewritten.clock_solved,
        base_version=target.version if target.exists else None,
        turn=target.turn,
        invocation_id=facts.invocation_id,
        partial=facts.partial,
        ask_again=target.ask_again,
        ai_pending=last.ai_pending if last else 0,
        ai_retry_at=last.ai_retry_at if last else None,
        unaudited=(last.unaudited if last else 0) + 1,
        started_at=facts.started_at,
        read_twice=carried(last, situation.analysis.fingerprint, facts),
        result_print=facts.result_print,
        result=tuple((c.name, c.type) for c in rewritten.columns) if facts.result_print else (),
        clock_rows=last.clock_rows if last else None,
        key_bound=ranged.key_bound if ranged else None,
        key_floor=ranged.key_floor if ranged else None,
        ai_before=_answered_by(situation),
    )


def _answered_by(situation: Situation) -> dict[str, tuple[str, ...]]:
    """Who has answered the model's AI calls so far, this run's model first."""
    last = situation.facts.target.record
    found = {name: tuple(known) for name, known in (last.ai_before if last else {}).items()}
    for call in (call for round_ in situation.rewritten.ai_rounds for call in round_):
        earlier = [known for known in found.get(call.lineage, ()) if known != call.identity_hash]
        found[call.lineage] = (call.identity_hash, *earlier)[:MOST]
    return found


def audited_record(record: RunRecord, last: RunRecord) -> RunRecord:
    """The record of an audit, from that of a run: it asks for nothing, honours no request, and is no measure of what a run
    takes, so that it says of these what the `last` one said."""
    return replace(
        record,
        unaudited=0,
        ai_pending=last.ai_pending,
        ai_retry_at=last.ai_retry_at,
        honoured=last.base_version if last.honoured is None else last.honoured,
        ask_again=last.ask_again,
        strategy=last.strategy,
        target_rows=last.target_rows,
        source_rows=last.source_rows,
    )
