"""The engine of dbt-spark-mv: dbt models with random, AI and clock functions, kept incrementally up to date."""

__version__ = "0.1.0"
