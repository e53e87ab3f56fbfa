"""A model of a project as a question for `spark-mv explain`: its manifest, with what only the project and its profile say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_mv.ai.settings import AiConfigError, check_ai_words
from spark_mv.explain.project_model import MATERIALIZATION, ModelError, ProjectModel, project_model
from spark_mv.explain.question import Question
from spark_mv.maintenance.config import read_config
from spark_mv.maintenance.errors import ConfigError
from spark_mv.spark.adapter.open_project import declared_functions, open_project, time_zone
from spark_mv.spark.run.config_words import declared_words


def ask_model(name: str, arguments: Sequence[str] = ()) -> Question:
    """The question about the model `name` of the project that dbt would take with these `arguments`. Raises ModelError."""
    project = open_project(arguments)
    if not project.exists:
        raise ModelError(
            f"{name} is no file, and there is no dbt project in {project.root} (see --project-dir) to have a model of that name"
        )
    try:
        model = project_model(project.root, project.target, name)
    except ModelError as error:
        if project.problem:  # so that the project's own target-path is not known either
            raise ModelError(f"{error}. The project itself cannot be read: {project.problem}") from error
        raise
    question = Question(
        sql=model.sql,
        name=model.name,
        unique_key=model.unique_key,
        freeze=model.freeze,
        views=model.views,
        schemas=model.schemas,
        notes=(*model.notes, *_refused(model)),
    )
    if project.config is None:
        note = f"functions and time zone of the profile are not known: {project.problem}"
        return replace(question, notes=(*question.notes, note))
    return question.with_options(functions=declared_functions(project.config), time_zone=time_zone(project.config))


def _refused(model: ProjectModel) -> tuple[str, ...]:
    """What a run would say of the model's config. A missing key is an error of the SELECT's verdict."""
    if model.config.get("materialized") != MATERIALIZATION:
        return ()
    try:
        config = read_config(model.name, model.config, declared_words())
        check_ai_words(None, config.ai)
    except ConfigError as error:
        return tuple(
            f"a run refuses its config: {one}" for one in error.problems if not one.startswith("unique_key is missing")
        )
    except AiConfigError as error:
        return (f"a run refuses its config: {error}",)
    return ()
