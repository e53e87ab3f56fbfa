"""Table formats: versions, changes between versions, bookkeeping in commits."""
