"""What stands for a source of which only changed rows are read: the user's own conditions see its columns and no others."""

from __future__ import annotations

from spark_mv.maintenance.changes import MovedWindows, SourceChange, SourceTexts
from spark_mv.maintenance.facts import Column, SourceFacts
from spark_mv.maintenance.record import SourceVersion

SOURCE = SourceFacts("db.t", (Column("col", "int"), Column("ts", "timestamp")), "delta", SourceVersion(7, "x"))
TEXTS = SourceTexts({"db.t": SOURCE}, (SourceChange("db.t", 5, 7),))
MOVED = MovedWindows("db.t", "t", "col > 1", "hash(*) > 2")


def test_conditions_of_the_user_stand_above_the_columns_of_a_change() -> None:
    text = TEXTS.on_changes("select col from db.t", True, MOVED)
    inner, _, condition = text.rpartition(") AS `t` WHERE ")
    assert condition.startswith("(col > 1)") and "__mv_count" in inner and "__mv_count" not in condition
    assert "`__mv_copy` AS `__mv_copy`" in inner  # no column named `col`, which explode gives by itself
