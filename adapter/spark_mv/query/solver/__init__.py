"""Temporal filters solved: from a predicate on the clock to the instants at which it holds."""
