"""Settings of the embedded session: fit for one machine, the user's own always in front."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from spark_mv.spark.adapter.credentials import SparkMvCredentials
from spark_mv.spark.session.iceberg import FORMATS
from spark_mv.spark.session.spark_settings import brings_delta, brings_iceberg, embedded_settings

pytestmark = pytest.mark.unit
HOME = Path("/tmp/warehouse")
JAR = Path("/jars/delta-spark_4.1_2.13-4.4.0.jar")


def test_defaults() -> None:
    settings = embedded_settings({}, HOME, [JAR], cores=3, memory_mb=16000)
    assert settings["spark.sql.shuffle.partitions"] == "3"
    assert settings["spark.driver.memory"] == "4000m"
    assert settings["spark.databricks.delta.snapshotPartitions"] == "1"
    assert int(settings["spark.databricks.delta.delta.log.cacheSize"]) <= 200  # of 3 MB each
    assert settings["spark.sql.warehouse.dir"] == "file:///tmp/warehouse/tables"
    assert "databaseName=/tmp/warehouse/metastore" in settings["spark.hadoop.javax.jdo.option.ConnectionURL"]


@pytest.mark.parametrize("memory,megabytes", [(2000, 1024), (8000, 2000), (64000, 8192)])
def test_memory_is_a_quarter_between_one_and_eight(memory: int, megabytes: int) -> None:
    settings = embedded_settings({}, HOME, [], memory_mb=memory)
    assert settings["spark.driver.memory"] == f"{megabytes}m"


def test_the_user_wins() -> None:
    user = {
        "spark.sql.shuffle.partitions": "200",
        "spark.master": "spark://host:7077",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.whatever": "x",
    }
    settings = embedded_settings(user, HOME, [JAR])
    assert {key: settings[key] for key in user} == user


def test_a_blank_in_the_path() -> None:
    settings = embedded_settings({"spark.driver.extraJavaOptions": "-Dx='a b'"}, Path("/tmp/my project/a"), [JAR])
    assert settings["spark.sql.warehouse.dir"] == "file:///tmp/my project/a/tables"
    options = shlex.split(settings["spark.driver.extraJavaOptions"])
    assert "-Dderby.stream.error.file=/tmp/my project/a/derby.log" in options and options[-1] == "-Dx=a b"


def test_the_users_collector_is_the_only_one() -> None:
    """Java does not start with two."""
    java = "spark.driver.extraJavaOptions"
    assert "-XX:+UseParallelGC" in embedded_settings({java: "-Dx=1"}, HOME, [JAR])[java].split()
    options = embedded_settings({java: "-XX:+UseZGC -Dx=1"}, HOME, [JAR])[java].split()
    assert [option for option in options if option.endswith("GC")] == ["-XX:+UseZGC"] and "-Xss4m" in options


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:443", "local-cluster[2,1,1024]"])
def test_on_a_cluster_what_fits_one_machine_is_left_out(master: str) -> None:
    """Executors elsewhere fetch the jars, look for the driver by its name, and have other numbers of cores than the driver's machine."""
    settings = embedded_settings({"spark.master": master}, HOME, [JAR], cores=2)
    assert settings["spark.jars"] == JAR.as_uri() and "spark.driver.extraClassPath" not in settings
    for key in (
        "spark.sql.shuffle.partitions",
        "spark.default.parallelism",
        "spark.databricks.delta.snapshotPartitions",
    ):
        assert key not in settings
    assert ("spark.driver.host" in settings) == master.startswith("local")


def test_a_cluster_on_loopback_finds_the_driver_there() -> None:
    settings = embedded_settings({"spark.master": "spark://127.0.0.1:7077"}, HOME, [JAR])
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"


def test_master_is_the_setting() -> None:
    def profile(**more: Any) -> SparkMvCredentials:
        return SparkMvCredentials.from_dict({"schema": "s", "method": "session", **more})

    settings = {"spark.master": "yarn"}
    assert profile(master="spark://host:7077").server_side_parameters["spark.master"] == "spark://host:7077"
    assert profile(master="yarn", spark_config=settings).server_side_parameters["spark.master"] == "yarn"
    with pytest.raises(DbtRuntimeError, match=r"'local\[2\]' stands beside spark.master: 'yarn'"):
        profile(master="local[2]", spark_config=settings)
    with pytest.raises(DbtRuntimeError, match="a server has its own master"):
        profile(master="yarn", host="sc://host:15002")


def test_lists_are_added_to() -> None:
    settings = embedded_settings({"spark.sql.extensions": "org.example.Mine", "spark.jars": "/mine.jar"}, HOME, [JAR])
    assert settings["spark.sql.extensions"].split(",") == [
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.example.Mine",
    ]
    assert settings["spark.jars"] == "/mine.jar"
    assert JAR.name in settings["spark.driver.extraClassPath"]


def test_iceberg_where_the_profile_asks_for_it() -> None:
    assert not any("iceberg" in key for key in embedded_settings({}, HOME, [JAR]))
    settings = embedded_settings({FORMATS: "delta,iceberg"}, HOME, [JAR])
    assert settings["spark.sql.extensions"].split(",")[0] == "io.delta.sql.DeltaSparkSessionExtension"
    assert settings["spark.sql.extensions"].endswith("IcebergSparkSessionExtensions")
    assert settings["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    assert settings["spark.sql.catalog.iceberg_catalog.cache-enabled"] == "false"
    assert brings_iceberg({"spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"})


def test_formats_that_are_not_there() -> None:
    with pytest.raises(DbtRuntimeError, match=r"formats: hudi is not there; .* delta and iceberg"):
        SparkMvCredentials(schema="s", formats=["delta", "hudi"])
    assert SparkMvCredentials(schema="s", formats=["Iceberg"]).server_side_parameters[FORMATS] == "delta,iceberg"


def test_delta_of_the_users_own() -> None:
    assert brings_delta({"spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0"})
    assert not brings_delta({"spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"})
