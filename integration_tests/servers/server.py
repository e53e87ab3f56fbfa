"""Spark servers on loopback, in processes of their own: Spark Connect, and Thrift (which runs no Python)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from integration_tests.quick_java import QUICK_JAVA

from spark_mv.spark.session.iceberg import with_extensions
from spark_mv.spark.session.jars import delta_coordinates, iceberg_coordinates, local_jars
from spark_mv.spark.session.java import find_java

#: a sitecustomize for a Python that knows nothing of dbt: it refuses to import what is `missing`
NOT_ON_THE_SERVER = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Refuse())
"""

CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


#: Iceberg in the place of Spark's own catalogue. For its locks a metastore in a process of Spark's lacks the tables
IN_METASTORE = {
    "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
    "spark.sql.catalog.spark_catalog.type": "hive",
    "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    "spark.hadoop.datanucleus.connectionPoolingType": "dbcp",
    "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
}


def in_folder(folder: Path) -> dict[str, str]:
    return {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder),
        "spark.sql.defaultCatalog": "lake",
    }


class Server:
    """`with Server(CONNECT, folder) as server:` answers on `server.port` until the block ends; its log is `server.log`.

    Its Python has pandas, pyarrow, openai and tenacity, but neither spark_mv nor dbt, and nothing of `missing`. With `iceberg`, names without
    a catalogue are found in one of Iceberg's: "hadoop" (`lake`, a folder, in which there are no views), or "hive" (`spark_catalog`, in which of two
    that commit at once both may think that they were first).
    """

    def __init__(
        self,
        kind: str,
        home: Path,
        settings: dict[str, str] | None = None,
        missing: tuple[str, ...] = (),
        iceberg: str = "",
    ) -> None:
        self.kind, self.home, self.iceberg = kind, home, iceberg
        self.settings = settings or {}
        self.missing = ("spark_mv", "dbt", "sqlglot", *missing)
        self.port = free_port()
        self.log = home / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        packages = self.home / "python"
        packages.mkdir(parents=True)
        (self.home / "lake" / "default").mkdir(parents=True)  # a connection of PyHive begins with USE default
        (packages / "sitecustomize.py").write_text(NOT_ON_THE_SERVER.format(missing=set(self.missing)))
        environment = {**os.environ, "PYTHONPATH": str(packages), "PYSPARK_PYTHON": sys.executable}
        for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT"):
            environment.pop(name, None)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(self._command(), stdout=log, stderr=log, env=environment, cwd=self.home)
        deadline = time.monotonic() + 120
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"no server: {self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.2)
        return self

    def __exit__(self, *_: Any) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(60)

    def page(self, path: str) -> str:
        """A page of the server's web interface, "" where there is none; `spark.ui.port` must be among the settings."""
        try:
            with urlopen(f"http://127.0.0.1:{self.settings['spark.ui.port']}{path}", timeout=10) as reply:
                return str(reply.read().decode("utf-8", "ignore"))
        except OSError:
            return ""

    def _command(self) -> list[str]:
        import pyspark

        spark = Path(pyspark.__file__).parent
        java = find_java(pyspark.__version__)
        jars = local_jars(delta_coordinates(pyspark.__version__), java, spark / "jars")
        settings = {
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
            "spark.ui.enabled": "false",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": str(self.home / "warehouse"),
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.home / 'metastore'};create=true",
        }
        if self.iceberg:
            more = local_jars(iceberg_coordinates(pyspark.__version__), java, spark / "jars")
            settings["spark.driver.extraClassPath"] += "".join(f"{os.pathsep}{jar}" for jar in more)
            settings["spark.sql.extensions"] = with_extensions(settings["spark.sql.extensions"])
            settings |= IN_METASTORE if self.iceberg == "hive" else in_folder(self.home / "lake")
        if self.kind == CONNECT:
            settings["spark.connect.grpc.binding.address"] = "127.0.0.1"
            settings["spark.connect.grpc.binding.port"] = str(self.port)
            settings["spark.sql.catalogImplementation"] = "hive" if self.iceberg == "hive" else "in-memory"
        else:
            settings["spark.hadoop.hive.server2.thrift.port"] = str(self.port)
            settings["spark.hadoop.hive.server2.thrift.bind.host"] = "127.0.0.1"
        options = [
            part for name, value in {**settings, **self.settings}.items() for part in ("--conf", f"{name}={value}")
        ]
        return [str(spark / "bin" / "spark-submit"), *options, "--class", self.kind, "spark-internal"]


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as sock:
        sock.settimeout(1)
        return sock.connect_ex(("127.0.0.1", port)) == 0
