"""What belongs to a table beside its rows, compared with what DESCRIBE prints of it."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.errors import ConfigError
from spark_mv.spark.run.amendments import Amendments

FEW = {"name": "Few", "expression": "id in (1,  2)"}
HAS = "[delta.constraints.few=id in (1, 2),delta.minReaderVersion=1]"


@pytest.mark.parametrize(
    ("written", "ours", "checks", "statements"),
    [
        (HAS, "few", [FEW], []),
        ("[delta.constraints.few=id in ( 1 , 2 )]", "few", [FEW], []),
        ("[delta.minReaderVersion=1]", "", [FEW], ["add constraint `few`"]),
        ("[delta.constraints.few=id in (1, 2) or id > 2]", "few", [FEW], ["drop", "add constraint `few`"]),
        (HAS, "few", [], ["drop constraint if exists `few`"]),
        (HAS, "", [], []),  # the user's own
        ("[delta.constraints.mv_not_null_0a1b2c3d=id is not null]", "", [], ["drop"]),
    ],
)
def test_checks(written: str, ours: str, checks: list[dict[str, str]], statements: list[str]) -> None:
    amend = Amendments("t", written, ours)
    amend.want(checks, {})
    found = amend.after(made_anew=False)
    expected = [*statements, "set tblproperties ('spark_mv.checks'"] if statements else []
    assert len(found) == len(expected)
    assert all(part in text for part, text in zip(expected, found, strict=True))
    assert amend.before() == []


def test_the_former_check_stays_until_the_new_one_is_there() -> None:
    """Rows that do not pass the new one end the run at its statement."""
    amend = Amendments("t", "[delta.constraints.mv_check_0a1b2c3d=k > 0]")
    amend.want([{"name": "mv_check_11111111", "expression": "k > 3"}], {})
    found = amend.after(made_anew=False)
    assert (
        "add constraint `mv_check_11111111`" in found[0] and "drop constraint if exists `mv_check_0a1b2c3d`" in found[1]
    )


def test_a_condition_keeps_its_strings_and_loses_its_comments() -> None:
    amend = Amendments("t", "[]")
    amend.want([{"name": "note", "expression": "note <> 'a  b' -- theirs\n and\n  n > 0 -- ours"}], {})
    assert amend.properties([], True)["delta.constraints.note"] == "note <> 'a  b' and n > 0"
    assert "add constraint `note` check (note <> 'a  b' and n > 0)" in amend.after(made_anew=False)[0]


def test_the_feed_of_a_table_with_column_mapping() -> None:
    feed = ["alter table t set tblproperties ('delta.enableChangeDataFeed' = 'true')"]
    assert Amendments("t", mapped=True).after(made_anew=True) == feed
    assert Amendments("t", mapped=True, feed=False).after(made_anew=True) == []
    mapped = "[delta.columnMapping.mode=id,delta.enableChangeDataFeed=%s]"
    assert Amendments("t", mapped % "false").after(made_anew=False) == feed
    assert Amendments("t", mapped % "true").after(made_anew=False) == []


def test_two_checks_of_one_name_are_refused() -> None:
    amend = Amendments("t", model="model.p.m")
    with pytest.raises(ConfigError, match="several checks called positive"):
        amend.want([{"name": "positive", "expression": "a > 0"}, {"name": "Positive", "expression": "b > 0"}], {})
