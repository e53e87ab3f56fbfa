"""The texts of a complete recompute name the versions that its bookkeeping will name."""

from __future__ import annotations

import pytest

from spark_mv.maintenance.facts import SourceFacts
from spark_mv.maintenance.record import SourceVersion
from spark_mv.maintenance.rewritten import Rewritten
from spark_mv.maintenance.steps.versions import at_versions, rewritten_at_versions

pytestmark = pytest.mark.unit

SOURCES = (
    SourceFacts(name="s.a", columns=(), provider="delta", version=SourceVersion(7, "t")),
    SourceFacts(name="s.b", columns=(), provider="delta", version=SourceVersion(0, "t")),
    SourceFacts(name="s.files", columns=(), provider="parquet"),
    SourceFacts(name="s.v", columns=(), provider="view", view_text="select * from s.b"),
)


@pytest.mark.parametrize(
    "sql,wanted",
    [
        ("select * from s.a", "select * from s.a VERSION AS OF 7"),
        (
            "with c as (select 1 from S.A x) select * from c join `s`.`b` y on (select max(i) from s.a) > 1",
            "with c as (select 1 from S.A VERSION AS OF 7 x) select * from c join `s`.`b` VERSION AS OF 0 y "
            "on (select max(i) from s.a VERSION AS OF 7) > 1",
        ),
        ("select * from s.files, s.mv__state", "select * from s.files, s.mv__state"),
        ("select * from s.v", None),
        ("select * from s.a version as of 3", None),
        ("select * from s.a, range(3)", None),
    ],
)
def test_every_source_is_read_at_its_version(sql: str, wanted: str | None) -> None:
    assert at_versions(sql, SOURCES) == wanted


def test_what_cannot_be_pinned_is_looked_at_again_before_publishing() -> None:
    through_view = Rewritten("select * from s.v", (), "now")
    same, (confirm,) = rewritten_at_versions(through_view, SOURCES)
    assert same == through_view
    assert confirm.kind == "confirm_sources" and confirm.args["versions"] == {"s.a": 7, "s.b": 0}
    assert rewritten_at_versions(Rewritten("select * from s.a", (), "now"), SOURCES)[1] == ()
