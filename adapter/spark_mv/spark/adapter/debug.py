"""What `dbt debug` tells about the connection: versions, catalogue, formats, and whether MERGE works there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from spark_mv.maintenance.errors import first_line
from spark_mv.spark.session.session import is_connect
from spark_mv.spark.session.warm_up import said_of_the_start

#: settings of a Spark session that tell where tables live and in which formats
_EXTENSIONS, _CATALOG, _WAREHOUSE = "spark.sql.extensions", "spark.sql.catalogImplementation", "spark.sql.warehouse.dir"


def describe_connection(spark: Any | None, query: Callable[[str], Any]) -> Iterator[str]:
    """Lines for the console. `spark` is the session in this process, if any; `query` runs SQL on the connection."""
    yield f"packages: {', '.join(_packages())}"
    (row,) = query("select version() as spark_version, current_catalog() as catalog, current_timezone() as zone")
    yield f"Spark {str(row['spark_version']).split(' ')[0]}, catalog {row['catalog']}, time zone {row['zone']}"
    if spark is not None:
        catalogue = spark.conf.get(_CATALOG, "unknown")
        kept = "kept between runs" if catalogue == "hive" else "lost when the process ends"
        yield f"catalogue: {catalogue} ({kept}), warehouse: {spark.conf.get(_WAREHOUSE, 'unknown')}"
        yield f"table formats with MERGE: {', '.join(_formats(spark)) or 'none'}"
        if (start := said_of_the_start()) is not None:
            yield start
    yield can_merge(spark, query)


def can_merge(spark: Any | None, query: Callable[[str], Any]) -> str:
    """The answer to "can I MERGE here?", by doing it on a table of one row in a temporary folder.

    Outside this process there is no folder that the server would share, so there it is only parsed and planned.
    """
    if spark is None or is_connect(spark):
        return "MERGE: not tried, since the tables of a server are not dbt's to make; see the formats of your catalog"
    folder = Path(tempfile.mkdtemp(prefix="dbt-spark-mv-debug-"))
    table = f"delta.`{(folder / 'probe').as_uri()}`"
    try:
        spark.range(1).write.format("delta").save((folder / "probe").as_uri())
        query(
            f"merge into {table} as t using (select 0L as id union all select 1L) as s on t.id = s.id "
            "when matched then update set * when not matched then insert *"
        )
        (row,) = query(f"select count(*) as n from {table}")
        return "MERGE: works" if row["n"] == 2 else f"MERGE: gave {row['n']} rows instead of 2"
    except Exception as error:
        return f"MERGE: does not work here: {first_line(error)}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _formats(spark: Any) -> list[str]:
    extensions = spark.conf.get(_EXTENSIONS, "") or ""
    return [name for name, mark in (("delta", "DeltaSparkSession"), ("iceberg", "IcebergSpark")) if mark in extensions]


def _packages() -> list[str]:
    found = []
    for name in ("dbt-spark-mv", "dbt-core", "dbt-spark", "pyspark", "sqlglot"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return found
