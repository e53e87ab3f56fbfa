"""Talking to Spark: connections, the dbt adapter class, relations, table formats."""
