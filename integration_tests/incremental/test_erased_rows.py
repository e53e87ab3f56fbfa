"""`erase` takes the rows that it is told, in the table and in its state, and no other; what is still in the sources is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from changing_models import CASES, Case, World
from gates import Died, Gated, gated_session, gates
from integration_tests.under_format import delta_only

from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.run.ai_upkeep import Models
from spark_mv.spark.run.erased_rows import Request
from spark_mv.spark.run.erasing import erase

KEEP = {"on_source_delete": "keep"}
SAMPLED = Case("sampled", "COMPLETE_RECOMPUTE", "select id, s{kept} from {t} where rand() < 0.5", config=KEEP)
PAIRS = Case(
    "pairs", "COMPLETE_RECOMPUTE", "select k, id, s{kept} from {t}", config={**KEEP, "unique_key": ["k", "id"]}
)


@pytest.fixture
def session(spark: Any) -> Iterator[Gated]:
    with gates():
        yield gated_session(spark)


@delta_only("erase")
class TestErasedRows:
    @pytest.fixture
    def world(self, session: Gated, tmp_path: Path) -> Callable[[Case], World]:
        def make(case: Case) -> World:
            world = World(case, f"erased_{case.name}", tmp_path / "asked")
            world.make(session)
            world.run(session)
            return world

        return make

    def erase(self, world: World, session: Gated, dry_run: bool = False, **asked: Any) -> str:
        invocation = world.invocation(session)
        models = Models(session, [invocation], world.profile)
        empty = f"insert into {world.target} select * from {world.target} where false"
        return erase(models, invocation, Request(**asked), dry_run, empty)

    def refused(self, world: World, session: Gated, code: str, **asked: Any) -> None:
        before = world.version(session)
        with pytest.raises(RefusedError, match=rf"\[{code}\].*Nothing was changed"):
            self.erase(world, session, **asked)
        assert world.version(session) == before

    def lose(self, world: World, session: Gated, condition: str) -> None:
        session.query(f"delete from {world.schema}.t where {condition}")
        world.run(session)

    def state(self, world: World, session: Gated) -> set[Any]:
        return {row["id"] for row in session.query(f"select id from {world.table}__state")}

    def test_a_row_that_waits_for_its_window(self, session: Gated, world: Any) -> None:
        waiting = world(CASES["remembered"])
        # the source's rows 14 and up are not in their window yet; 18 is lost while it waits, 12 while it is in the table
        self.lose(waiting, session, "id in (12, 18)")
        before = waiting.read(session)
        assert {12, 18} <= self.state(waiting, session) and 12 in before.kept and 18 not in before.kept
        self.refused(waiting, session, "ERASE_IN_SOURCE", keys=[17])
        self.refused(waiting, session, "ERASE_IN_SOURCE", where="s in ('n17', 'n18')")
        for wrong in ("1.5", None):
            self.refused(waiting, session, "ERASE_KEYS", keys=[18, wrong])
        assert "0 rows of its table would be erased, 1 of its state" in self.erase(
            waiting, session, dry_run=True, keys=[18]
        )

        def dies(sql: str, send: Callable[[], Any]) -> Any:
            if sql.startswith(f"merge into {waiting.target} "):
                raise Died
            return send()

        with session.through(dies), pytest.raises(Died):
            self.erase(waiting, session, where="s in ('n12', 'n18')")
        assert not {12, 18} & self.state(waiting, session) and 12 in waiting.read(session).kept
        assert "1 rows of its table erased, 0 of its state" in self.erase(waiting, session, where="s in ('n12', 'n18')")
        after = waiting.read(session)
        assert {**after.kept, 12: before.kept[12]} == before.kept
        waiting.run(session, as_of="2026-01-10 08:00:00")
        now = set(waiting.read(session).kept)
        assert 17 in now and not {12, 18} & now  # 18 would have come by the clock

    def test_a_row_that_a_random_filter_judged(self, session: Gated, world: Any) -> None:
        sampled = world(SAMPLED)
        kept = sampled.read(session).kept
        rejected = min(set(range(20)) - set(kept))
        gone = min(kept)
        for key in (rejected, gone):  # the draw of a row that is not in the table is a value, too
            self.refused(sampled, session, "ERASE_IN_SOURCE", keys=[key])
        session.query(f"delete from {sampled.schema}.t where id in ({gone}, {rejected})")
        self.refused(sampled, session, "ERASE_RUN_FIRST", keys=[gone])
        sampled.run(session)
        assert gone in sampled.read(session).kept
        said = self.erase(sampled, session, where=f"s = 'n{gone}'")
        assert "1 rows of its table erased" in said, said
        assert not {gone, rejected} & self.state(sampled, session)
        for how in ({}, {"full_refresh": True}):
            sampled.run(session, **how)
            assert sampled.read(session).kept == {key: value for key, value in kept.items() if key != gone}
        # somebody else's delete of a draw is not taken for a run's
        session.query(f"delete from {sampled.table}__state where id = {max(kept)}")
        self.refused(sampled, session, "ERASE_RUN_FIRST", keys=[gone])

    def test_one_of_two_keys(self, session: Gated, world: Any) -> None:
        pairs = world(PAIRS)
        before = pairs.read(session)
        self.lose(pairs, session, "id in (4, 8)")
        self.refused(pairs, session, "ERASE_KEYS", keys=[{"k": 0}])
        said = self.erase(pairs, session, keys=[{"ID": 4, "k": 0}, [0, 400]])
        assert "1 rows of its table erased" in said, said
        now = pairs.read(session)
        assert set(before.rows) - set(now.rows) == {(0, 4, "n4")}
        assert pairs.run(session).plan.strategy == "NO_OP"
