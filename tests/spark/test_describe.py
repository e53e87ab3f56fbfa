"""What DESCRIBE EXTENDED hides or cuts, and DESCRIBE DETAIL does not."""

from __future__ import annotations

import pytest

from spark_mv.spark.formats.describe import Description, detailed, read_description
from spark_mv.spark.formats.retention import retention

pytestmark = pytest.mark.unit


def described(properties: str, *more: tuple[str, str]) -> Description:
    rows = [("id", "int"), *more, ("", ""), ("# Detailed Table Information", ""), ("Provider", "delta")]
    rows.append(("Table Properties", f"[{properties}]"))
    return read_description({"col_name": name, "data_type": value} for name, value in rows)


@pytest.mark.parametrize(
    ("properties", "unclear"),
    [
        ("delta.minReaderVersion=1,spark_mv.model=model.p.mv,team=analytics", False),
        ('clusteringColumns=[["a.b"],["c`d","x"]],delta.minReaderVersion=1', False),
        ('clusteringColumns=[["id"]]', False),
        ("", False),
        ("clusteringColumns=*********(redacted),delta.minReaderVersion=1", True),
        ("delta.minReaderVersion=1,spark_mv.forget=*********(redacted)", True),
        ("note=a,b,spark_mv.model=model.p.mv", True),
        ("note=x,spark_mv.forget=W10=,delta.y=1", True),
        ("a=1,spark_mv.model=m,z=2,spark_mv.model=n", True),
    ],
)
def test_whether_the_printed_properties_tell_all(properties: str, unclear: bool) -> None:
    assert described(properties).unclear == unclear


def test_names_with_dots_and_quotes() -> None:
    found = described(
        'clusteringColumns=[["a.b"],["c`d"],["s","x"]],k=v', ("# Partition Information", ""), ("# col_name", "data_type"),
        ("`page url`", "string"), ("day", "date"),
    )  # fmt: skip
    assert found.cluster_by == ("`a.b`", "`c``d`", "s.x")
    assert found.partition_by == ("`page url`", "day")
    assert found.properties == {"k": "v"}


@pytest.mark.parametrize("text", [False, True])
def test_detail(text: bool) -> None:
    row = {"properties": {"my_token": "a,b=c"}, "partitionColumns": ["page url"], "clusteringColumns": ["`a.b`", "u"]}
    thrift = {
        "properties": '{"my_token":"a,b=c"}',
        "partitionColumns": '["page url"]',
        "clusteringColumns": '["`a.b`","u"]',
    }
    found = detailed(described("my_token=*********(redacted)"), thrift if text else row)
    assert found.properties == {"my_token": "a,b=c"}
    assert found.written == "[my_token=a,b=c]"
    assert (found.partition_by, found.cluster_by) == (("`page url`",), ("`a.b`", "u"))


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("interval 30 days", 720),
        ("interval '30' days", 720),
        ("interval 0 hours", 0),
        ("interval 1 week", 168),
        ("168 HOURS", 168),
        ("interval 1 day 6 hours", 30),
        ("?", 168),
    ],
)
def test_retention(text: str, hours: int) -> None:
    assert retention({"delta.deletedFileRetentionDuration": text}) == hours * 3600
