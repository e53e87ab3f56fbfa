"""`spark-mv init`: a project with a seed, a model and tests. `dbt init` copies dbt's own starter, which an adapter cannot replace."""

from __future__ import annotations

import re
from pathlib import Path

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IN_TEXT = "{project_name}"


class StarterError(ValueError):
    """There is no project to be made."""


def make_project(name: str, folder: Path) -> Path:
    """Makes `folder / name` and returns it. Raises StarterError for what is no project's name, or is there already, and where no files can be made."""
    from dbt.include import spark_mv

    if not NAME.fullmatch(name) or name.startswith(("dbt_spark", "dbt_internal")) or name == "dbt":
        raise StarterError(
            f"{name!r} is no name of a project: letters, digits and underscores, and no package's of dbt"
        )
    made = folder / name
    if made.exists():
        raise StarterError(f"{made} exists already; nothing was written")
    starter = Path(spark_mv.PACKAGE_PATH) / "starter_project"
    for file in sorted(starter.rglob("*")):
        if file.is_file():
            to = made / file.relative_to(starter)
            try:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_text(file.read_text(encoding="utf-8").replace(_IN_TEXT, name), encoding="utf-8")
            except OSError as error:
                raise StarterError(
                    f"{to} cannot be written ({error.strerror or error}). Go to a folder in which you may make files"
                ) from error
    return made
