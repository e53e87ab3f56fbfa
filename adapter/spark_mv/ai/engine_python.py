"""When the engine's Python cannot do the job: recognised before anything is paid, so that the driver can do it."""

from __future__ import annotations

import re
from typing import Any

from spark_mv.ai.outcome import AiOutcome

# What Spark says when a worker has no Python, another one than the driver's, or one without what mapInPandas takes.
_SIGNS = re.compile(
    r"PYTHON_VERSION_MISMATCH|PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION|ModuleNotFoundError: [^\n]*"
    r"|No module named '?[\w.]+'?|Cannot run program \"[^\n]*?\""
)


class WorkersCannot(Exception):
    """The executors cannot ask. `done` is what they have done before that was found."""

    def __init__(self, reason: str, done: AiOutcome | None = None) -> None:
        super().__init__(reason)
        self.done = done or AiOutcome()


def why_workers_cannot(error: Exception) -> str | None:
    """The reason in one line when the error is one of Python on the engine, None for every other."""
    found = _SIGNS.search(str(error))
    return f"the engine's Python cannot run the job ({found.group()})" if found else None


def refuse_repeats(spark: Any) -> bool:
    """Whether tasks must be barrier tasks: Spark never runs a second copy of those, which would pay twice.

    Raises WorkersCannot where Spark may start second copies and allows no barrier (dynamic allocation).
    """

    def on(name: str) -> bool:
        return str(spark.conf.get(name, "false")).lower() == "true"

    if not on("spark.speculation"):
        return False
    if on("spark.dynamicAllocation.enabled"):
        raise WorkersCannot("spark.speculation with spark.dynamicAllocation may run a task twice, and so pay twice")
    return True
