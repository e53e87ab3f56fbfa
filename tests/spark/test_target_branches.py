"""Macros of packages that compare the type of the profile, and what `target` says to them."""

from __future__ import annotations

from typing import Any

import pytest

from spark_mv.spark.adapter.credentials import SparkMvCredentials
from spark_mv.spark.adapter.target_branches import Branch, branches, warning

ASKING = [
    "{% if target.type in ('bigquery', 'spark') %}`{{ c }}`{% else %}\"{{ c }}\"{% endif %}",
    "{% if target.type in ['redshift', \"databricks\"] %}",
    "{% if target.type not in ('spark', 'databricks') %}",
    "{{ 9 if target.type == 'spark' else -1 }}",
    "{{ 9 if target['type'] != \"databricks\" else -1 }}",
    "{% if target.get('type') == 'spark' %}",
    "{% if 'spark' == target.type %}",
    "{% if target.type | lower == 'spark' %}",
    "{% set kind = target.type %}{% if kind in ['spark'] %}",
]
NOT_ASKING = [
    "{% if target.type == 'snowflake' %}",
    "{{ target.name != 'databricks' and target.type != 'sqlserver' }}",
    "{% if target.type in ('spark', 'spark_mv') %}",
    "{# target.type == 'spark' #}{{ target.schema }}",
    "select 'spark' as target_type",
    "{{ return(adapter.dispatch('quote', 'p')(column)) }}",
]


@pytest.mark.parametrize("text", ASKING)
def test_a_comparison_with_a_type_of_spark_is_found(text: str) -> None:
    assert branches([(Branch("p", "m", "m.sql"), text)]) == [Branch("p", "m", "m.sql")]


@pytest.mark.parametrize("text", NOT_ASKING)
def test_nothing_else_is(text: str) -> None:
    assert branches([(Branch("p", "m", "m.sql"), text)]) == []


def test_the_warning_names_package_macro_and_cure() -> None:
    found = branches([(Branch("p", f"m{k}", "a/m.sql"), ASKING[0]) for k in range(7)])
    text = warning(found)
    assert "p: m0 (a/m.sql), m1" in text and "and 2 more" in text and "`target_type: spark`" in text
    (other,) = branches([(Branch("p", "m", "m.sql"), "{% if adapter.type() == 'spark' %}")])
    assert other.asks == "adapter.type()" and "`target_type" not in warning([other])


def target(**keys: Any) -> dict[str, Any]:
    from dbt.config.profile import Profile
    from dbt.flags import get_flags

    if not hasattr(get_flags(), "LOG_CACHE_EVENTS"):  # nothing before this has asked dbt for a command
        get_flags().LOG_CACHE_EVENTS = False
    credentials = SparkMvCredentials.from_dict({"schema": "s", "method": "session", **keys})
    return Profile("p", "t", 1, credentials).to_target_dict()


def test_what_target_says() -> None:
    assert (target()["type"], target()["database"]) == ("spark_mv", "")
    assert target(target_type="spark")["type"] == "spark"
    assert target()["type"] == "spark_mv"
    with pytest.raises(Exception, match="target_type: 'sprak' is not one of spark_mv, spark, databricks"):
        target(target_type="sprak")


def test_dbt_debug_shows_no_empty_database() -> None:
    credentials = SparkMvCredentials.from_dict({"schema": "s", "method": "session"})
    assert "database" not in dict(credentials.connection_info())


def test_an_empty_database_is_none() -> None:
    """A relation made with `target.database` is the one that dbt itself makes, by whichever way it is made."""
    from spark_mv.spark.adapter.relation import SparkMvRelation

    own = SparkMvRelation.create(schema="s", identifier="t")
    for found in (
        SparkMvRelation.create(database="", schema="s", identifier="t"),
        SparkMvRelation.create(database=None, schema="s", identifier="t"),
        own.incorporate(path={"database": ""}),
        SparkMvRelation.create(database="", schema="s", identifier="u").incorporate(path={"identifier": "t"}),
    ):
        assert found == own and found.database is None and found.render() == "s.t"
