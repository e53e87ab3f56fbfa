"""The versions that are tested beside the environment of `make install`: `make versions NOX_ARGS=-l` lists them, `NOX_ARGS='-s "versions(newest)"'` runs one.

Each session is an environment of its own, made with uv. overrides.txt leaves out dbt-core-experimental-parser, which dbt-core 1.12 wants
for `--use-v2-parser` alone, and whose installation downloads from outside PyPI.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True

EXTRAS = "embedded,connect,local,openai,dev"


@dataclass(frozen=True)
class Versions:
    """Of an environment. They may be outside the package's bounds: so a release is tried before it is allowed."""

    python: str
    dbt: str
    spark: str
    more: tuple[str, ...] = ()


MATRIX = {
    "oldest": Versions("3.10", "1.10.*", "3.5.*", ("dbt-spark==1.10.*",)),
    "spark-4.0": Versions("3.11", "1.11.*", "4.0.*"),
    "newest": Versions("3.13", "1.12.*", "4.1.*"),
}


@nox.session(python=False)
@nox.parametrize("name", [nox.param(name, id=name) for name in MATRIX])
def versions(session: nox.Session, name: str) -> None:
    """Unit tests, and the core suite on an embedded Spark: `nox -s "versions(newest)"`."""
    want = MATRIX[name]
    home = session.create_tmp()
    session.run("uv", "venv", "--python", want.python, home, external=True)
    python = f"{home}/bin/python"
    wanted = Path(home) / "wanted.txt"
    wanted.write_text(f"dbt-core=={want.dbt}\npyspark=={want.spark}\n", encoding="utf-8")
    overrides = ["--override", "overrides.txt", "--override", str(wanted)]
    packages = ["-e", f".[{EXTRAS}]", *want.more]
    session.run("uv", "pip", "install", "--python", python, *overrides, *packages, external=True)
    session.run(python, "-m", "pytest", "-m", "not slow and not spark", "tests", external=True)
    session.run(python, "-m", "integration_tests.servers.ways", "embedded", "delta", external=True)
