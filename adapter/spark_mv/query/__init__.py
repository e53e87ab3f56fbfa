"""One SELECT understood: what every expression is, why, and what may be done with it. Imports run downwards only:
`functions`, `syntax`, `solver`, `analysis`, `rewrite`, `ai_calls`, `delta`; neither dbt nor pyspark is imported."""
