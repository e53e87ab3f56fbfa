"""The template from which `dbt init` makes a profile; tests/packaging/test_wheel.py goes through `dbt init` itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

TEMPLATE = Path(__file__).parents[2] / "dbt" / "include" / "spark_mv" / "profile_template.yml"


@pytest.mark.parametrize("choice", list(yaml.safe_load(TEMPLATE.read_text())["prompts"]["_choose_connection_method"]))
def test_each_choice_gives_keys_that_the_credentials_know(choice: str) -> None:
    from spark_mv.spark.adapter.credentials import SparkMvCredentials

    asked = yaml.safe_load(TEMPLATE.read_text())["prompts"]
    keys = {key.removeprefix("_fixed_") for key in asked["_choose_connection_method"][choice]}
    keys |= {key for key in asked if not key.startswith("_")} - {"threads"}
    known = set(SparkMvCredentials.__dataclass_fields__)
    assert keys <= known
