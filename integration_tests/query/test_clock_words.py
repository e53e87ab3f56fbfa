"""On Spark: a string that is the clock has the value and type of the literal it is pinned to, and no other string is."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from spark_mv.query.rewrite.pin import Pins, pin

pytestmark = pytest.mark.spark

FIXTURE = Path(__file__).parents[2] / "tests" / "query" / "fixtures" / "clock_words.txt"
CASES = [line.split(" | ") for line in FIXTURE.read_text(encoding="utf-8").splitlines() if " | " in line]
REFUSED_BY_SPARK = ("T12Z", "12:30Z")
MOVING = ("now",)  # to the microsecond


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati"])
def test_pinned_words_have_the_value_that_spark_gives_them(spark: Any, zone: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    session.sql(
        "create or replace temp view t as select 1 as id, date'2020-01-01' as d, timestamp'2020-01-01 00:00:00' as ts, "
        "timestamp_ntz'2020-01-01 00:00:00' as tn, 'today' as w, 'to' as p"
    )
    texts = [
        text
        for kind, text in CASES
        if kind == "pinned"
        and not any(w in text for w in REFUSED_BY_SPARK)
        and not any(w in text.lower() for w in MOVING)
    ]
    assert len(texts) > 50
    pins = Pins(datetime.now(timezone.utc), time_zone=zone)
    pairs = [
        (text, pin(f"select {text} as x from t", pins).sql[len("select ") : -len(" as x from t")]) for text in texts
    ]
    assert all(text != pinned for text, pinned in pairs)
    written = session.sql("select " + ", ".join(f"{text} as c{i}" for i, (text, _) in enumerate(pairs)) + " from t")
    literal = session.sql("select " + ", ".join(f"{text} as c{i}" for i, (_, text) in enumerate(pairs)) + " from t")
    assert [f.dataType for f in written.schema] == [f.dataType for f in literal.schema]
    one, other = written.collect()[0], literal.collect()[0]
    assert [p for p, a, b in zip(pairs, one, other, strict=True) if a != b] == []
