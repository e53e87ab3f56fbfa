"""Decide how one run maintains a model: facts and verdict in, a frozen plan of steps out. No I/O."""
