"""Level, policy and cause of each column, for the catalogue and the manifest of `dbt docs generate`."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.spark.adapter.catalog_levels import IN_META, column_levels, level_stats, model_of, put_into_meta
from spark_mv.spark.adapter.starter import make_project

pytestmark = pytest.mark.unit
CONFIG = SimpleNamespace(
    credentials=SimpleNamespace(functions={}, ai={}), vars=SimpleNamespace(to_dict=dict), project_name="desk"
)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from dbt.cli.main import dbtRunner

    project = make_project("desk", tmp_path_factory.mktemp("project"))
    where = ["--project-dir", str(project), "--profiles-dir", str(project)]
    parsed = dbtRunner().invoke(["--quiet", "--no-send-anonymous-usage-stats", "parse", *where])
    assert parsed.success, parsed.exception
    return parsed.result


def compiled(manifest: Any) -> Any:
    found = copy.deepcopy(manifest.nodes["model.desk.visitors"])
    found.compiled_code = (
        "select visitor_id, visits, case when rand() < 0.5 then 'a' else 'b' end as bucket, current_timestamp() as first_seen_at "
        "from desk.visits"
    )
    return found


def test_each_column_has_its_level(manifest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_mv.spark.adapter import catalog_levels

    monkeypatch.setattr(catalog_levels, "declared_functions", lambda config: {})
    node = compiled(manifest)
    levels = column_levels(node, CONFIG)
    assert {name: one.level for name, one in levels.items()} == {
        "visitor_id": "deterministic", "visits": "deterministic", "bucket": "nondeterministic", "first_seen_at": "command"
    }  # fmt: skip
    assert str(levels["visitor_id"]) == "deterministic" and set(level_stats(levels)) == {
        "column_bucket",
        "column_first_seen_at",
    }
    assert "rand" in levels["bucket"].cause and "freeze" in levels["first_seen_at"].policy

    before = copy.deepcopy(node.config)
    put_into_meta(node, levels)
    assert node.meta[IN_META]["bucket"] == {
        "level": "nondeterministic", "policy": "drawn once per key and kept", "cause": levels["bucket"].cause
    }  # fmt: skip
    assert node.columns["bucket"].meta[IN_META] == node.meta[IN_META]["bucket"]
    assert set(node.columns) == {
        "visitor_id",
        "bucket",
    }  # no column is added: that would change what state:modified compares
    assert node.config == before and manifest.nodes["model.desk.visitors"].same_contents(node, "spark_mv")


def test_what_is_not_compiled_or_of_another_kind_says_nothing(manifest: Any) -> None:
    node = copy.deepcopy(manifest.nodes["model.desk.visitors"])
    assert column_levels(node, CONFIG) == {} and column_levels(None, CONFIG) == {}
    put_into_meta(node, {})
    assert IN_META not in node.meta
    relation = SimpleNamespace(schema=node.schema.upper(), identifier=node.alias)
    assert model_of(manifest, relation).unique_id == "model.desk.visitors"
    assert model_of(manifest, SimpleNamespace(schema="other", identifier=node.alias)) is None
