"""The console command `spark-mv`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from spark_mv.explain.analysis import explain_data, explain_text
from spark_mv.explain.judgement import judge


@click.group()
@click.version_option(package_name="dbt-spark-mv")
def main() -> None:
    """Incrementally maintained dbt models whose SQL is not deterministic."""


def _read(path: str) -> str:
    """The file's text (`-`: standard input). Unreadable input ends with exit status 2."""
    try:
        with click.open_file(path, encoding="utf-8-sig") as file:
            return str(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}") from error


def _read_json(path: str | None) -> Any:
    if path is None:
        return None
    try:
        data = json.loads(_read(path))
    except ValueError as error:
        raise click.UsageError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise click.UsageError(f"{path} must hold one JSON object, not a {type(data).__name__}")
    return data


def _tables(path: str | None) -> dict[str, dict[str, str]] | None:
    """Table → column → type. A list of columns instead of an object is read as columns of unknown type."""
    data = _read_json(path)
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


def _names(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


@main.command()
@click.argument("file", metavar="FILE.sql")
@click.option("--unique-key", "-k", multiple=True, help="Key column; repeat, or separate by commas.")
@click.option("--schema", "-s", metavar="TABLES.json", help="Table → column → Spark type.")
@click.option("--functions", metavar="FUNCTIONS.json", help='Your functions: {"my_udf": {"determinism": "…"}}.')
@click.option("--views", metavar="VIEWS.json", help="View → its SQL text, looked through.")
@click.option("--freeze", multiple=True, help="Column whose first value is kept; repeat, or separate by commas.")
@click.option("--time-zone", default="UTC", show_default=True, help="spark.sql.session.timeZone of the runs.")
@click.option("--model", help="Name used in messages; the file's name by default.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(
    file: str,
    unique_key: tuple[str, ...],
    schema: str | None,
    functions: str | None,
    views: str | None,
    freeze: tuple[str, ...],
    time_zone: str,
    model: str | None,
    format_: str,
) -> None:
    """Say what each column and predicate of a SELECT is, why, and which strategies apply. Needs neither dbt nor Spark.

    Errors in the SQL are part of the answer (exit status 0); input that cannot be read is exit status 2.
    """
    name = model or (Path(file).stem if file != "-" else "model")
    key = _names(unique_key)
    judged = judge(
        _read(file),
        unique_key=key,
        schemas=_tables(schema),
        functions=_read_json(functions),
        freeze=_names(freeze),
        views=_read_json(views),
        model=name,
        time_zone=time_zone,
    )
    if format_ == "json":
        data = explain_data(judged, model=name, unique_key=key)
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        click.echo(explain_text(judged, model=name, unique_key=key))


@main.command("warm-up")
def warm_up() -> None:
    """Make later starts of the embedded Spark quicker: fetch Delta's jars and keep an archive of Spark's classes.

    Once per machine and version of Java, Spark and Delta; some 250 MB in the cache folder. Good in a container's image.
    """
    from spark_mv.spark.session.warm_up import make_archive

    archive = make_archive(click.echo)
    click.echo(f"done: {archive} ({archive.stat().st_size / 2**20:,.0f} MB)")


if __name__ == "__main__":
    main()
