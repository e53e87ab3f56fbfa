"""Python and the installed packages, against what this package's own metadata (pyproject.toml) asks."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from spark_mv.report.findings import Finding, ok, problem

DISTRIBUTION = "dbt-spark-mv"


def python(release: str = "") -> Finding:
    """The interpreter that dbt runs on. `release` is its version, if not this one's."""
    found = release or platform.python_version()
    wanted = str(metadata(DISTRIBUTION)["Requires-Python"] or "")
    if SpecifierSet(wanted).contains(found, prereleases=True):
        return ok("Python", f"{found} ({_readable(wanted)})")
    return problem(
        "Python", f"{found}, but {_readable(wanted)} is needed", "make the virtual environment with such a Python"
    )


def packages(extras: Sequence[str] = ()) -> Iterator[Finding]:
    """A finding for each package that is needed, those of `extras` included."""
    yield from (_installed(one, DISTRIBUTION) for one in needed(DISTRIBUTION))
    for extra in extras:
        yield from (_installed(one, f"{DISTRIBUTION}[{extra}]") for one in needed(DISTRIBUTION, extra))


def needed(distribution: str, extra: str = "") -> Iterator[Requirement]:
    """What a distribution asks for, on this machine; with `extra`, what that adds. Extras of what it asks for are followed.

    Nothing where the distribution is not installed.
    """
    try:
        texts = requires(distribution) or []
    except PackageNotFoundError:
        return
    for requirement in map(Requirement, texts):
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        if always if not extra else marker is not None and not always and marker.evaluate({"extra": extra}):
            yield requirement
            for further in sorted(requirement.extras):
                yield from needed(requirement.name, further)


def _installed(wanted: Requirement, cure: str) -> Finding:
    check, asked = f"package {wanted.name}", _readable(str(wanted.specifier))
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        return problem(check, f"not installed{f', {asked} is needed' if asked else ''}", f"pip install '{cure}'")
    if wanted.specifier.contains(found, prereleases=True):
        return ok(check, f"{found}{f' ({asked})' if asked else ''}")
    return problem(check, f"{found}, but {asked} is needed", f"pip install '{wanted.name}{wanted.specifier}'")


def _readable(specifier: str) -> str:
    """
    >>> _readable("<1.12,>=1.10")
    '>=1.10,<1.12'
    """
    return ",".join(sorted(specifier.split(","), reverse=True))
