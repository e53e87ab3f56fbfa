"""The jobs of a thread carry the name of the node that it runs: what a cluster's pages, event logs and its operators see."""

from __future__ import annotations

import logging
from typing import Any

from spark_mv.spark.session.session import is_connect

_PREFIX = "dbt "
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"


def label(spark: Any, name: str | None) -> None:
    """Names the jobs that the calling thread starts from now on. `name` is dbt's, `model.shop.orders`: job group and description of the jobs
    (a tag over Spark Connect, whose server sets both itself) are `dbt model.shop.orders`. A name that could not be told never stops a run."""
    try:
        if is_connect(spark):
            for tag in [tag for tag in spark.getTags() if tag.startswith(_PREFIX)]:
                spark.removeTag(tag)
            if name:
                spark.addTag(_PREFIX + name.replace(",", "_"))
        else:
            for key in (_GROUP, _DESCRIPTION):
                spark.sparkContext.setLocalProperty(key, _PREFIX + name if name else None)
    except Exception as error:
        logging.getLogger(__name__).debug("jobs of %s are not named: %s", name, error)
