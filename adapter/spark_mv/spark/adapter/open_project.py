"""A dbt project's own files read by dbt itself: dbt_project.yml and the profile. No model is read, nothing connected."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from spark_mv.query.functions.catalogue import declarations
from spark_mv.spark.adapter.hidden import Hidden
from spark_mv.spark.run.read_model import declared_ai_functions
from spark_mv.spark.session.current_values import TIME_ZONE


class ProjectError(Exception):
    """The project, its profile or its connection cannot be opened."""


@dataclass(frozen=True)
class OpenProject:
    """`config` is dbt's RuntimeConfig; None where the project or its profile cannot be read, then `problem` says why.
    `root` is the folder of dbt_project.yml, or the one where it was looked for."""

    root: Path
    target: Path
    config: Any = None
    problem: str = ""

    @property
    def exists(self) -> bool:
        """Whether there is a project."""
        return (self.root / "dbt_project.yml").is_file()

    @property
    def ours(self) -> bool:
        """Whether the profile's target is of `type: spark_mv`."""
        return self.config is not None and self.config.credentials.type == "spark_mv"


def open_project(arguments: Sequence[str] = ()) -> OpenProject:
    """The project that dbt would take. `arguments` are dbt's own (--project-dir, --profiles-dir, --profile, --target, --vars). Never
    raises for what is wrong with arguments and files: that is the answer's `problem`, in dbt's words."""
    from dbt.cli.flags import Flags, args_to_context
    from dbt.flags import set_flags

    root = looked_for(arguments)
    if missing := no_project(arguments):
        return OpenProject(root, target_folder(root), None, missing)
    target = target_folder(root)
    silence_dbt()
    _know_the_environment()
    try:
        flags = Flags(args_to_context(["--no-send-anonymous-usage-stats", "parse", *arguments]))
        set_flags(flags)
        config = _config(flags)
    except Exception as error:  # arguments, YAML, Jinja and dbt's own: each says what is wrong
        return OpenProject(root, target, None, Hidden().scrub(_said(error)))
    return OpenProject(root, root / str(config.target_path), config)


def _know_the_environment() -> None:
    """`env_var()` in a project's files reads what dbt's commands note when they begin; here none of them has."""
    from dbt_common.context import get_invocation_context, set_invocation_context

    try:
        get_invocation_context()
    except LookupError:
        set_invocation_context(os.environ)


def silence_dbt() -> None:
    """dbt prints errors that it also raises, the first of them by a logger that it makes when it is imported. What is printed here may be JSON, and
    goes into pipes."""
    import dbt.cli.main  # noqa: F401
    from dbt_common.events.event_manager_client import cleanup_event_logger

    cleanup_event_logger()


def no_project(arguments: Sequence[str] = ()) -> str:
    """The sentence where there is no project; else empty. dbt itself would first miss the folder of profiles, and say only that."""
    root = looked_for(arguments)
    return "" if (root / "dbt_project.yml").is_file() else f"there is no dbt project in {root} (see --project-dir)"


def target_folder(root: Path) -> Path:
    """Where dbt puts what it makes, if the project does not say otherwise."""
    return root / (os.environ.get("DBT_TARGET_PATH") or "target")


def looked_for(arguments: Sequence[str]) -> Path:
    """The folder in which dbt looks for the project. Without profiles dbt reads no arguments, but its own default is the same."""
    from dbt.cli.resolvers import default_project_dir

    given = next((after for word, after in pairwise(arguments) if word == "--project-dir"), None)
    return Path(given or os.environ.get("DBT_PROJECT_DIR") or default_project_dir()).resolve()


def _config(flags: Any) -> Any:
    from dbt.config.runtime import RuntimeConfig, load_profile, load_project

    profile = load_profile(flags.PROJECT_DIR, flags.VARS, flags.PROFILE, flags.TARGET, getattr(flags, "THREADS", None))
    project = load_project(flags.PROJECT_DIR, flags.VERSION_CHECK, profile, flags.VARS)
    return RuntimeConfig.from_parts(project, profile, flags)


def _said(error: Exception) -> str:
    import click

    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    return " ".join(text.split())


def declared_functions(config: Any) -> dict[str, Any]:
    """The project's own functions as a run knows them: of the profile, of the variable `functions`, and AI functions. `config` is
    dbt's RuntimeConfig."""
    variables = getattr(config, "vars", None)
    flat = variables.to_dict() if variables is not None else {}
    own = {**flat, **(flat.get(config.project_name) or {}), **(getattr(config, "cli_vars", None) or {})}
    credentials = config.credentials
    return {
        **declarations(getattr(credentials, "functions", None)),
        **declarations(own.get("functions")),
        **declared_ai_functions(getattr(credentials, "ai", None) or {}),
    }


def time_zone(config: Any) -> str | None:
    """The session time zone that the profile asks for; None where it leaves that to the machine or the server."""
    settings = getattr(config.credentials, "server_side_parameters", None) or {}
    return settings.get(TIME_ZONE)
