"""dbt Python models, run in dbt's own process on the Spark session of the model's connection."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from dbt_common.exceptions import DbtRuntimeError


def run_python_model(spark: Any, unique_id: str, compiled_code: str) -> None:
    """Executes the model's code, which writes its table itself. Raises DbtRuntimeError with the model's own frames."""
    name = f"<{unique_id}>"
    namespace: dict[str, Any] = {"__name__": unique_id.replace(".", "_"), "spark": spark}
    try:
        exec(compile(compiled_code, name, "exec"), namespace)
    except Exception as error:
        frames = traceback.extract_tb(sys.exc_info()[2])
        own = [frame for frame in frames if frame.filename == name]
        lines = compiled_code.splitlines()
        places = "".join(
            f"\n  line {frame.lineno} of the compiled model, in {frame.name}: {lines[(frame.lineno or 1) - 1].strip()}"
            for frame in own
        )
        raise DbtRuntimeError(f"Python model failed: {type(error).__name__}: {error}{places}") from error
