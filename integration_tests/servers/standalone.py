"""A standalone cluster on loopback: a master and two workers, each a process of its own, and an executor of each per application."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from integration_tests.servers.server import free_port

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class Cluster:
    """`with Cluster(folder) as cluster:` answers at `cluster.master` (`spark://…`) until the block ends; logs are in the folder."""

    def __init__(self, home: Path, workers: int = 2) -> None:
        self.home, self.workers = home, workers
        self.port, self.page_port = free_port(), free_port()
        self.master = f"spark://127.0.0.1:{self.port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Cluster:
        self.home.mkdir(parents=True, exist_ok=True)
        self._start(
            MASTER, "master", "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", str(self.page_port)
        )
        self._wait(lambda: self.state() is not None, "master")
        for number in range(self.workers):
            pages = [
                "--host",
                "127.0.0.1",
                "--webui-port",
                str(free_port()),
                "--work-dir",
                str(self.home / f"work{number}"),
            ]
            self._start(WORKER, f"worker{number}", "--cores", "1", "--memory", "1g", *pages, self.master)
        self._wait(lambda: self.alive() == self.workers, "workers")
        return self

    def __exit__(self, *_: Any) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()

    def state(self) -> dict[str, Any] | None:
        """What the master tells of workers and applications; None while it does not answer."""
        try:
            with urlopen(f"http://127.0.0.1:{self.page_port}/json/", timeout=5) as reply:
                return dict(json.loads(reply.read()))
        except OSError:
            return None

    def alive(self) -> int:
        return sum(worker["state"] == "ALIVE" for worker in (self.state() or {"workers": []})["workers"])

    def applications(self) -> list[str]:
        """Names of the applications that run."""
        return [app["name"] for app in (self.state() or {"activeapps": []})["activeapps"]]

    def executors(self) -> list[int]:
        """Processes of this cluster's executors."""
        found = []
        for folder in Path("/proc").iterdir():
            try:
                line = (folder / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if folder.name.isdigit() and EXECUTOR in line and str(self.home) in os.readlink(folder / "cwd"):
                found.append(int(folder.name))
        return found

    def kill_executor(self) -> int:
        """The process that was killed."""
        process = self.executors()[0]
        os.kill(process, signal.SIGKILL)
        return process

    def profile(self, folder: Path) -> dict[str, Any]:
        """What a profile says to use the cluster; event logs go into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "spark.executor.memory": "700m",
            "spark.executor.cores": "1",
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.ui.enabled": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": folder.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        return {"type": "spark_mv", "method": "session", "master": self.master, "spark_config": settings}

    def _start(self, kind: str, name: str, *arguments: str) -> None:
        import pyspark

        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }
        for one in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "SPARK_MASTER_HOST"):
            environment.pop(one, None)
        program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
        with (self.home / f"{name}.log").open("wb") as log:
            # spark-class replaces itself by Java, which is ended by the process id that is known here
            self._processes.append(
                subprocess.Popen([program, kind, *arguments], stdout=log, stderr=log, env=environment, cwd=self.home)
            )

    def _wait(self, ready: Any, what: str, seconds: float = 400) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline or any(process.poll() is not None for process in self._processes):
                logs = "\n".join(file.read_text(errors="replace")[-1500:] for file in self.home.glob("*.log"))
                self.__exit__()
                raise RuntimeError(f"no {what}: {logs}")
            time.sleep(0.3)
