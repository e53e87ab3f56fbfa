"""The jars that are fetched are the ones that their projects published: SHA-256 of each stands in jar_checksums.txt, in the form
of `sha256sum`. A new release of Delta or Iceberg brings new lines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path


@cache
def recorded() -> Mapping[str, str]:
    """File name → SHA-256 in hexadecimal."""
    lines = files(__package__).joinpath("jar_checksums.txt").read_text("utf-8").splitlines()
    return {name: checksum for checksum, name in (line.split() for line in lines)}


def altered(jars: Iterable[Path], known: Mapping[str, str]) -> list[str]:
    """The jars, by name, whose bytes are not those of the release. What has no record is none of ours to judge."""
    return [jar.name for jar in sorted(jars) if jar.name in known and known[jar.name] != _checksum(jar)]


def _checksum(jar: Path) -> str:
    found = hashlib.sha256()
    with jar.open("rb") as file:
        while part := file.read(1 << 20):
            found.update(part)
    return found.hexdigest()
