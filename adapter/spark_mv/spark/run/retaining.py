"""`retain_sources`: the versions of the sources that a run has read are kept from being cleaned up until the next run has read newer ones.

They are held once the run has published: before it, the last run's are those that the table's record names.
"""

from __future__ import annotations

import hashlib
import re

from spark_mv.maintenance.errors import first_line
from spark_mv.maintenance.record import RunRecord
from spark_mv.query.syntax.table_name import quoted_name
from spark_mv.spark.formats.registry import format_of
from spark_mv.spark.run.current import CurrentRun


def holder_of(model: str, table: str) -> str:
    """The name in which a model's table holds versions of its sources: another target of the same project has another one.

    >>> holder_of("model.shop.Daily Orders", "`prod`.`daily`")
    'mv_daily_orders_759160f1'
    """
    word = re.sub(r"\W+", "_", model.rpartition(".")[2].lower())
    return f"mv_{word}_{hashlib.sha256(f'{model} {table}'.encode()).hexdigest()[:8]}"


def retainable(run: CurrentRun, record: RunRecord) -> dict[str, str]:
    """The sources whose versions are to be held, and their formats: of which the record names a version that can be held alone."""
    if not run.retains:
        return {}
    named = {
        name: run.providers.get(name, "") for name, version in sorted(record.sources.items()) if version.version > 0
    }
    formats = {name: format_of(provider) for name, provider in named.items()}
    return {name: found.name for name, found in formats.items() if found is not None and found.retains}


def retain(run: CurrentRun, record: RunRecord) -> None:
    """Hold what the record says, and let go what the last run held besides. The table is published: what fails is said, and costs a
    recompute once the version is gone."""
    holder = holder_of(run.model_id, run.relations["target"])
    before = run.follows.retained if run.follows is not None else {}
    for name, provider in {**before, **record.retained}.items():
        found, table = format_of(provider), quoted_name(name)
        if found is None:
            continue
        try:
            if name in record.retained:
                found.retain(run.ask, table, record.sources[name].version, holder)
            else:
                found.release(run.ask, table, holder)
        except Exception as error:
            done = "held for the next run" if name in record.retained else "let go"
            run.session.warn(f"model {run.plan.model}: retain_sources: {name} could not be {done}: {first_line(error)}")
