"""One file a strategy: whether it applies, what it would cost, which steps it takes."""
