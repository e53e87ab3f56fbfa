"""What tests did is counted as it is done, for `docs_build/faults.py`, which makes a page of the file that FAULTS_COUNTED names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def counted(found: Mapping[tuple[str, ...], int]) -> None:
    if "FAULTS_COUNTED" in os.environ:
        lines = "".join(json.dumps([*key, number]) + "\n" for key, number in sorted(found.items()))
        with Path(os.environ["FAULTS_COUNTED"]).open("a", encoding="utf-8") as file:
            file.write(lines)


@contextmanager
def wrong_counts(what: str) -> Iterator[None]:
    """What was found wrong is counted, too."""
    try:
        yield
    except Exception:
        counted({("wrong", what): 1})
        raise
