"""One SELECT understood: what every expression is, why, and what may be done with it. See `analyze`."""

from __future__ import annotations

from .analyze import analyze
from .verdict import Analysis, Level

__all__ = ["Analysis", "Level", "analyze"]
