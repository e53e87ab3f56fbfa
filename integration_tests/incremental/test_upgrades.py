"""Tables of each release are continued by this one: right rows, no kept value moved, nothing asked again. What a later release wrote is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from changing_models import Case, World, same_values
from gates import Gated, gates, new_session
from golden_tables import GOLDEN, make, unpack
from integration_tests.under_format import delta_only

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.forget import ForgetRequest, request_text
from spark_mv.spark.formats.registry import FORMATS
from spark_mv.spark.formats.turn import USER_METADATA, tagged
from spark_mv.spark.run import ai

RELEASES = [file.name for file in sorted(GOLDEN.glob("*.tar.gz"))]
THIS_ONE = "as it is now"


@pytest.fixture
def session(spark: Any) -> Iterator[Gated]:
    with gates():
        yield new_session(spark)


def restored(session: Gated, said: dict[str, Any], folder: Path) -> World:
    """A model with its tables, as they were."""
    schema, names = said["schema"], said["tables"]
    session.query(f"drop schema if exists {schema} cascade")
    session.query(f"create schema {schema}")
    ai._COMPLETE.clear()  # of tables that this process knows
    for name in names:
        session.query(f"create table {schema}.{name} using delta location '{folder / f'{schema}.db' / name}'")
    words = {name: said[name] for name in Case.__dataclass_fields__}
    case = Case(**{**words, "changes": tuple(words["changes"])})
    return World(case, schema, folder / f"asked {case.name}", changes=said["changed"], number=100)


@pytest.fixture(scope="module")
def made(spark: Any, warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a release of today would leave."""
    folder = tmp_path_factory.mktemp("golden")
    with gates():
        make(spark, warehouse, folder, target := folder / "made.tar.gz")
    return target


@pytest.fixture
def release(request: pytest.FixtureRequest) -> Path:
    name = request.param
    return request.getfixturevalue("made") if name == THIS_ONE else GOLDEN / name  # type: ignore[no-any-return]


@delta_only("the files of a release are Delta's")
@pytest.mark.parametrize("release", [*RELEASES, pytest.param(THIS_ONE, marks=pytest.mark.slow)], indirect=True)
class TestUpgrades:
    def test_tables_of_a_release_are_continued(self, session: Gated, release: Path, tmp_path: Path) -> None:
        about = unpack(release, tmp_path)
        same_spark = about["spark"] == session.spark.version
        for said in about["models"]:
            world = restored(session, said, tmp_path)
            before, forgotten = world.read(session), said["name"] == "by row"
            run = world.run(session) if same_spark else world.run_auto(session)
            if same_spark:  # with another one, results may be others
                assert run.plan.strategy == world.case.strategy, (said["name"], run.plan.candidates)
            now = world.read(session)
            assert now.rows == world.wanted(session), said["name"]
            moved = {key for key, value in before.kept.items() if key in now.kept and now.kept[key] != value}
            if said["name"] == "asked":
                asked = {next(iter(json.loads(line)[1].values())) for line in world.paid()}
                assert asked and not asked & {row[1] for row in before.rows or ()}
            else:
                assert moved == ({0, 1, 2} & set(now.kept) if forgotten else set()), said["name"]
            world.run_auto(session, full_refresh=True)
            assert same_values(now.kept, world.read(session).kept), said["name"]
            assert not world.leftovers(session)

    def test_what_a_later_release_wrote_is_refused(self, session: Gated, release: Path, tmp_path: Path) -> None:
        def fresh(name: str) -> World:
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            (said,) = [one for one in unpack(release, folder)["models"] if one["name"] == name]
            return restored(session, said, folder)

        for field in ({"spark_mv": 2}, {"a_field_to_come": 1}):
            world = fresh("by row")
            record = {**json.loads(world.published_texts(session)[0]), **field, "run_id": "later"}
            with tagged(session, {USER_METADATA: json.dumps(record)}):
                session.query(f"delete from {world.table} where id = 5")
            self.refused(world, session, "NEWER_FORMAT.*commit of the model's table.*Install the release")

        world = fresh("by row")
        request = request_text(ForgetRequest("later", ("drawn",))).replace('forget": 1', 'forget": 2')
        FORMATS["delta"].say(session, session.query, world.table, "later", request)
        self.refused(world, session, "NEWER_FORMAT.*request to forget")

        world = fresh("remembered")
        with tagged(session, {USER_METADATA: json.dumps({"spark_mv_state": 2, "id": "1", "run_id": "later"})}):
            session.query(f"delete from {world.table}__state where id = 5")
        self.refused(world, session, "NEWER_FORMAT.*state table")

        for change in ("set tblproperties ('spark_mv.format' = '2')", "add columns (a_column_to_come int)"):
            world = fresh("asked")
            session.query(f"alter table {world.schema}.ai_results {change}")
            self.refused(world, session, "NEWER_FORMAT.*ai_results")
            assert not world.paid()

    def refused(self, world: World, session: Gated, text: str) -> None:
        before = world.read(session)
        for full_refresh in (False, True):
            with pytest.raises(RefusedError, match=text):
                world.run_auto(session, full_refresh=full_refresh)
        assert world.read(session) == before
