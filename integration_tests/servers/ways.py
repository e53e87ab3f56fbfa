"""The ways in which dbt reaches Spark, each as one function: a folder and a table format in, what the core suite found out.

    python -m integration_tests.servers.ways WAY FORMAT [FILE]

runs the suite by one of them and prints the counts; with FILE a line is appended to it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from integration_tests.conftest import SETTINGS
from integration_tests.quick_java import QUICK_JAVA
from integration_tests.servers.conftest import Project
from integration_tests.servers.core_models import MV
from integration_tests.servers.core_suite import OFFERED, SCHEMA, Outcome, files, live, set_up, target
from integration_tests.servers.server import CONNECT, THRIFT, Server
from integration_tests.servers.standalone import Cluster

ROOT = Path(__file__).parents[2]
QUICK = {"spark.driver.extraJavaOptions": QUICK_JAVA}
OWN = {**SETTINGS, **QUICK}
"""Of a Spark that dbt, or a server for it, starts: statements are interpreted, as in the other suites of small ones."""


def formats(table_format: str) -> dict[str, Any]:
    return {} if table_format == "delta" else {"formats": ["delta", table_format], "file_format": table_format}


def server_of(kind: str, folder: Path, table_format: str) -> Server:
    """A server of that kind which writes tables of the format."""
    return Server(
        kind, folder / "server", {"spark.driver.memory": "2g"}, iceberg="hive" if table_format == "iceberg" else ""
    )


def project(folder: Path, table_format: str, **outputs: dict[str, Any]) -> Project:
    return Project(folder / "project", outputs, files(table_format))


def embedded(folder: Path, table_format: str) -> Outcome:
    dev = target(method="session", spark_config=OWN, **formats(table_format))
    return live(project(folder, table_format, dev=dev), make=set_up(table_format))


def serve(folder: Path, table_format: str) -> Outcome:
    dev = target(method="session", spark_config=OWN, **formats(table_format))
    work = project(folder, table_format, dev=dev)

    def command(*words: str) -> None:
        program = Path(sys.executable).with_name("spark-mv")
        subprocess.run([str(program), "serve", *words, "--profiles-dir", "."], cwd=work.folder, check=True, timeout=240)

    command()
    try:
        return live(work, make=set_up(table_format))
    finally:
        command("--stop", "--force")


def standalone(folder: Path, table_format: str) -> Outcome:
    with Cluster(folder / "cluster") as cluster:
        profile = cluster.profile(folder / "events")
        profile["spark_config"] |= {key: value for key, value in OWN.items() if "codegen" in key or key in QUICK}
        dev = target(**profile, **formats(table_format))
        return live(project(folder, table_format, dev=dev), make=set_up(table_format))


def connect(folder: Path, table_format: str) -> Outcome:
    with server_of(CONNECT, folder, table_format) as server:
        dev = target(method="session", host=f"sc://127.0.0.1:{server.port}", file_format=table_format)
        return live(project(folder, table_format, dev=dev), make=set_up(table_format))


def thrift(folder: Path, table_format: str) -> Outcome:
    with server_of(THRIFT, folder, table_format) as server:
        dev = target(method="thrift", host="127.0.0.1", port=server.port, user="dbt", file_format=table_format)
        return live(project(folder, table_format, dev=dev), make=set_up(table_format))


def macro_only(folder: Path, table_format: str) -> Outcome:
    """Plain dbt-spark with the package on a Spark of its own; plans and tables beside the models are made with the adapter, in processes before."""
    import pyspark

    from spark_mv.spark.session.jars import delta_coordinates, local_jars
    from spark_mv.spark.session.java import find_java
    from spark_mv.spark.session.spark_settings import embedded_settings

    warehouse = folder / "warehouse"
    jars = local_jars(
        delta_coordinates(pyspark.__version__), find_java(pyspark.__version__), Path(pyspark.__file__).parent / "jars"
    )
    plain = {
        "type": "spark",
        "method": "session",
        "host": "none",
        "schema": SCHEMA,
        "threads": 1,
        "server_side_parameters": embedded_settings(OWN, warehouse, jars),
    }
    dev = target(method="session", warehouse=str(warehouse), spark_config=OWN, **formats(table_format))
    return _planned(project(folder, table_format, dev=dev, plain=plain), table_format)


def macro_only_thrift(folder: Path, table_format: str) -> Outcome:
    """The same over a Thrift server."""
    with Server(THRIFT, folder / "server", settings={"spark.driver.memory": "2g"}) as server:
        where = {"method": "thrift", "host": "127.0.0.1", "port": server.port, "user": "dbt"}
        plain = {"type": "spark", "schema": SCHEMA, "threads": 1, **where}
        dev = target(**where, **formats(table_format))
        return _planned(project(folder, table_format, dev=dev, plain=plain), table_format)


def _planned(work: Project, table_format: str) -> Outcome:
    (work.folder / "packages.yml").write_text(f"packages: [{{local: '{ROOT}'}}]\n", encoding="utf-8")
    # a plan wants the tables that its model reads, and some of these are made by models: there while it is planned, and then gone
    tables = [model.name for model in OFFERED if model.materialized == MV]
    empty = {"dbt": ["run", "--empty", "--select", "config.materialized:" + MV]}
    work.run({"dbt": ["deps"]}, *set_up(table_format), empty)
    program = Path(sys.executable).with_name("spark-mv")
    subprocess.run([str(program), "plan", "--profiles-dir", "."], cwd=work.folder, check=True, timeout=400)
    work.run(*({"sql": f"drop table if exists {SCHEMA}.{name}{of}"} for name in tables for of in ("", "__state")))
    return live(work, target="plain")


WAYS: dict[str, Callable[[Path, str], Outcome]] = {
    "embedded": embedded,
    "serve": serve,
    "standalone": standalone,
    "connect": connect,
    "thrift": thrift,
    "macro-only": macro_only,
    "macro-only-thrift": macro_only_thrift,
}


def main(way: str, table_format: str, file: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="dbt-spark-mv-core-") as folder:
        outcome = WAYS[way](Path(folder), table_format)
    for place, why in outcome.failed.items():
        print(*place, why[:2000], sep=" | ")
    for model, why in outcome.refused.items():
        print("refused", model, why[:300], sep=" | ")
    line = f"{way}, {table_format}: {outcome.counts}"
    print(line)
    if file:
        with Path(file).open("a", encoding="utf-8") as log:
            log.write(line + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
