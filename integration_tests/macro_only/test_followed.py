"""Macros alone follow the change feed of the one source that changed: the tables equal the whole queries, kept values stay, and the
adapter finds nothing to do afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt.tests.util import run_dbt

SELECTS = {
    "row_wise": "select id, word, {draw} from {s}.events where id < 1000",
    "joined": "select e.id, e.word, n.name, {draw} from {s}.events e join {s}.names n on e.kind = n.kind",
    "grouped": "select kind, count(*) as n, max(id) as newest from {s}.events group by kind",
    "windowed": "select id, at, {draw} from {s}.events where at > {now} - interval 30 days",
    "viewed": "select id, word from {s}.events_view",
    "asked_by": "select id, current_user() as who, current_catalog() as place from {s}.events",
    "limited": "select id, word from {s}.events",
}
KEYS = {"grouped": "kind"}
MORE = {"limited": ", max_rows_changed='50%'"}
FEED = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"


def model(name: str) -> str:
    text = SELECTS[name].format(draw="rand() as draw", s="{{ target.schema }}", now="current_timestamp()")
    config = f"materialized='nondeterministic_mv', unique_key='{KEYS.get(name, 'id')}'{MORE.get(name, '')}"
    return f"{{{{ config({config}) }}}}\n{text}"


class TestFollowed:
    @pytest.fixture(scope="class")
    def models(self) -> Any:
        return {f"{name}.sql": model(name) for name in SELECTS}

    @pytest.fixture(scope="class")
    def tables(self) -> tuple[str, ...]:
        return (
            f"create table {{s}}.events (id bigint, word string, kind int, at timestamp) {FEED}",
            f"create table {{s}}.names (kind int, name string) {FEED}",
            "insert into {s}.names select id, concat('n', id) from range(3)",
            "insert into {s}.events select id, 'w', id % 3, timestamp'2026-01-20 00:00:00' from range(9)",
            "create view {s}.events_view as select id, word from {s}.events where kind < 2",
        )

    @pytest.mark.slow
    def test_what_changed_is_followed(self, project: Any, sql: Any, run: Any, plan: Any) -> None:
        def once(by: str, as_of: str = "2026-02-01 06:00:00", **variables: Any) -> dict[str, str]:
            said = json.dumps({"as_of": as_of, "allow_future_as_of": True, **variables})
            results = run_dbt(["run", "--target", by, "--vars", said], expect_pass=None).results
            found = {}
            for result in results:
                name, response = result.node.name, result.adapter_response
                if result.status != "success":
                    found[name] = result.message
                else:
                    found[name] = response.get("strategy") or str(response["_message"]).split()[0]
            return found

        def right(as_of: str = "2026-02-01 06:00:00") -> None:
            for name, text in SELECTS.items():
                query = text.replace(", {draw}", "").format(s="{s}", now=f"timestamp'{as_of}'")
                columns = ", ".join(row[0] for row in sql(f"describe query {query}"))
                table = f"select {columns} from {{s}}.{name}"
                differ = f"(({query}) except all ({table})) union all (({table}) except all ({query}))"
                assert sql(differ) == [], name

        def draws(name: str) -> dict[int, float]:
            return dict(sql(f"select id, draw from {{s}}.{name}"))

        made = plan()
        assert made.exit_code == 0 and made.output.count(": planned") == len(SELECTS), made.output
        assert set(once("plain").values()) == {"COMPLETE_RECOMPUTE"}
        right()
        assert set(once("ours").values()) == {"NO_OP"}
        before = {name: draws(name) for name in ("row_wise", "joined", "windowed")}

        # rows came
        sql(
            "insert into {s}.events values (20, 'new', 1, timestamp'2026-01-25 00:00:00'), (21, 'new', 2, timestamp'2025-01-01 00:00:00')"
        )
        assert once("plain") == {
            **dict.fromkeys(("row_wise", "joined", "windowed", "asked_by", "limited", "viewed"), "APPEND_ONLY"),
            "grouped": "GROUP_AGGREGATE",
        }
        right()
        assert set(once("ours").values()) == {"NO_OP"}

        # rows went, came and became others, in several commits; the clock moved, and no bound was crossed
        sql("update {s}.events set word = 'x' where id = 3")
        sql("delete from {s}.events where id in (4, 21)")
        sql("optimize {s}.events")
        sql("insert into {s}.events values (4, 'again', 0, timestamp'2026-01-25 00:00:00')")
        later = "2026-02-01 18:00:00"
        assert once("plain", later) == {
            **dict.fromkeys(("row_wise", "joined", "windowed", "asked_by", "limited", "viewed"), "ROW_BASED"),
            "grouped": "GROUP_AGGREGATE",
        }
        right(later)
        assert set(once("ours", later).values()) == {"NO_OP"}
        for name, kept in before.items():
            now = draws(name)
            assert {k: v for k, v in now.items() if k in kept and k != 4} == {
                k: v for k, v in kept.items() if k != 4
            }, name

        # another source, by the adapter's record and back; a limit that is not kept
        sql("update {s}.names set name = 'other' where kind = 1")
        found = once("plain", later)
        assert found["joined"] == "ROW_BASED" and {*found.values()} == {"ROW_BASED", "NO_OP"}
        right(later)
        sql("update {s}.events set word = 'all'")
        found = once("plain", later)
        assert "[MAX_ROWS_CHANGED]" in found["limited"] and found["row_wise"] == "ROW_BASED"
        assert once("plain", later, max_rows_changed="100%")["limited"] == "ROW_BASED"
        right(later)
        assert set(once("ours", later).values()) == {"NO_OP"}

        # two sources at once, and a bound that is crossed: always right
        sql("insert into {s}.names values (7, 'seven')")
        sql("insert into {s}.events values (30, 'new', 7, timestamp'2026-02-01 00:00:00')")
        last = "2026-02-21 00:00:00"
        found = once("plain", last)
        assert (found["joined"], found["windowed"]) == ("COMPLETE_RECOMPUTE", "COMPLETE_RECOMPUTE")
        right(last)
        assert set(once("ours", last).values()) == {"NO_OP"}

        # a view that is another one, a key that comes twice
        sql("create or replace view {s}.events_view as select id, upper(word) as word from {s}.events")
        sql("insert into {s}.events values (30, 'twice', 0, timestamp'2026-02-01 00:00:00')")
        found = once("plain", last)
        assert "[STALE_PLAN]" in found["viewed"]
        for name in ("row_wise", "windowed", "limited"):
            assert "[KEY_REPEATED]" in found[name], found
        assert sql("show tables in {s} like '*__mv_stage*'") == []
