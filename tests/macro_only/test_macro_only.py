"""The macro-only mode against the engine: places of a plan, its file, and what its macros choose."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from datetime import timezone
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jinja_macros import Stopped, load

from spark_mv.maintenance.config import with_meta_words
from spark_mv.maintenance.errors import ConfigError, RefusedError
from spark_mv.maintenance.facts import Column, RunFacts, SourceFacts, TargetFacts
from spark_mv.maintenance.forget import ForgetRequest, request_text
from spark_mv.maintenance.macro_only import INSTANTS, PLACES, with_places
from spark_mv.maintenance.record import RunRecord, SourceVersion, known_fields
from spark_mv.maintenance.staged import Staged, When
from spark_mv.maintenance.steps.rewrite_rows import Rewrite
from spark_mv.maintenance.strategies.no_op import no_op
from spark_mv.query.rewrite.pin import Pins, pin
from spark_mv.query.solver.zone import zone_of
from spark_mv.spark.adapter.plan_files import PlanFile, _file, left_over, plan_in, plan_text
from spark_mv.spark.formats.delta_source import since
from spark_mv.spark.formats.history import KEEPS_ROWS, MAKES_ALL_ROWS, OURS, _history
from spark_mv.spark.formats.table_format import Since
from spark_mv.spark.run.macro_incremental import rules

pytestmark = pytest.mark.unit

CLOCK = """select current_date(), now() - interval 2 days, unix_timestamp(), localtimestamp(), current_time(3), current_time, date'yesterday',
timestamp'tomorrow', timestamp_ntz'now', cast('today' as date)"""


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata"])
def test_no_clock_is_left_without_a_place(zone: str) -> None:
    texts = []
    for k, instant in enumerate(INSTANTS):
        pins = Pins(instant.astimezone(zone_of(zone)), zone)
        sql = f"{pin(CLOCK, pins).sql} from t VERSION AS OF {700 + k}"
        texts.append(with_places({"query": sql}, pins, {"version_0": 700 + k}))
    assert texts[0] == texts[1]
    assert not any(str(instant.year) in json.dumps(texts[0]) for instant in INSTANTS)
    assert texts[0]["query"].endswith("VERSION AS OF __mv_fill_version_0__")


def test_marks_are_no_parts_of_each_other() -> None:
    marks = [place.mark for place in PLACES]
    assert not [(a, b) for a, b in product(marks, marks) if a != b and a in b]


def test_a_plan_file_is_no_jinja_but_for_its_frame() -> None:
    nasty = "{{ x }} {% raw %} {# #} \\u007b \\\\ \" ' `a` é \n }} %} {%- endset -%}"
    plans: dict[str, Any] = {"format": 1, "tables": {nasty: {"steps": [{"a": nasty, "b": None, "c": {}, "d": [[{}]]}]}}}
    text = plan_text("a_v2", plans)
    assert plan_in(text) == plans
    assert load(text).spark_mv_plan__a_v2() == plans
    assert load(text.replace('"d"', '"D"')).spark_mv_plan__a_v2() is None
    assert plan_in("{% macro other() %}{% endmacro %}") == {}


RULES = {
    "keeps_rows": sorted(KEEPS_ROWS),
    "makes_all_rows": sorted(MAKES_ALL_ROWS),
    "ours": sorted(OURS),
    "fields": known_fields(),
}
RECORD = RunRecord(
    query="q",
    config="c",
    as_of="2026-02-01 06:00:00.000000",
    time_zone="UTC",
    sources={"s.t": SourceVersion(4, "then")},
    kept={"draw": "k1"},
    columns={"id": "k0", "draw": "k1"},
    keys=("id",),
    pins={"now": "TIMESTAMP'1'"},
    settings={"Spark": "4"},
    next_change_at="2026-02-03 00:00:00.000000",
    base_version=3,
    model="m",
    run_id="r1",
)


def _row(version: int, operation: str, record: RunRecord | None = None, text: str | None = None) -> dict[str, Any]:
    metadata = record.to_json() if record else text
    return {"version": version, "operation": operation, "userMetadata": metadata, "timestamp": "2026"}


FIRST = replace(RECORD, base_version=None, run_id="r0")
FORGET = request_text(ForgetRequest("1", ("draw",)))
HISTORIES = {
    "a first run": [_row(0, "CREATE TABLE AS SELECT", FIRST)],
    "a merge": [_row(4, "MERGE", RECORD), _row(3, "WRITE", FIRST), _row(0, "CREATE TABLE AS SELECT", FIRST)],
    "optimized since": [_row(5, "OPTIMIZE"), _row(4, "WRITE", RECORD)],
    "written since": [_row(6, "OPTIMIZE"), _row(5, "DELETE"), _row(4, "WRITE", RECORD)],
    "written meanwhile": [_row(6, "MERGE", RECORD), _row(5, "UPDATE"), _row(4, "OPTIMIZE"), _row(3, "MERGE")],
    "made anew over what others wrote": [_row(6, "CREATE OR REPLACE TABLE AS SELECT", RECORD), _row(5, "UPDATE")],
    "a copy of a commit": [_row(5, "MERGE", RECORD), _row(4, "MERGE", RECORD), _row(3, "WRITE")],
    "restored": [_row(5, "RESTORE", RECORD), _row(4, "WRITE", FIRST)],
    "of another model": [_row(4, "MERGE", replace(RECORD, model="other")), _row(3, "MERGE", RECORD)],
    "no record": [_row(1, "WRITE", None, "a note"), _row(0, "CREATE TABLE AS SELECT")],
    "asked to forget": [_row(5, "SET TBLPROPERTIES", None, FORGET), _row(4, "MERGE", RECORD)],
    "asked to forget and done": [
        _row(5, "MERGE", replace(RECORD, base_version=4)),
        _row(4, "SET TBLPROPERTIES", None, FORGET),
    ],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_history_is_read_as_the_engine_reads_it(name: str) -> None:
    rows = HISTORIES[name]
    found, engine = load().mv_history_of(RULES, rows, "m"), _history(rows, "m")
    assert (found["record"] is None) == (engine.record is None)
    assert found["record_version"] == engine.record_version and found["version"] == engine.version
    if engine.record is not None:
        assert found["record"] == json.loads(engine.record.to_json())
    assert (found["foreign"] is None) == (engine.foreign_operation is None)
    assert found["forget"] == bool(engine.forget)


@pytest.mark.parametrize("record", ['{"spark_mv": 2}', '{"spark_mv": 1, "to_come": 1}'])
def test_a_later_format_is_refused_as_the_engine_refuses_it(record: str) -> None:
    rows = [_row(1, "WRITE", None, record), _row(0, "CREATE TABLE AS SELECT")]
    with pytest.raises(Stopped, match=r"\[NEWER_FORMAT\] model m: .*Install the release"):
        load().mv_history_of(RULES, rows, "m")
    with pytest.raises(RefusedError, match="NEWER_FORMAT"):
        _history(rows, "m")


def test_a_plan_of_a_later_release() -> None:
    written = {"spark_mv_plan__m": lambda: {"format": 2}}
    macros = load(context=written, modules=SimpleNamespace(re=re), adapter=SimpleNamespace(type=lambda: "spark"))
    with pytest.raises(Stopped, match=r"\[NEWER_FORMAT\] model m: its plan is in format 2.*Install the release"):
        macros.mv_planned(SimpleNamespace(database=None), "select 1")


def test_a_plan_that_was_edited() -> None:
    macros = load(context={"spark_mv_plan__m": lambda: None}, modules=SimpleNamespace(re=re))
    with pytest.raises(Stopped, match=r"\[STALE_PLAN\] model m: its plan is not as `spark-mv plan` wrote it"):
        macros.mv_planned(SimpleNamespace(database=None), "select 1")


def test_each_model_has_a_plan_of_its_own() -> None:
    word = load(modules=SimpleNamespace(re=re)).mv_plan_word
    ids = ["model.p.m", "model.p.m.v1", "model.p.m.v2", "model.other.m", "model.p.a b"]
    assert [word(one) for one in ids] == ["m", "m_v1", "m_v2", "other__m", "a_b"]


@pytest.mark.parametrize(
    ("name", "warned"), [("as_off", True), ("asof", True), ("AS_OF", True), ("as_of", False), ("day", False)]
)
def test_a_misspelt_instant_is_warned_of(name: str, warned: bool) -> None:
    said: list[str] = []
    exceptions = SimpleNamespace(warn=lambda text: said.append(text) or "")
    load(exceptions=exceptions, invocation_args_dict={"vars": {name: 1}}).mv_warn_of_variables()
    assert len(said) == warned


def test_plans_of_no_model_are_named(tmp_path: Path) -> None:
    kept, gone, other = tmp_path / "m.sql", tmp_path / "old.sql", tmp_path / "mine.sql"
    for file in (kept, gone):
        file.write_text(plan_text(file.stem, {"format": 1}))
    other.write_text("{% macro mine() %}{% endmacro %}")
    assert left_over(tmp_path, [PlanFile("m", kept, "planned")]) == [gone]


def test_a_plan_file_of_a_later_release_is_left_as_it_is(tmp_path: Path) -> None:
    found = {"name": "m", "word": "m", "table": "t", "plan": {"steps": []}}
    file = tmp_path / "m.sql"
    file.write_text(plan_text("m", {"format": 2, "model": "model.p.m", "tables": {"other": {}}}))
    made = _file(tmp_path, "model.p.m", found)
    assert made.failed and made.text is None and "[NEWER_FORMAT]" in made.says and "Install the release" in made.says
    file.write_text(plan_text("m", {"format": 1, "model": "model.p.m", "tables": {"other": {}}}))
    assert plan_in(_file(tmp_path, "model.p.m", found).text or "")["tables"] == {"other": {}, "t": {"steps": []}}


def _change(**of_record: Any) -> RunRecord:
    return replace(RECORD, **of_record)


LATER = "2026-02-02 00:00:00.000000"
MOVED = {"now": "TIMESTAMP'2'"}
RUNS: dict[str, tuple[RunRecord, dict[str, Any], dict[str, Any]]] = {
    "nothing": (RECORD, {}, {}),
    "the clock moved": (RECORD, {"as_of": LATER, "pins": MOVED}, {}),
    "the clock stands in a column": (RECORD, {"as_of": LATER, "pins": MOVED}, {"elsewhere": True}),
    "the clock stands in a column and stands still": (RECORD, {}, {"elsewhere": True}),
    "a bound is due": (RECORD, {"as_of": "2026-02-03 00:00:00.000000", "pins": MOVED}, {}),
    "a bound is not known": (_change(clock_solved=False), {"as_of": LATER, "pins": MOVED}, {}),
    "no bound": (_change(next_change_at=None), {"as_of": "2027-01-01 00:00:00.000000", "pins": MOVED}, {}),
    "the clock went back": (RECORD, {"as_of": "2026-01-01 00:00:00.000000", "pins": MOVED}, {}),
    "a source": (_change(sources={"s.t": SourceVersion(3, "then")}), {}, {}),
    "a source made anew": (_change(sources={"s.t": SourceVersion(4, "now")}), {}, {}),
    "settings": (_change(settings={"Spark": "3"}), {}, {}),
    "zone": (_change(time_zone="Europe/Berlin"), {}, {}),
    "query": (_change(query="other"), {}, {}),
    "config": (_change(config="other"), {}, {}),
    "function": (_change(functions={"f": "1"}), {}, {}),
    "kept": (_change(kept={"draw": "k1", "id": "k0"}), {}, {}),
    "refresh": (RECORD, {}, {"refresh": "full"}),
    "another user": (
        _change(pins={**RECORD.pins, "current_user": "'a'"}),
        {"pins": {**RECORD.pins, "current_user": "'b'"}},
        {},
    ),
    "new answers": (RECORD, {}, {"ask_again": "2"}),
    "new answers that came": (_change(ask_again="2"), {}, {"ask_again": "2"}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_ends_where_the_engine_would_end_it(name: str) -> None:
    record, of_facts, of_plan = RUNS[name]
    version = SourceVersion(4, "then")
    facts = RunFacts(
        model="m",
        as_of=RECORD.as_of,
        time_zone="UTC",
        invocation_id="",
        sources=(SourceFacts("s.t", (), "delta", version),),
        target=TargetFacts(exists=True, ours=True, record=record, intact=True, ask_again=of_plan.get("ask_again", "")),
        pins=RECORD.pins,
        settings={"Spark": "4"},
    )
    facts = replace(facts, **of_facts)
    elsewhere, refresh = of_plan.get("elsewhere", False), of_plan.get("refresh", "auto")
    engine = no_op(facts, "q", "c", elsewhere, refresh, RECORD.kept)
    planned = {
        "record": json.loads(RECORD.to_json()),
        "time_zone": "UTC",
        "refresh": refresh,
        "clock_elsewhere": elsewhere,
        "session_pins": ["current_user"],
        "table_columns": [],
        "partition_by": [],
        "cluster_by": [],
    }
    table = {"columns": [], "partition_by": [], "cluster_by": [], "foreign": None, "forget": False}
    table["ask_again"] = of_plan.get("ask_again", "")
    given = {
        "as_of": facts.as_of,
        "pins": dict(facts.pins),
        "settings": dict(facts.settings),
        "sources": {"s.t": asdict(version)},
        "full_refresh": False,
        "table": {**table, "record": json.loads(record.to_json())},
    }
    choice = load().mv_planned_choice(planned, given)
    assert choice["situation"] == ("no_op" if engine.applies else "next"), (choice, engine.reasons)


def _commit(version: int, operation: str, parameters: Any = None, metrics: Any = None, at: str = "2026-02-01") -> Any:
    return {
        "version": version,
        "operation": operation,
        "timestamp": f"{at} 00:00:0{version}",
        "operationParameters": parameters or {},
        "operationMetrics": metrics or {},
    }


BASE = _commit(4, "WRITE", {"mode": "Append"})
APPEND = _commit(5, "WRITE", {"mode": "Append"})
ONLY_NEW = {"numTargetRowsInserted": "1", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}
COMMITS: dict[str, tuple[list[Any], Any]] = {
    "rows came": ([APPEND], True),
    "rows came, and files were rewritten": ([APPEND, _commit(6, "OPTIMIZE")], True),
    "rows were merged in": ([_commit(5, "MERGE", {}, ONLY_NEW)], True),
    "rows were copied in": ([_commit(5, "COPY INTO")], True),
    "a stream brought rows": ([_commit(5, "STREAMING UPDATE", {"outputMode": "Append"})], True),
    "a stream wrote them anew": ([_commit(5, "STREAMING UPDATE", {"outputMode": "Complete"})], False),
    "rows were merged": ([_commit(5, "MERGE", {}, {**ONLY_NEW, "numTargetRowsUpdated": "1"})], False),
    "rows went": ([APPEND, _commit(6, "DELETE")], False),
    "rows were edited": ([_commit(5, "UPDATE")], False),
    "all was written anew": ([_commit(5, "WRITE", {"mode": "Overwrite"})], False),
    "nothing that matters": ([_commit(5, "OPTIMIZE")], False),
    "a note": ([APPEND, _commit(6, "SET TBLPROPERTIES", {"properties": '{"note":"1"}'})], True),
    "the feed was off": (
        [APPEND, _commit(6, "UNSET TBLPROPERTIES", {"properties": "[delta.enableChangeDataFeed]"})],
        None,
    ),
    "made anew": ([_commit(5, "CREATE OR REPLACE TABLE AS SELECT")], None),
    "restored": ([_commit(5, "RESTORE")], None),
    "other columns": ([_commit(5, "RENAME COLUMN"), _commit(6, "WRITE", {"mode": "Append"})], None),
    "more columns": ([_commit(5, "ADD COLUMNS"), _commit(6, "WRITE", {"mode": "Append"})], None),
    "files were removed": ([APPEND, _commit(6, "VACUUM END")], None),
    "what nobody knows": ([_commit(5, "NEW OPERATION")], None),
    "a commit is missing": ([_commit(6, "WRITE", {"mode": "Append"})], None),
    "long ago": ([_commit(5, "WRITE", {"mode": "Append"}, at="2026-01-01")], None),
}
FOLLOWS = rules()
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.mark.parametrize("name", COMMITS)
def test_a_feed_is_followed_where_the_engine_follows_it(name: str) -> None:
    commits, expected = COMMITS[name]
    rows, high = [*reversed(commits), BASE], commits[-1]["version"]
    before = {"version": 4, "timestamp": BASE["timestamp"]}
    macros = load()
    found = macros.mv_followed_since(FOLLOWS, rows, FEED, before, high, "2026-01-26")
    assert (found and found["append_only"]) is expected
    if found:
        source = SourceFacts(
            "s.t", (Column("id", "int"),), "delta", SourceVersion(high, ""), change_feed=True, retention=1e12
        )
        engine = since(lambda sql: rows, source, SourceVersion(**before), source.columns_print)
        assert isinstance(engine, Since) and engine.how == "feed"
        assert (bool(engine.commits) and all(c.appends for c in engine.commits)) == expected
    for other in ({}, {"delta.enableChangeDataFeed": "false"}, {**FEED, "delta.deletedFileRetentionDuration": "x"}):
        assert macros.mv_followed_since(FOLLOWS, rows, other, before, high, "2026-01-26") is None
    assert macros.mv_followed_since(FOLLOWS, rows, FEED, {**before, "timestamp": "other"}, high, "2026-01-26") is None
    assert macros.mv_followed_since(FOLLOWS, rows[:-1], FEED, before, high, "2026-01-26") is None


def test_steps_are_due_as_the_engine_has_them() -> None:
    due = load().mv_due
    for inserted, updated, deleted in product((0, 2), repeat=3):
        written_anew = Rewrite.MERGE if updated + deleted else Rewrite.NOTHING
        staged = Staged(inserted=inserted, updated=updated, deleted=deleted, checked=True, rewrite=written_anew)
        found = due({"inserted": inserted, "updated": updated, "deleted": deleted})
        assert found == {name: staged.holds(When(name)) for name in found}


def test_words_under_meta() -> None:
    config = {"materialized": "x", "meta": {"nondeterministic_mv": {"unique_key": "id"}}}
    assert with_meta_words("m", config)["unique_key"] == "id"
    assert with_meta_words("m", {**config, "unique_key": "id"})["unique_key"] == "id"
    with pytest.raises(ConfigError, match="unique_key: said beside meta and under meta"):
        with_meta_words("m", {**config, "unique_key": "other"})
    with pytest.raises(ConfigError, match="expected a mapping"):
        with_meta_words("m", {"meta": {"nondeterministic_mv": "id"}})


def test_instants_share_no_part() -> None:
    parts = [instant.astimezone(timezone.utc).timetuple()[:6] for instant in INSTANTS]
    assert all(a != b for a, b in zip(*parts, strict=True))
