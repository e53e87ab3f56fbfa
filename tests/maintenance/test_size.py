"""A few lines of YAML that stand for billions of values are refused at once, by a message of ordinary length."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
import yaml

from spark_mv.maintenance.config import read_config
from spark_mv.maintenance.errors import ConfigError, RefusedError
from spark_mv.spark.run.as_of import as_of_instant

pytestmark = pytest.mark.unit
TEXT = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 12)
)


@pytest.fixture(scope="module")
def bomb() -> Any:
    return yaml.safe_load(TEXT)["a11"]


@pytest.mark.parametrize(
    "word", ["unique_key", "refresh", "on_row_update", "freeze", "ai", "tblproperties", "max_rows_changed"]
)
def test_settings(bomb: Any, word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config("m", {"unique_key": "id", word: bomb})
    assert f"{word}: holds more than" in str(caught.value) and len(str(caught.value)) < 500


def test_the_instant(bomb: Any) -> None:
    with pytest.raises(RefusedError, match="AS_OF") as caught:
        as_of_instant(bomb, datetime.now(timezone.utc), "UTC")
    assert len(str(caught.value)) < 1000
