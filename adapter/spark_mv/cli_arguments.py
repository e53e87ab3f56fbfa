"""What the console commands read from their arguments: files, names, and dbt's own options."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from spark_mv.explain.project_model import ModelError, model_names
from spark_mv.explain.question import Question


def read_text(path: str) -> str:
    """The file's text (`-`: standard input). Unreadable input ends with exit status 2."""
    try:
        with click.open_file(path, encoding="utf-8-sig") as file:
            return str(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from error


def read_json(path: str | None) -> Any:
    """The JSON object in a file, None without a path."""
    if path is None:
        return None
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise click.UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise click.UsageError(f"{path} must hold one JSON object, not a {type(data).__name__}")
    return data


def read_tables(path: str | None) -> dict[str, dict[str, str]] | None:
    """Table → column → type. A list of columns instead of an object is read as columns of unknown type."""
    data = read_json(path)
    if data is None:
        return None
    tables: dict[str, dict[str, str]] = {}
    for table, columns in data.items():
        if isinstance(columns, dict):
            tables[table] = {str(name): str(kind) for name, kind in columns.items()}
        elif isinstance(columns, list) and all(isinstance(name, str) for name in columns):
            tables[table] = dict.fromkeys(columns, "")
        else:
            raise click.UsageError(f"{path}: {table} must map column names to Spark types")
    return tables


def listed(values: tuple[str, ...]) -> tuple[str, ...]:
    """The names of an option that may be repeated, or hold several between commas."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def dbt_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """dbt's own options for which project and which target."""
    for option in (
        click.option("--vars", "variables", metavar="YAML", help="As for dbt run."),
        click.option("--target", "-t", help="Target of the profile."),
        click.option("--profile", help="Profile, if not the project's."),
        click.option("--profiles-dir", type=click.Path(file_okay=False), help="Folder of profiles.yml."),
        click.option("--project-dir", type=click.Path(file_okay=False), help="Folder of dbt_project.yml."),
    ):
        command = option(command)
    return command


def dbt_arguments(**given: str | None) -> list[str]:
    """The options that were given, as dbt takes them."""
    return [part for name, value in given.items() if value for part in (f"--{name.replace('_', '-')}", value)]


def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For the shell: models of the project that the command would take."""
    from spark_mv.spark.adapter.open_project import looked_for, target_folder

    arguments = dbt_arguments(project_dir=context.params.get("project_dir"))
    names = model_names(target_folder(looked_for(arguments)))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_with_files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The same, and files. These come first: click's function for bash forgets what stands before them."""
    return [CompletionItem(incomplete, type="file"), *complete(context, parameter, incomplete)]


def asked_of(what: str, dbt: list[str]) -> Question:
    """A file if it is one or looks like one, else a model of the project; a file with Jinja in it is the model that dbt compiled from it,
    where there is one. What cannot be read is exit status 2."""
    path = Path(what)
    if what == "-" or path.is_file() or path.suffix.lower() == ".sql" or len(path.parts) > 1:
        written = Question(read_text(what), path.stem if what != "-" else "model")
        return _compiled(written, path, dbt) if path.suffix.lower() == ".sql" else written
    from spark_mv.spark.adapter.ask_model import ask_model

    try:
        return ask_model(what, dbt)
    except ModelError as error:
        raise click.UsageError(str(error)) from error


def _compiled(written: Question, path: Path, dbt: list[str]) -> Question:
    """The question about the model that a file is, instead of its text with Jinja."""
    if "{{" not in written.sql and "{%" not in written.sql:
        return written
    from spark_mv.spark.adapter.ask_model import ask_model

    try:
        model = ask_model(path.stem, dbt)
    except ModelError as error:
        return replace(written, notes=(f"{path.name} is not read as a model: {error}",))
    return replace(model, notes=(f"{path.name} has Jinja in it: read as the model {model.name}", *model.notes))
