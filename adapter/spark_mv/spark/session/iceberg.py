"""Iceberg in the embedded session: the settings that bring it, and one catalogue in which its tables stand beside Delta's.

The catalogue is the one that is there anyway: Hive's metastore in a Derby database under the warehouse, which survives the
process. An Iceberg table in it is listed by SHOW TABLES, found by two-part names, and can be renamed. Iceberg's Hadoop catalogue
cannot rename and is not listed beside other tables; its JDBC catalogue would need a driver more, and lists its tables apart.

Spark lets one class have `spark_catalog`, and Delta needs to be it. What is none of Delta's it hands on to a catalogue behind it;
there Iceberg's is put, which hands on to Spark's own. So Delta's statements keep their atomic commits. Iceberg's atomic
CREATE … AS SELECT and its procedures are reached by the catalogue's other name, CATALOG.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spark_mv.spark.session.session_catalogue import SESSION_CATALOGUE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = "spark.spark_mv.formats"
"""Setting with the table formats that the profile asks for, `delta,iceberg`."""
CATALOG = "iceberg_catalog"
"""The name by which the same tables are reached through Iceberg's own catalogue."""
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_OPTIONS = {"type": "hive", "cache-enabled": "false"}
"""Without a cache, a session sees what another one has committed."""


def asked_for(settings: Mapping[str, str]) -> bool:
    """Whether the profile asks for Iceberg in the embedded session."""
    return "iceberg" in settings.get(FORMATS, "").split(",")


def iceberg_settings() -> dict[str, str]:
    """Settings to start Spark with, the extensions apart."""
    name = f"spark.sql.catalog.{CATALOG}"
    options = {f"{name}.{key}": value for key, value in _OPTIONS.items()}
    return {
        name: "org.apache.iceberg.spark.SparkCatalog",
        **options,
        # for these locks Hive would take a pool of connections that Spark does not ship
        "spark.hadoop.datanucleus.connectionPoolingType": "dbcp",
        # a table of the metastore that is not there when Iceberg opens it, those of functions say, is made when it is needed
        "spark.hadoop.datanucleus.schema.autoCreateTables": "true",
        # Hive compares columns by their places, and would refuse a table that is made anew with others
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
    }


def with_extensions(extensions: str) -> str:
    """Spark's extensions and Iceberg's."""
    return f"{extensions},{_EXTENSIONS}"


def make_lock_tables(session: SparkSession) -> None:
    """Iceberg's commits take a lock of the metastore, in tables that Hive makes in no embedded database by itself."""
    jvm: Any = session._jvm
    conf = jvm.org.apache.hadoop.hive.conf.HiveConf(
        session._jsparkSession.sessionState().newHadoopConf(),
        jvm.java.lang.Class.forName("org.apache.hadoop.hive.conf.HiveConf"),
    )
    try:
        jvm.org.apache.hadoop.hive.metastore.txn.TxnDbUtil.prepDb(conf)
    except Exception as error:
        if "already exists" not in str(error):
            raise


def stand_behind_delta(session: SparkSession) -> None:
    """Lets a session find Iceberg's tables by two-part names. Each session has catalogues of its own. Not where the user's
    settings name another catalogue than Delta's: it is as they say."""
    if not _delta_is_first(session):
        return
    jvm: Any = session._jvm
    options = jvm.java.util.HashMap()
    for key, value in _OPTIONS.items():
        options.put(key, value)
    # catalogues are found by the settings of the session that is active in the calling thread of the JVM
    jvm.SparkSession.setActiveSession(session._jsparkSession)
    catalogs = session._jsparkSession.sessionState().catalogManager()
    first = catalogs.catalog(SESSION_CATALOGUE)
    behind = jvm.org.apache.iceberg.spark.SparkSessionCatalog()
    behind.setDelegateCatalog(
        jvm.org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog(catalogs.v1SessionCatalog())
    )
    behind.initialize(SESSION_CATALOGUE, jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(options))
    first.setDelegateCatalog(behind)


def stands_behind_delta(session: Any) -> bool:
    """Whether this session's Iceberg tables stand beside Delta's, and have a catalogue of the name CATALOG besides. Not where names without
    a catalogue lead to another one than Spark's own, nor in a session out of reach (None)."""
    if session is None or not asked_for({FORMATS: session.conf.get(FORMATS, "")}) or not _delta_is_first(session):
        return False
    return str(session.catalog.currentCatalog()) == SESSION_CATALOGUE


def _delta_is_first(session: Any) -> bool:
    return str(session.conf.get("spark.sql.catalog.spark_catalog", "")).startswith("org.apache.spark.sql.delta.")
