"""What a command line may show of the settings."""

from __future__ import annotations

import pytest

from spark_mv.spark.session.secret_settings import is_secret, without_secrets

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.hadoop.fs.s3a.secret.key", "abc"),
        ("spark.hadoop.fs.s3a.access.key", "abc"),
        ("spark.hadoop.fs.s3a.session.token", "abc"),
        ("spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net", "abc"),
        ("spark.hadoop.fs.azure.sas.fixed.token.box.shop.dfs.core.windows.net", "abc"),
        ("spark.hadoop.javax.jdo.option.ConnectionPassword", "abc"),
        ("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:postgresql://host/db?user=a&password=abc"),
        ("spark.sql.catalog.lake.uri", "https://me:abc@host"),
        ("spark.sql.catalog.lake.credential", "id:abc"),
        ("spark.authenticate.secret", "abc"),
        ("spark.ssl.keyStorePassword", "abc"),
        ("spark.my.passwordhint", "abc"),
        ("spark.hadoop.javax.jdo.option.ConnectionPasswordX", "abc"),
    ],
)
def test_secrets_are_not_shown(name: str, value: str) -> None:
    assert is_secret(name, value) and not without_secrets({name: value}).shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:;databaseName=metastore;create=true"),
        ("spark.hadoop.fs.s3a.endpoint", "https://host:9000"),
        ("spark.driver.extraJavaOptions", "-XX:+UseParallelGC -Dderby.stream.error.file=derby.log"),
        ("spark.jars.repositories", "https://me:abc@host"),  # read before a JVM could be told
    ],
)
def test_other_settings_stay_as_they_are(name: str, value: str) -> None:
    assert without_secrets({name: value}).shown == {name: value}


def test_javas_own_properties_are_set_later() -> None:
    options = "-XX:+UseG1GC -Djavax.net.ssl.trustStorePassword='a b' -Dname='x y'"
    start = without_secrets({"spark.driver.extraJavaOptions": options})
    assert start.shown == {"spark.driver.extraJavaOptions": "-XX:+UseG1GC '-Dname=x y'"}
    assert start.properties == {"javax.net.ssl.trustStorePassword": "a b"}


def test_values_of_dbts_secret_variables_are_secret_under_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_ENV_SECRET_S6", "hunter2-plain")
    assert without_secrets({"spark.my.plain": "a hunter2-plain", "spark.my.other": "a"}).shown == {
        "spark.my.other": "a"
    }
    monkeypatch.setenv("DBT_ENV_SECRET_S6", "a")
    assert not is_secret("spark.my.other", "abc")
