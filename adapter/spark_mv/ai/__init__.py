"""AI functions: settings, providers, the result table and the batch job that fills it. Imports pyspark only when run."""
