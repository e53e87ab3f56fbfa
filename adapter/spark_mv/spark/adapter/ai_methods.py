"""The adapter methods that macros about prompts and cascades call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.meta import AdapterMeta
from dbt_common.exceptions import CompilationError

from spark_mv.maintenance.errors import ConfigError, RefusedError


class AiMixin(metaclass=AdapterMeta):
    """Methods on top of MvMixin."""

    @available
    def mv_ai_prompt(
        self, name: str | None, arguments: Mapping[str, Any], examples: Any, package: str, folder: str
    ) -> dict[str, Any]:
        """The SQL of a prompt file (without `name`: of examples alone), and the files by the names under which dbt is to know them. While dbt parses, too:
        there is no connection then."""
        from spark_mv.ai.examples import Asked, read_examples
        from spark_mv.ai.prompt_files import examples_sql, prompt_sql, read_prompt, seen

        try:
            project = self._project(package)
            root = Path(project.project_root)
            shown = read_examples(root, project.seed_paths, Asked.of(examples)) if examples else None
            if name is None:
                assert shown is not None
                return {"sql": examples_sql(shown), "files": seen(None, shown)}
            prompt = read_prompt(root, str(folder), str(name))
            given = {str(word): str(sql) for word, sql in arguments.items()}
            return {"sql": prompt_sql(prompt, given, shown), "files": seen(prompt, shown)}
        except RefusedError as error:
            raise CompilationError(str(error)) from error

    def _project(self, package: str) -> Any:
        config = self.config  # type: ignore[attr-defined]
        found = config if package == config.project_name else config.load_dependencies().get(package)
        if found is None:
            raise RefusedError(
                "AI_PROMPT",
                f"ai_prompt: there is no package {package!r} in the project: add it to packages.yml and run dbt deps, or leave `package` out",
            )
        return found

    @available
    def mv_ai_calibrate(self, asked: Mapping[str, Any], schema: str, invocation_id: str, project: str) -> str:
        """Both models of a cascade asked about a sample; returns what to tell the user."""
        from spark_mv.spark.run.ai_calibrate import calibrate

        profile = self._mv_profile()["ai"]  # type: ignore[attr-defined]
        try:
            return calibrate(self, asked, schema, invocation_id, project, profile)
        except (ConfigError, RefusedError, ValueError) as error:
            raise CompilationError(str(error)) from error
