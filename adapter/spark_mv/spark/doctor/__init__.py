"""`spark-mv doctor`: what a run needs, looked at without starting Spark."""
