"""A SELECT as a run evaluates it: clock pinned, views inlined, random filters and temporal filters taken out."""
