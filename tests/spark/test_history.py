"""What Delta's history tells, by every connection method."""

from __future__ import annotations

import pytest

from spark_mv.spark.formats.history import entries


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, {}),
        ("", {}),
        ({"mode": "Append"}, {"mode": "Append"}),
        ('{"mode":"Append","partitionBy":"[]"}', {"mode": "Append", "partitionBy": "[]"}),
        ('{"numFiles":"1","numOutputRows":"12"}', {"numFiles": "1", "numOutputRows": "12"}),
        # Thrift escapes nothing: a predicate may pretend to be an entry of the map
        (
            """{"mode":"Overwrite","predicate":"["(t = '","mode":"Append"}')"]"}""",
            {"predicate": """["(t = '"""},
        ),
    ],
)
def test_maps_of_the_history(value: object, expected: dict[str, str]) -> None:
    assert entries(value) == expected
