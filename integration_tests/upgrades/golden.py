"""Tables that a release made, kept as a file: `python -m integration_tests.upgrades.golden` writes those of this release, and the test of
later ones goes on with all that were ever written. Delta's logs name their files by paths of their own folder, so the tables may stand anywhere."""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from shutil import copytree
from typing import Any

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
SCHEMA = "golden"
MODELS = sorted(file.stem for file in (HERE / "project" / "models").glob("*.sql"))
DAYS = [f"2026-02-0{day} 06:00:00" for day in range(1, 8)]
"""Instants of runs: the first two are those of the tables that are kept."""
FEED = "using delta tblproperties ('delta.enableChangeDataFeed' = 'true')"
SOURCE = (
    f"create table {SCHEMA}.events (id bigint, kind string, word string, amount decimal(8, 2), at timestamp) {FEED}",
    f"insert into {SCHEMA}.events select id, concat('k', id % 3), concat('word ', id % 5), id * 1.25, "
    "timestampadd(HOUR, cast(6 * id as int), timestamp'2026-01-29 00:00:00') from range(1, 25)",
)
CHANGES = (
    f"insert into {SCHEMA}.events values (30, 'k9', 'word 9', 9.5, timestamp'2026-02-01 12:00:00')",
    f"update {SCHEMA}.events set amount = amount + 1 where id in (2, 4)",
    f"delete from {SCHEMA}.events where id = 6",
)
"""Between the two runs."""
FORGET = {"model": "to_forget", "columns": ["draw"], "where": "id < 4"}


def project(folder: Path, warehouse: Path, settings: Mapping[str, str], asked: Path) -> list[str]:
    """A copy of the project with a profile of its own; the arguments that name it to dbt."""
    copytree(HERE / "project", folder, dirs_exist_ok=True)
    output = {
        "type": "spark_mv",
        "method": "session",
        "schema": SCHEMA,
        "threads": 2,
        "warehouse": str(warehouse),
        "choose_by": "rows",
        "second_reading": False,
        "ai": {"provider": "scripted", "model": "m", "options": {"count_file": str(asked)}},
        "spark_config": {**settings, "spark.sql.session.timeZone": "UTC"},
    }
    profile = {"golden": {"target": "it", "outputs": {"it": output}}}
    (folder / "profiles.yml").write_text(json.dumps(profile), encoding="utf-8")
    return ["--project-dir", str(folder), "--profiles-dir", str(folder)]


def dbt(where: list[str], *command: str) -> Any:
    """What dbt returns for a command in this process."""
    from dbt.cli.main import dbtRunner

    return dbtRunner().invoke(["--quiet", "--no-send-anonymous-usage-stats", *command, *where])


def run(where: list[str], day: int, *more: str) -> dict[str, Any]:
    """Results of `dbt run` at that day's instant, by model."""
    said = json.dumps({"as_of": DAYS[day - 1], "allow_future_as_of": True})
    done = dbt(where, "run", "--vars", said, *more)
    assert done.exception is None, done.exception
    return {result.node.name: result for result in done.result.results}


def content(spark: Any, table: str) -> list[list[Any]]:
    """The rows of a table in order, as JSON has them."""
    rows = spark.sql(f"select * from {SCHEMA}.{table}").collect()
    return sorted(([_plain(value) for value in row] for row in rows), key=json.dumps)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


def make(file: Path) -> None:
    """The tables of this release, in the file."""
    from integration_tests.conftest import SETTINGS

    from spark_mv.spark.session.session import open_session

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warehouse = folder / "warehouse"
        where = project(folder / "project", warehouse, SETTINGS, folder / "asked")
        spark = open_session({**SETTINGS, "spark.sql.session.timeZone": "UTC"}, warehouse, folder / "spark.log")
        spark.sql(f"create schema {SCHEMA}")
        for day, statements in ((1, SOURCE), (2, CHANGES)):
            for statement in statements:
                spark.sql(statement)
            results = run(where, day)
            assert all(result.status == "success" for result in results.values()), results
        dbt(where, "run-operation", "forget_values", "--args", json.dumps(FORGET))
        tables = sorted(row["tableName"] for row in spark.sql(f"show tables in {SCHEMA}").collect())
        expected = {
            "release": version("dbt-spark-mv"),
            "spark": version("pyspark"),
            "tables": {table: content(spark, table) for table in tables},
            "asked": sorted((folder / "asked").read_text(encoding="utf-8").splitlines()),
        }
        (warehouse / "expected.json").write_text(json.dumps(expected, indent=1), encoding="utf-8")
        file.parent.mkdir(exist_ok=True)
        with tarfile.open(file, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as archive:
            archive.add(warehouse / "expected.json", "expected.json")
            tables_folder = warehouse / "tables" / f"{SCHEMA}.db"
            for path in sorted(tables_folder.rglob("*")):
                if path.is_file() and path.suffix != ".crc":
                    archive.add(path, str(path.relative_to(tables_folder)), filter=_anonymous)


def _anonymous(file: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the name of who made it. The time stays: it is that of the commit, and records name it."""
    file.uid = file.gid = 0
    file.uname = file.gname = ""
    return file


def unpack(spark: Any, file: Path, folder: Path) -> dict[str, Any]:
    """The tables of the file, in the folder and known to the catalogue under their names. What they held when they were written."""
    folder.mkdir(parents=True)
    with tarfile.open(file) as archive:
        archive.extractall(folder)
    spark.sql(f"create schema {SCHEMA}")
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    for table in expected["tables"]:
        spark.sql(f"create table {SCHEMA}.{table} using delta location '{folder / table}'")
    return expected


if __name__ == "__main__":
    make(GOLDEN / f"{version('dbt-spark-mv')}.tar.xz")
    sys.exit(0)
