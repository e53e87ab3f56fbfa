"""The console command `spark-mv`."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

from spark_mv.cli_arguments import (
    asked_of,
    complete,
    complete_with_files,
    dbt_arguments,
    dbt_options,
    listed,
    read_json,
    read_tables,
    read_text,
)
from spark_mv.explain.analysis import explain_data, explain_text
from spark_mv.explain.plain_text import plain
from spark_mv.explain.terminal import print_explained, terminal_width
from spark_mv.report.facts import FactsError, ProjectFacts, from_json, to_json


@click.group()
@click.version_option(package_name="dbt-spark-mv")
def main() -> None:
    """Incrementally maintained dbt models whose SQL is not deterministic."""
    for stream in (sys.stdout, sys.stderr):  # a pipe that takes no arrow or no Japanese name gets its code instead
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@main.command()
@click.argument("what", metavar="MODEL|FILE.sql", shell_complete=complete_with_files)
@click.option("--unique-key", "-k", multiple=True, help="Key column; repeat, or separate by commas.")
@click.option("--schema", "-s", metavar="TABLES.json", help="Table → column → Spark type.")
@click.option("--functions", metavar="FUNCTIONS.json", help='Your functions: {"my_udf": {"determinism": "…"}}.')
@click.option("--views", metavar="VIEWS.json", help="View → its SQL text, looked through.")
@click.option("--freeze", multiple=True, help="Column whose first value is kept; repeat, or separate by commas.")
@click.option("--time-zone", help="spark.sql.session.timeZone of the runs.  [default: a model's profile's, else UTC]")
@click.option("--model", help="Name used in messages; the model's or the file's by default.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@dbt_options
def explain(
    what: str,
    unique_key: tuple[str, ...],
    schema: str | None,
    functions: str | None,
    views: str | None,
    freeze: tuple[str, ...],
    time_zone: str | None,
    model: str | None,
    format_: str,
    variables: str | None,
    **dbt: str | None,
) -> None:
    """Say what each column and predicate of a SELECT is, why, and which strategies apply. Never starts Spark.

    A file (or `-`) needs no dbt; a model's own file, with Jinja in it, is the model. A model's name is looked up in target/manifest.json: the SELECT as dbt compiled it, unique_key, freeze, the
    project's views underneath, its functions; the options above win, and dbt's own (from --project-dir on) say which project.

    Exit status: 0 also when there are errors in the SQL, which are part of the answer; 2 when the input cannot be read.
    """
    asked = asked_of(what, dbt_arguments(vars=variables, **dbt)).with_options(
        name=model,
        unique_key=listed(unique_key),
        schemas=read_tables(schema),
        functions=read_json(functions),
        freeze=listed(freeze),
        views=read_json(views),
        time_zone=time_zone,
    )
    judged = asked.answer()
    if format_ == "json":
        data = explain_data(judged, model=asked.name, unique_key=asked.unique_key)
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
        for note in asked.notes:
            click.echo(f"note: {plain(note)}", err=True)
    else:
        print_explained(
            explain_text(
                judged, model=asked.name, unique_key=asked.unique_key, notes=asked.notes, width=terminal_width()
            )
        )


def _project(from_: str | None, dbt: list[str], **wanted: Any) -> ProjectFacts:
    """The facts of a file that was kept, or of the project. What cannot be read is exit status 2."""
    if from_:
        try:
            kept = from_json(read_text(from_))
            newest = [replace(model, runs=model.runs[: wanted["runs"]]) for model in kept.models]
            return replace(kept, models=tuple(newest))
        except FactsError as error:
            raise click.UsageError(f"{from_}: {error}") from error
    from spark_mv.spark.adapter.open_project import ProjectError
    from spark_mv.spark.adapter.read_project import read_project

    try:
        return read_project(dbt, **wanted)
    except ProjectError as error:
        raise click.UsageError(str(error)) from error


@main.command()
@dbt_options
@click.option("--from", "from_", metavar="FACTS.json", help="Read what `report --facts` kept instead of the project.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status(from_: str | None, format_: str, variables: str | None, **dbt: str | None) -> None:
    """How every nondeterministic_mv of the project fares: last run, next change by the clock, AI answers that wait, errors.

    Exit status: 0 nothing needs somebody; 1 a model's last run failed, or AI calls of it had no answer; 2 the project, its profile or the
    connection cannot be read. Colours only on a terminal (and not with NO_COLOR).
    """
    from spark_mv.report.status import needs_somebody, status_json
    from spark_mv.report.terminal import print_status

    project = _project(from_, dbt_arguments(vars=variables, **dbt), runs=20, with_sources=False)
    now = time.time()
    if format_ == "json":
        click.echo(status_json(project, now))
    else:
        print_status(project, now)
    if needs_somebody(project, now):
        raise SystemExit(1)


@main.command()
@dbt_options
@click.option("--output", "-o", help="The HTML file.  [default: spark_mv_report.html in the project's target folder]")
@click.option("--facts", metavar="FACTS.json", help="Also keep what was read, for --from.")
@click.option("--from", "from_", metavar="FACTS.json", help="Read what --facts kept instead of the project.")
@click.option("--runs", default=1000, show_default=True, type=click.IntRange(1), help="Newest runs of each model.")
@click.option("--serve", is_flag=True, help="Serve it on loopback, made anew after each run of dbt.")
@click.option("--port", default=8580, show_default=True, type=click.IntRange(0, 65535), help="For --serve; 0: any.")
@click.option("--every", type=click.IntRange(10), help="With --serve, also every so many seconds.")
@click.option("--refresh", is_flag=True, hidden=True)
def report(
    output: str | None,
    facts: str | None,
    from_: str | None,
    runs: int,
    serve: bool,
    port: int,
    every: int | None,
    refresh: bool,
    variables: str | None,
    **dbt: str | None,
) -> None:
    """One HTML file of what the project's runs recorded, to be opened without a network.

    Exit status: 0 it was written; 2 the project, its profile or the connection cannot be read, or the file not be written.
    """
    from spark_mv.report.page import report_html
    from spark_mv.spark.adapter.open_project import open_project

    arguments = dbt_arguments(vars=variables, **dbt)
    folder = open_project(arguments).target if not (output and from_) else Path()
    file = Path(output) if output else folder / "spark_mv_report.html"
    if serve:
        from spark_mv.report.serve import Rebuilt, serve_report

        extra = ["--runs", str(runs), *(["--from", from_] if from_ else [])]
        watched = Path(from_) if from_ else folder / "run_results.json"
        if from_ and not watched.is_file():
            raise click.UsageError(f"there is no file {from_}")
        try:
            serve_report(Rebuilt(file, [*arguments, *extra], watched, every), port, click.echo)
        except OSError as error:
            raise click.UsageError(
                f"it cannot be served on port {port}: {error}. --port names another, 0 any"
            ) from error
        return
    project = _project(from_, arguments, runs=runs)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(report_html(project, refresh=refresh), encoding="utf-8")
        if facts:
            Path(facts).write_text(to_json(project), encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"the report cannot be written: {error}") from error
    click.echo(f"{file} ({file.stat().st_size / 1024:,.0f} KB)")


@main.command()
@dbt_options
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
def doctor(format_: str, variables: str | None, **dbt: str | None) -> None:
    """Look at what a run needs: Java, packages, Delta's jars, memory, disk, the profile, permissions, and what others hold or have left.

    Starts neither Spark nor a connection, and changes nothing. Each line is ok, a warning or a problem, with what to do.

    Exit status: 0 no problems (warnings there may be); 1 problems.
    """
    from spark_mv.report.findings import findings_json, has_problems, print_findings
    from spark_mv.spark.doctor.examine import examine

    found = examine(dbt_arguments(vars=variables, **dbt))
    if format_ == "json":
        click.echo(findings_json(found))
    else:
        print_findings(found)
    if has_problems(found):
        raise SystemExit(1)


def _asked_macro(name: str, dbt: list[str], **given: Any) -> str:
    """What a macro of the project says. What it refuses is exit status 1, a project that cannot be read 2."""
    from spark_mv.spark.adapter.adopt import ask_macro
    from spark_mv.spark.adapter.open_project import ProjectError, open_project

    if problem := open_project(dbt).problem:
        raise click.UsageError(problem)
    try:
        return ask_macro(name, dbt, **given)
    except ProjectError as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.argument("model", shell_complete=complete)
@click.option("--apply", is_flag=True, help="Do it. Without it, nothing is changed.")
@click.option(
    "--unique-key", "-k", multiple=True, help="Key column, if the model's config names none; repeat, or commas."
)
@click.option("--freeze", multiple=True, help="Further columns whose values are kept; repeat, or commas.")
@dbt_options
def adopt(
    model: str,
    apply: bool,
    unique_key: tuple[str, ...],
    freeze: tuple[str, ...],
    variables: str | None,
    **dbt: str | None,
) -> None:
    """Turn the table of an `incremental` or `table` model into a nondeterministic_mv's, with the values that it has.

    Drawn and frozen columns keep the table's values, and those of AI columns become answers in ai_results, so that nothing is drawn
    or paid again. Says first what differs from the query today.

    Exit status: 0 it can be adopted, or was; 1 it cannot, and why; 2 the project or its profile cannot be read.
    """
    given = {"unique_key": list(listed(unique_key)) or None, "freeze": list(listed(freeze)) or None}
    click.echo(_asked_macro("mv_adopt", dbt_arguments(vars=variables, **dbt), model=model, apply=apply, **given))


@main.command()
@click.argument("model", shell_complete=complete)
@click.option("--apply", is_flag=True, help="Do it. Without it, nothing is changed.")
@dbt_options
def eject(model: str, apply: bool, variables: str | None, **dbt: str | None) -> None:
    """Make the table of a nondeterministic_mv a plain one again, with all its rows, and print the model as `incremental`.

    Exit status: 0 it can be ejected, or was; 1 it cannot, and why; 2 the project or its profile cannot be read.
    """
    click.echo(_asked_macro("mv_eject", dbt_arguments(vars=variables, **dbt), model=model, apply=apply))


@main.command()
@click.argument("models", nargs=-1, shell_complete=complete)
@click.option(
    "--output",
    "-o",
    help="Folder for the files, among the project's macros.  [default: spark_mv_plans in the first of its macro-paths]",
)
@click.option("--check", is_flag=True, help="Write nothing; exit status 1 where a file is not what it would be now.")
@dbt_options
def plan(models: tuple[str, ...], output: str | None, check: bool, variables: str | None, **dbt: str | None) -> None:
    """Write the plans by which dbt runs the project's nondeterministic_mv models without the adapter: on dbt Cloud, for example.

    For one target at a time, whose sources must be there. One file a model, to be committed; a run stops where it no longer fits.

    Exit status: 0 the files are there; 1 a model cannot be planned, or with --check a file is out of date; 2 the project cannot be read.
    """
    from spark_mv.spark.adapter.open_project import ProjectError, open_project
    from spark_mv.spark.adapter.plan_files import left_over, plan_files

    arguments = dbt_arguments(vars=variables, **dbt)
    if (opened := open_project(arguments)).problem or not opened.ours:
        raise click.UsageError(
            opened.problem or "the profile's target is not of `type: spark_mv`, with which plans are made"
        )
    folder = opened.root / (output or f"{opened.config.macro_paths[0]}/spark_mv_plans")
    try:
        files = plan_files(folder, arguments, models)
    except ProjectError as error:
        raise click.ClickException(str(error)) from error
    for file in files:
        if not check:
            file.write()
        click.echo(f"{file.model}: {plain(file.says)}{' (changed)' if file.changed else ''}")
    for path in [] if models else left_over(folder, files):
        click.echo(f"{path.name}: the plan of no model of this project; delete it")
    if any(file.failed or (check and file.changed) for file in files):
        raise SystemExit(1)


@main.command()
@click.argument("models", nargs=-1, shell_complete=complete)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@dbt_options
def cost(models: tuple[str, ...], format_: str, variables: str | None, **dbt: str | None) -> None:
    """Say what the next run of the project's AI columns costs: calls, tokens and money by column, and what budgets let through. Asks no model.

    Exit status: 0 it is said; 1 a model cannot be looked at, and why; 2 the project cannot be read.
    """
    from spark_mv.explain.project_cost import costs_json, costs_text
    from spark_mv.explain.project_model import not_called

    found = json.loads(_asked_macro("mv_ai_costs", dbt_arguments(vars=variables, **dbt), models=list(models) or None))
    if unknown := not_called(models, found):
        raise click.ClickException(f"the project has no nondeterministic_mv called {', '.join(unknown)}")
    click.echo(costs_json(found) if format_ == "json" else costs_text(found))
    if any("error" in one for one in found.values()):
        raise SystemExit(1)


@main.command()
@click.argument("name")
def init(name: str) -> None:
    """Make a project of this name in a folder of this name: a seed, a model and tests that `dbt build` runs at once.

    Exit status: 0 the project is there; 2 the name is no project's name, or the folder exists.
    """
    from spark_mv.spark.adapter.starter import StarterError, make_project

    try:
        made = make_project(name, Path.cwd())
    except StarterError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{made} is there. Next: cd {name} && dbt build")


@main.command("warm-up")
def warm_up() -> None:
    """Make later starts of the embedded Spark quicker: fetch Delta's jars and keep an archive of Spark's classes.

    Once per machine and version of Java, Spark and Delta; some 250 MB in the cache folder. Good in a container's image.

    Exit status: 0 the archive is there; 1 Spark could not be started, or the archive not be written.
    """
    from spark_mv.spark.session.jars import JarsError
    from spark_mv.spark.session.session import JavaError, SessionError
    from spark_mv.spark.session.warm_up import make_archive

    try:
        archive = make_archive(click.echo)
    except (JavaError, JarsError, SessionError, RuntimeError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"done: {archive} ({archive.stat().st_size / 2**20:,.0f} MB)")


@main.command()
@click.option("--stop", "action", flag_value="stop", help="End the server.")
@click.option("--force", is_flag=True, help="With --stop: also while dbt uses it.")
@click.option("--status", "action", flag_value="status", help="Say whether one runs.")
@click.option("--url", "action", flag_value="url", help="Print its address with the token, for SPARK_REMOTE.")
@click.option("--idle", default=60.0, show_default=True, type=click.FloatRange(0, min_open=True), help="Minutes.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="On loopback.  [default: any that is free]")
@dbt_options
def serve(action: str | None, force: bool, idle: float, port: int, variables: str | None, **dbt: str | None) -> None:
    """Keep the project's Spark running in the background, for dbt, notebooks and others at once. Ends when nobody has used it for --idle minutes.

    Exit status: 0 it runs, or was ended; 1 it could not be started or ended, one runs already, or none runs (--status, --url); 2 the project
    or its profile cannot be read, or cannot be served.
    """
    from spark_mv.spark.adapter import serving
    from spark_mv.spark.serve.state import running

    try:
        project = serving.project_to_serve(dbt_arguments(vars=variables, **dbt))
        if action == "stop":
            click.echo(serving.stop(project.warehouse, force=force))
        elif action is None:
            serving.start(project, idle * 60, port)
            click.echo(serving.said_of(project.warehouse))
        else:
            server = running(project.warehouse)
            click.echo(serving.said_of(project.warehouse) if action == "status" or server is None else server.url)
            if server is None:
                raise SystemExit(1)
    except serving.NotServed as error:
        raise click.UsageError(str(error)) from error
    except serving.ServeError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
