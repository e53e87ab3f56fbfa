"""`spark-mv serve`: one Spark Connect server on loopback for a warehouse, and how dbt finds and shares it."""
