"""Words of a model's config that say the same as another, or over which another wins; the condition of frozen rows."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from spark_mv.maintenance.config import AI_POLICIES, MACRO_WORDS, OWN_WORDS, read_config, with_meta_words
from spark_mv.maintenance.errors import ConfigError
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.pin import Pins
from spark_mv.query.rewrite.row_condition import RowCondition, row_condition
from spark_mv.spark.run.as_of import ahead_of_clock
from spark_mv.spark.run.invocation import Invocation

pytestmark = pytest.mark.unit

CLOCK = datetime(2026, 2, 1, 12, tzinfo=timezone.utc)
TYPES = {"day": "date", "ts": "timestamp", "status": "string", "place": "struct<city:string>"}


def test_words_that_say_the_same() -> None:
    assert read_config("m", {"unique_key": "id", "refresh": "incremental_strict"}).refresh == "incremental"
    assert read_config("m", {"unique_key": "id", "on_ai_error": "keep_old"}).ai == {"on_ai_error": "keep_old"}
    with pytest.raises(ConfigError, match=r"\[CONFIG\].*\n.*freeze_where: \['day'\] is not a condition"):
        read_config("m", {"unique_key": "id", "freeze_where": ["day"]})
    with pytest.raises(ConfigError, match="did you mean 'freeze_where'"):
        read_config("m", {"unique_key": "id", "freeze_wher": "true"})


@pytest.mark.parametrize(
    ("word", "value", "said"),
    [
        ("unique_key", 5, "unique_key: 5 is no column"),
        ("unique_key", {"a": "b"}, "unique_key: {'a': 'b'} is no column"),
        ("unique_key", ["a", ["b"]], r"unique_key: \['a', \['b'\]\] is no column"),
        ("unique_key", ["a", "b", "A"], "unique_key: A is named twice"),
        ("freeze", True, "freeze: True is no column"),
        (
            "partition_by",
            {"field": "d", "data_type": "date"},
            "partition_by: {'field': 'd', 'data_type': 'date'} is no column",
        ),
        ("liquid_clustered_by", [1], r"liquid_clustered_by: \[1\] is no column"),
    ],
)
def test_what_names_no_column_is_said(word: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        read_config("m", {"unique_key": "id", word: value})
    assert str(refused.value).count("\n") == 1  # nothing else


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"partition_by": "d", "liquid_clustered_by": "id"},
            "partition_by and liquid_clustered_by: a table has one or the other",
        ),
        ({"tblproperties": "x"}, "tblproperties: expected a mapping of names to values, got 'x'"),
        ({"tblproperties": {"a": ["b"]}}, r"tblproperties: a: \['b'\] is no value"),
        (
            {"tblproperties": {"delta.enableChangeDataFeed": "maybe"}},
            "delta.enableChangeDataFeed: 'maybe' is not true or false",
        ),
        ({"location_root": 5}, "location_root: 5 is no absolute path"),
        ({"location_root": "data"}, "location_root: 'data' is no absolute path"),
        ({"max_ai_calls": 5, "ai": {"max_ai_calls": 6}}, "max_ai_calls: 5 and, in the `ai` block, 6: say it once"),
    ],
)
def test_words_that_do_not_go_together(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_config("m", {"unique_key": "id", **config})


def test_a_word_without_a_value_says_nothing() -> None:
    words = (OWN_WORDS | MACRO_WORDS) - {*AI_POLICIES}  # there, none lifts what the profile says
    assert read_config("m", {**dict.fromkeys(words), "unique_key": "id"}) == read_config("m", {"unique_key": "id"})


def test_a_list_in_one_text_is_said() -> None:
    errors = [e.message for e in analyze("select a, b from t", unique_key="a, b", freeze="b,a").errors]
    assert len(errors) == 2 and all("as a list" in message for message in errors)


def invocation(config: dict[str, Any], as_of: Any, **more: Any) -> Invocation:
    model = {"unique_id": "model.p.m", "name": "m", "config": config}
    values = {"sql": "", "target": "s.m", "schema": "s", "identifier": "m", "target_exists": True, "relation_names": []}
    return Invocation.from_macro({**values, "model": model, "started_at": CLOCK, "as_of": as_of, **more})


def test_the_instant_of_the_invocation_wins_over_the_model() -> None:
    own = {"as_of": "2026-01-31"}
    assert invocation(own, None).as_of == "2026-01-31"
    assert invocation(own, "2026-01-15").as_of == "2026-01-15"
    assert invocation({}, None).as_of is None


def test_an_instant_ahead_of_the_clock_is_said() -> None:
    hour = CLOCK + timedelta(hours=1)
    assert "ahead of the clock (2026-02-01 12:00:00 UTC)" in ahead_of_clock("2026-02-01 13:00:00", hour, CLOCK)
    assert ahead_of_clock("2026-02-01 12:00:00", CLOCK, CLOCK) == ""
    assert ahead_of_clock(None, hour, CLOCK) == ""  # the machine's own clock


@pytest.mark.parametrize(
    ("condition", "stays"),
    [
        ("day < date'2026-01-01'", True),
        ("status = 'closed' or day < current_date() - interval 30 days", True),
        ("not (ts > now() - interval 1 hour)", True),
        ("datediff(current_date(), day) > 30 and status is not null", True),
        ("day > current_date()", False),
        ("day = current_date()", False),
        ("day between current_date() - 7 and current_date()", False),
        ("month(day) = month(current_date())", False),
        ("coalesce(day < current_date(), status = upper('x'))", False),
    ],
)
def test_what_is_frozen_stays_frozen(condition: str, stays: bool) -> None:
    found = row_condition(condition, "result", TYPES, allowed=(Level.COMMAND,))
    assert isinstance(found, RowCondition)
    assert found.stays_true("UTC") is stays
    pinned = found.pinned(Pins(CLOCK))
    assert pinned is not None and "current_date" not in pinned and "now()" not in pinned


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("rand() < 0.5", "depends on rand, which is nondeterministic"),
        ("day < (select max(d) from t)", "has a subquery"),
        ("status = current_user()", "depends on current_user"),
        ("my_udf(day)", "depends on my_udf"),
        ("day <", "is not understood"),
        ("count(*) > 1", "has an aggregate, a window function or a generator"),
        ("rank() over (order by day) = 1", "has an aggregate, a window function or a generator"),
        ("explode(array(true))", "has an aggregate, a window function or a generator"),
        ("true) or (true", "is not understood"),
    ],
)
def test_conditions_that_would_tell_other_rows_are_refused(condition: str, why: str) -> None:
    assert why in str(row_condition(condition, "result", TYPES, allowed=(Level.COMMAND,)))


def test_the_columns_of_a_condition() -> None:
    found = row_condition("Place.City = 'x' and `day` < now()", "result", TYPES)
    assert isinstance(found, RowCondition) and found.columns == {"place", "day"}


def test_a_misspelt_block_of_meta_is_no_note_of_the_users() -> None:
    with pytest.raises(ConfigError, match="did you mean 'nondeterministic_mv'"):
        with_meta_words("m", {"meta": {"nondeterministc_mv": {"freeze": ["a"]}}})
    assert with_meta_words("m", {"meta": {"owner": "me", "deterministic": True}})["meta"]["owner"] == "me"


@pytest.mark.parametrize("root", ["/data/tables", "s3://bucket/tables", "file:/data", "abfss://a@b.c/d"])
def test_places_that_are_the_same_to_all(root: str) -> None:
    words = {"unique_key": "id", "location_root": root, "tblproperties": {"delta.appendOnly": "false", "n": 3}}
    read_config("m", words, {"location_root"})


def test_functions_are_told_by_a_mapping() -> None:
    with pytest.raises(ConfigError, match=r"functions: expected a mapping of names to levels.*got \['f'\]"):
        invocation({}, None, functions=["f"])
