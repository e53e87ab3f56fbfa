"""Iceberg's own REST catalogue on this machine: the server of its test fixtures, with a database in its memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from integration_tests.servers.server import free_port

ICEBERG, JETTY = "1.11.0", "12.1.5"
ARTIFACTS = (
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}:tests",
    f"org.eclipse.jetty.ee10:jetty-ee10-servlet:{JETTY}",
    f"org.eclipse.jetty.compression:jetty-compression-server:{JETTY}",
    f"org.eclipse.jetty.compression:jetty-compression-gzip:{JETTY}",
    "org.xerial:sqlite-jdbc:3.46.1.3",
    "org.apache.hadoop:hadoop-client-api:3.4.1",
    "org.apache.hadoop:hadoop-client-runtime:3.4.1",
)
"""What the server needs, by coordinates. The pom of its fixtures names nothing of it."""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>t</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{}</dependencies>
</project>"""


def _dependency(coordinates: str) -> str:
    names = ("groupId", "artifactId", "version", "classifier")
    parts = zip(names, coordinates.split(":"), strict=False)
    return "<dependency>" + "".join(f"<{name}>{value}</{name}>" for name, value in parts) + "</dependency>"


def server_jars(folder: Path) -> Path:
    """A folder with the server's jars, as Maven fetches them. Skips the test where Maven is not there, or does not find them."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("needs Maven (mvn) on the PATH, which fetches Iceberg's REST catalogue")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(_POM.format("".join(map(_dependency, ARTIFACTS))), encoding="utf-8")
    jars = folder / "jars"
    asked = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"Maven could not fetch Iceberg's REST catalogue: {(done.stdout + done.stderr).strip()[-600:]}")
    return jars


class RestCatalogue:
    """The server while the block runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self, name: str) -> dict[str, str]:
        """Spark's settings with this catalogue as the one in which names without one are found."""
        catalogue = f"spark.sql.catalog.{name}"
        return {
            catalogue: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalogue}.type": "rest",
            f"{catalogue}.uri": self.url,
            "spark.sql.defaultCatalog": name,
        }

    def __enter__(self) -> RestCatalogue:
        jars = server_jars(self.folder)
        # a second connection to a database in memory finds an empty one
        places = {
            "CATALOG_REST_PORT": str(self.port),
            "CATALOG_WAREHOUSE": str(self.folder / "warehouse"),
            "CATALOG_CLIENTS": "1",
        }
        with (self.folder / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                ["java", "-cp", f"{jars}/*", "org.apache.iceberg.rest.RESTCatalogServer"],
                env={**os.environ, **places},
                stdout=log,
                stderr=log,
            )
        self._wait(time.monotonic() + 120)
        return self

    def _wait(self, until: float) -> None:
        assert self.process is not None
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/v1/config", timeout=5):
                    return
            except OSError:
                time.sleep(0.5)
        self.__exit__()
        raise AssertionError((self.folder / "server.log").read_text(encoding="utf-8")[-3000:])

    def __exit__(self, *_: Any) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
