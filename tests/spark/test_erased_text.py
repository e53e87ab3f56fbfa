"""What `erase` tells of traces follows what there is."""

from __future__ import annotations

from spark_mv.spark.run.erased_text import Erased, erased_text

WHOLE = Erased(
    "m",
    rows=1,
    remembered=2,
    bounds=True,
    tables={"s.m": "delta", "s.ai_results": "iceberg"},
    sources={"s.src": "delta", "s.other": "csv"},
    named={"s.m": (3, 5)},
    followed=True,
    answers="s.ai_results: 4 rows removed",
)


def test_all_traces_are_told_in_order() -> None:
    said = erased_text(WHOLE, dry_run=False)
    order = ["models that read this one", "of s.src, s.m, until VACUUM", "snapshots of s.ai_results", "s.other keeps", "versions of s.m: 3, 5"]  # fmt: skip
    order += ["the logs of these tables", "collect_ai", "logs/dbt.log", "clones and backups"]
    found = [said.index(text) for text in order]
    assert found == sorted(found)
    assert "1 rows of its table erased, 2 of its state" in said and "4 rows removed" in said
    assert "would be" in erased_text(WHOLE, dry_run=True)


def test_nothing_is_told_that_is_not_there() -> None:
    said = erased_text(Erased("m", 0, 0, False, tables={"s.m": "delta"}), dry_run=False)
    for text in ("models that read", "snapshots of s.", "keeps of former", "name a key", "collect_ai"):
        assert text not in said, text
