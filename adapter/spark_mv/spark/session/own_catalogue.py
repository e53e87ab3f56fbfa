"""Whether the catalogue is this process's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_mv.spark.session.derby_lock import derby_folder
from spark_mv.spark.session.session_catalogue import SESSION_CATALOGUE

URL = "spark.hadoop.javax.jdo.option.ConnectionURL"


def database(settings: Mapping[str, str]) -> Path | None:
    """The folder of the Derby database that an embedded session with these settings opens, None where its catalogue is none."""
    servers = settings.get("spark.hadoop.hive.metastore.uris") or settings.get("hive.metastore.uris")
    kept, url = settings["spark.sql.catalogImplementation"] != "in-memory", settings[URL]
    return derby_folder(url) if kept and not servers and in_process(url) else None


def own_catalogue(spark: Any) -> bool:
    """Whether no other process can see the tables of this session's catalogue: it is in memory, or a Derby database that this
    JVM has opened (Derby lets no second one in). False for what cannot be looked at: Spark Connect, Thrift (None), a catalogue of
    another name than Spark's own (`spark.sql.defaultCatalog`)."""
    try:
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        catalogue = spark.conf.get("spark.sql.catalog.spark_catalog", "")
        default = spark.conf.get("spark.sql.defaultCatalog", SESSION_CATALOGUE)
        kept = spark.conf.get("spark.sql.catalogImplementation", "in-memory")
        url, servers = conf.get("javax.jdo.option.ConnectionURL"), conf.get("hive.metastore.uris")
    except Exception:  # no session, or none whose JVM is in reach
        return False
    if default != SESSION_CATALOGUE or (catalogue and not catalogue.startswith("org.apache.spark.sql.delta.")):
        return False
    return kept == "in-memory" or (not servers and in_process(url))


def in_process(url: str | None) -> bool:
    """Whether a database of Hive's metastore runs in the process that names it. Without a URL it is Hive's default.

    >>> in_process(None), in_process("jdbc:derby:;databaseName=/w/metastore;create=true"), in_process("jdbc:derby:memory:m")
    (True, True, True)
    >>> in_process("jdbc:derby://host:1527/metastore"), in_process("jdbc:postgresql://host/metastore")
    (False, False)
    """
    return url is None or bool(re.match(r"jdbc:derby:(?!//)", url))
