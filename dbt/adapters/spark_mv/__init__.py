"""What dbt imports for `type: spark_mv`; everything else lives in the package `spark_mv`."""

from dbt.adapters.base import AdapterPlugin
from dbt.include import spark_mv

from spark_mv.spark.adapter.credentials import SparkMvCredentials
from spark_mv.spark.adapter.impl import SparkMvAdapter

Plugin = AdapterPlugin(
    adapter=SparkMvAdapter,
    credentials=SparkMvCredentials,
    include_path=spark_mv.PACKAGE_PATH,
    dependencies=["spark"],
    # the name in dbt/include/spark_mv/dbt_project.yml; dbt would otherwise derive one that the dbt package has
    project_name="dbt_spark_mv_adapter",
)
