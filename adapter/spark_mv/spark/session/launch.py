"""Starting Spark's JVM without the detours: no shell script, no second JVM that only puts a command line together.

PySpark starts `spark-submit`, a script that starts a JVM (org.apache.spark.launcher.Main) whose output is the command of
the JVM that matters. That output depends on nothing but the arguments, a few variables and Spark's own configuration
files, so it is kept; later starts run it directly.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from spark_mv.spark.session.class_archive import with_archive
from spark_mv.spark.session.jars import cache_folder

#: variables that change what the launcher answers
_VARIABLES = (
    "JAVA_HOME",
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "SPARK_DAEMON_JAVA_OPTS",
    "PYSPARK_SUBMIT_ARGS",
    "HADOOP_CONF_DIR",
)

_SUBMIT = "org.apache.spark.deploy.SparkSubmit"

#: the running JVM's process: it ends when its standard input does, so that is kept open for as long as Python runs
_processes: list[subprocess.Popen[bytes]] = []


class LaunchError(Exception):
    """The JVM ended before it could be talked to; its output is in the log."""


def java_command(java: str, spark_home: Path, settings: Mapping[str, str]) -> list[str]:
    """The command line of Spark's JVM for these settings, from the cache or from Spark's launcher. Raises LaunchError."""
    arguments = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    conf = Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf")
    stamps = [file.stat().st_mtime_ns for file in (conf / "spark-defaults.conf", Path(java)) if file.exists()]
    jars = sorted(file.name for file in (spark_home / "jars").glob("spark-launcher*.jar"))
    about = [java, str(spark_home), jars, arguments, stamps, {name: os.environ.get(name) for name in _VARIABLES}]
    kept = cache_folder() / "launch" / (hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32] + ".json")
    if (found := _kept(kept)) is not None:
        return found
    command = _ask_launcher(java, spark_home, arguments)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False, encoding="utf-8") as file:
            json.dump(command, file)
        os.replace(file.name, kept)
    except OSError:
        pass  # a cache that cannot be written costs time only
    return command


def _kept(file: Path) -> list[str] | None:
    """The command in the file. What another release or program has put there in another form is asked for anew."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    ours = isinstance(found, list) and all(isinstance(part, str) for part in found) and _SUBMIT in found
    return found if ours else None


def _ask_launcher(java: str, spark_home: Path, arguments: list[str]) -> list[str]:
    command = [java, "-Xmx128m", "-cp", str(spark_home / "jars" / "*"), "org.apache.spark.launcher.Main"]
    command += [_SUBMIT, *arguments, "pyspark-shell"]
    (scala,) = (spark_home / "jars").glob("scala-library-*.jar")
    binary = ".".join(scala.stem.removeprefix("scala-library-").split(".")[:2])
    environment = {**os.environ, "SPARK_HOME": str(spark_home), "SPARK_SCALA_VERSION": binary}
    answer = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=120)
    # a NUL and a line end come first, then the command's parts, each with a NUL behind it
    found = [part.decode() for part in answer.stdout.partition(b"\0\n")[2].split(b"\0") if part]
    if answer.returncode != 0 or not found or _SUBMIT not in found:
        raise LaunchError(answer.stderr.decode(errors="replace").strip() or "Spark's launcher gave no command")
    return found


def start_gateway(command: list[str], log: IO[bytes], conf: Any, seconds: float = 120.0) -> Any:
    """Starts the JVM and returns PySpark's gateway to it. Raises LaunchError when the JVM ends or stays silent."""
    from pyspark.serializers import UTF8Deserializer, read_int

    folder = tempfile.mkdtemp()
    try:
        info = Path(folder) / "connection"
        environment = {**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info), "SPARK_CONNECT_MODE": "0"}
        process = subprocess.Popen(
            with_archive(command),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            # Ctrl-C is for dbt, which cancels what runs; a JVM that hears it too would be gone before that
            start_new_session=sys.platform != "win32",
        )
        _processes.append(process)
        deadline = time.monotonic() + seconds
        while not info.is_file():
            if process.poll() is not None:
                raise LaunchError(f"Java ended with exit code {process.returncode}")
            if time.monotonic() > deadline:
                process.kill()
                raise LaunchError(f"Java gave no answer within {seconds:.0f} seconds")
            time.sleep(0.02)
        with info.open("rb") as file:
            port, secret = read_int(file), UTF8Deserializer().loads(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return connect(port, secret, conf)


def connect(port: int, secret: str, conf: Any = None) -> Any:
    """PySpark connects to a JVM that is there already when two variables of the environment say where. PySpark alone sees them: dbt reads
    the environment of the process in other threads, and fails where a variable goes meanwhile."""
    from pyspark import java_gateway

    seen = ModuleType("os")
    vars(seen).update(vars(os))
    where = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    vars(seen)["environ"] = {**os.environ.copy(), **where}
    vars(java_gateway)["os"] = seen
    try:
        return java_gateway.launch_gateway(conf)
    finally:
        vars(java_gateway)["os"] = os


def started_with() -> list[str]:
    """The command line of the JVM of this process. Raises LaunchError when there is none."""
    if not _processes or not isinstance(_processes[-1].args, list):
        raise LaunchError("this process has started no Java")
    return [str(part) for part in _processes[-1].args]


def stop_java(seconds: float = 180.0) -> None:
    """Ends the JVM of this process in good order, and waits for what it writes at its end."""
    process = _processes.pop()
    if process.stdin is not None:
        process.stdin.close()
    process.wait(seconds)
