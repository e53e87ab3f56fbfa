"""The query over changed rows: affected keys, restricted queries, distributive groups."""
