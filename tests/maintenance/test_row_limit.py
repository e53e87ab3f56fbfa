"""max_rows_changed: what may be written, and how many rows pass."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.maintenance.config import layered, read_config
from spark_mv.maintenance.errors import ConfigError
from spark_mv.maintenance.row_limit import row_limit


@pytest.mark.parametrize(
    ("written", "before", "most"),
    [
        (0, 10, 0),
        (5, 10, 5),
        ("5", 10, 5),
        (0.2, 10, 2),
        (0.2, 9, 1),
        (".5", 3, 1),
        ("0.29", 100, 29),
        (0.29, 100, 29),
        (0.00001, 200_000, 2),
        ("20%", 10, 2),
        ("12.5 %", 8, 1),
        ("0%", 8, 0),
        ("100%", 8, 8),
        ("50%", 0, 0),
    ],
)
def test_the_most_that_may_change(written: Any, before: int, most: int) -> None:
    limit = row_limit(written)
    assert limit is not None and limit.most(before) == most


@pytest.mark.parametrize(
    "written", [True, False, -1, "-5", -0.2, 1.0, "1.0", 1.5, "101%", "many", "", "nan", float("inf"), "5,000", [5], {}]
)
def test_what_is_refused_with_what_is_allowed(written: Any) -> None:
    with pytest.raises(ConfigError, match=r"max_rows_changed: .* is not a whole number of rows"):
        read_config("m", {"unique_key": "id", "max_rows_changed": written})


def test_the_invocation_wins_over_the_model_and_the_model_over_the_profile() -> None:
    def limit(profile: Any, model: Any, variable: Any) -> Any:
        said = [{"max_rows_changed": value} for value in (profile, model, variable)]
        config = read_config("m", {"unique_key": "id", **layered(*said)})
        return config.max_rows_changed and config.max_rows_changed.written

    assert limit(None, None, None) is None
    assert limit(5, None, None) == "5"
    assert limit(5, "20%", None) == "20%"
    assert limit(5, "20%", 0) == "0"
