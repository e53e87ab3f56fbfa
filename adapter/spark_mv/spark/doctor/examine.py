"""All checks of `spark-mv doctor`, in the order in which a newcomer would need them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from spark_mv.report.findings import Finding, ok, problem, warning
from spark_mv.spark.adapter.hidden import Hidden
from spark_mv.spark.adapter.open_project import OpenProject, open_project
from spark_mv.spark.doctor import catalogue, folders, machine, packages
from spark_mv.spark.doctor.patient import Patient
from spark_mv.spark.session.jars import cache_folder

Check = Callable[[], "Finding | Iterable[Finding]"]


def examine(arguments: Sequence[str] = ()) -> tuple[Finding, ...]:
    """What was found of the project that dbt would take with these `arguments`, and of this machine. Starts neither Spark nor a
    connection, changes nothing, never raises."""
    project = open_project(arguments)
    patient = Patient.of(project)
    release = machine.pyspark_release()
    folders_ = folders.written(patient)
    checks: list[tuple[str, Check]] = [
        ("Python", packages.python),
        ("packages", lambda: packages.packages(patient.extras)),
        ("project", lambda: _project(project, patient)),
        ("Java", lambda: machine.java(patient, release)),
        ("SPARK_HOME", lambda: machine.spark_home(release) if patient.embedded else ()),
        ("Delta", lambda: machine.delta(patient, release)),
        ("memory", lambda: machine.memory(patient, machine.free_memory(), machine.container_limit())),
        ("disk", lambda: folders.room(folders_)),
        ("folders", lambda: folders.permissions(folders_)),
    ]
    if patient.embedded:
        checks += [
            ("catalogue", lambda: catalogue.catalogue(patient)),
            ("staging", lambda: folders.staging(patient, catalogue.alone(patient))),
            ("cache", lambda: folders.unfinished(cache_folder())),
        ]
    return tuple(found for what, check in checks for found in _carried_out(what, check))


def _carried_out(what: str, check: Check) -> Iterator[Finding]:
    """What one check finds; that it could not look is a finding too."""
    try:
        found = check()
        yield from (found,) if isinstance(found, Finding) else found
    except Exception as error:
        yield warning(what, f"could not be looked at: {Hidden().scrub(str(error)) or type(error).__name__}")


def _project(project: OpenProject, patient: Patient) -> Iterator[Finding]:
    if not project.exists:
        yield warning(
            "project", f"no dbt_project.yml in {project.root}", "go to your project, or name it with --project-dir"
        )
        return
    if project.config is None:
        cure = "see `dbt debug`; the shortest profile is `type: spark_mv`, `method: session`, `schema: …`"
        yield problem("profile", project.problem, cure)
        return
    config = project.config
    yield ok("project", f"{config.project_name} in {project.root}")
    target = f"{config.profile_name}, target {config.target_name}"
    if not project.ours:
        sentence = f"{target}: of type {config.credentials.type}, where models run by the macros alone"
        yield warning("profile", sentence, "`type: spark_mv` for all else that this package does")
        return
    where = "Spark in dbt's own process" if patient.embedded else "a server, which was not asked"
    yield ok("profile", f"{target}: method {patient.method}, {where}; schema {config.credentials.schema}")
