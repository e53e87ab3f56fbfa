"""What Spark's functions are: the level of determinism of every name."""
