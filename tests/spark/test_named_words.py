"""Names that people give: which model, which word of the profile, which variable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from spark_mv.spark.adapter.credentials import SparkMvCredentials
from spark_mv.spark.adapter.named_words import VARIABLES, model_named, unknown_word


def node(name: str, materialized: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "unique_id": f"model.p.{name}",
        "resource_type": "model",
        "config": {"materialized": materialized},
        **more,
    }


NODES = [
    node("tickets", "nondeterministic_mv"),
    node("orders", "table"),
    {"name": "seeded", "unique_id": "seed.p.seeded", "resource_type": "seed", "config": {"materialized": "seed"}},
    node("wide", "nondeterministic_mv", version=1, latest_version=2),
    {**node("wide", "nondeterministic_mv", version=2, latest_version=2), "unique_id": "model.p.wide.v2"},
]


def test_a_model_is_found_by_name_and_unique_id() -> None:
    assert model_named(NODES, "tickets") is NODES[0]
    assert model_named(NODES, "model.p.tickets") is NODES[0]
    assert model_named(NODES, "orders", any_materialization=True) is NODES[1]


def test_of_several_versions_it_is_the_latest() -> None:
    assert model_named(NODES, "wide")["version"] == 2
    assert model_named(NODES, "model.p.wide")["version"] == 1
    assert model_named(NODES, "wide.v1")["version"] == 1
    assert model_named(NODES, "wide.v2")["version"] == 2


def test_of_two_packages_models_the_package_is_said() -> None:
    both = [
        {**node("wide", "nondeterministic_mv"), "package_name": name, "unique_id": f"model.{name}.wide"}
        for name in "pq"
    ]
    assert model_named(both, "q.wide") is both[1]
    with pytest.raises(ValueError, match=r"several models are called wide: model\.p\.wide, model\.q\.wide"):
        model_named(both, "wide")


@pytest.mark.parametrize(
    ("name", "any_materialization", "says"),
    [
        (
            "orders",
            False,
            "orders is materialized as table; this is for models with `materialized='nondeterministic_mv'`",
        ),
        ("tikets", False, "no nondeterministic_mv named 'tikets' (did you mean 'tickets'?)"),
        ("zzz", False, "no nondeterministic_mv named 'zzz'; this project has: tickets, wide"),
        ("ordres", True, "no model named 'ordres' (did you mean 'orders'?)"),
        ("seeded", True, "no model named 'seeded'; this project has: orders, tickets, wide"),
    ],
)
def test_what_is_said_of_others(name: str, any_materialization: bool, says: str) -> None:
    with pytest.raises(ValueError) as error:
        model_named(NODES, name, any_materialization)
    assert str(error.value) == says


def test_misspelt_words_of_the_profile_are_refused_and_others_are_not_ours() -> None:
    good = {"method": "session", "schema": "s", "host": None, "threads": 4, "my_own": 1}
    SparkMvCredentials.validate(good)
    with pytest.raises(DbtRuntimeError, match=r"'max_rows_chnged' \(did you mean 'max_rows_changed'\?\)"):
        SparkMvCredentials.validate({**good, "max_rows_chnged": "10 %"})
    with pytest.raises(DbtRuntimeError, match=r"'warehose' \(did you mean 'warehouse'\?\)"):
        SparkMvCredentials.validate({**good, "warehose": "w"})


def test_misspelt_variables() -> None:
    assert unknown_word(["as_of", "run_date", "country"], VARIABLES) is None
    assert unknown_word(["as_off"], VARIABLES) == "'as_off' (did you mean 'as_of'?)"
    assert unknown_word(["max_row_changed"], VARIABLES) == "'max_row_changed' (did you mean 'max_rows_changed'?)"


def test_every_variable_of_runs_is_handed_on() -> None:
    macros = Path(__file__).parents[2] / "macros"
    texts = "".join(file.read_text(encoding="utf-8") for file in macros.rglob("*.sql"))
    assert {*re.findall(r"\bvar\('(\w+)'", texts)} == {*VARIABLES}
