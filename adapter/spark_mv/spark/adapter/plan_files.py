"""The plans of the macro-only mode as files of a dbt project: one for each model, a macro that returns the plan.

A macro, because that is all that dbt-core, dbt Cloud and dbt v2 read alike at run time: Jinja opens no file, and what stands under `meta`
would have to be written into the user's own YAML files. One file holds the plans of a model for several targets, by the table's name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_mv.explain.project_model import not_called
from spark_mv.maintenance.macro_only import FORMAT
from spark_mv.spark.adapter.adopt import ask_macro
from spark_mv.spark.adapter.open_project import ProjectError

_PLAN = re.compile(r"\{%- set plan -%\}\n(.*)\n\s*\{%- endset -%\}", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_HEAD = "{#- Written by `spark-mv plan`, for runs without the adapter. Make it anew instead of editing it, and commit it. -#}"


@dataclass(frozen=True)
class PlanFile:
    """What `spark-mv plan` made of one model. `says`: planned, or why not; `text`: what the file is to hold (None: it is left as
    it is), `changed` whether it holds something else now."""

    model: str
    path: Path
    says: str
    text: str | None = None
    changed: bool = False
    failed: bool = False

    def write(self) -> None:
        """The file, where it is another one now."""
        if self.changed and self.text is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(self.text, encoding="utf-8")


def plan_files(folder: Path, arguments: Sequence[str], models: Sequence[str]) -> list[PlanFile]:
    """The plans of the project that dbt would take (`arguments` are dbt's own), as files in a folder of its macros. Nothing is
    written. Raises ProjectError."""
    plans = json.loads(ask_macro("mv_macro_plans", arguments, models=list(models) or None))
    if unknown := not_called(models, plans):
        raise ProjectError(f"the project has no nondeterministic_mv called {', '.join(unknown)}")
    words = Counter(found["word"] for found in plans.values())
    if twice := [word for word, number in words.items() if number > 1]:
        raise ProjectError(f"several models would have the plan {twice[0]}.sql; give one of them another name")
    return [_file(folder, unique_id, found) for unique_id, found in sorted(plans.items())]


def left_over(folder: Path, files: Sequence[PlanFile]) -> list[Path]:
    """Files with plans of models that are none of these: of models that were renamed or are gone. `files`: the plans of the whole project."""
    there = {file.path for file in files}
    return [
        path
        for path in sorted(folder.glob("*.sql"))
        if path not in there and path.read_text(encoding="utf-8").startswith(_HEAD)
    ]


def _file(folder: Path, unique_id: str, found: Mapping[str, Any]) -> PlanFile:
    name = unique_id.split(".", 2)[2]
    path = folder / f"{found['word']}.sql"
    if "error" in found:
        return PlanFile(name, path, found["error"], failed=True)
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    old = plan_in(before)
    if isinstance(old.get("format"), int) and old["format"] > FORMAT:
        return PlanFile(
            name,
            path,
            f"[NEWER_FORMAT] {path} is in format {old['format']}: a later release of dbt-spark-mv wrote it. This one writes format {FORMAT}. "
            "It is left as it is. Install the release that wrote it, or a later one",
            failed=True,
        )
    tables = old.get("tables", {}) if (old.get("format"), old.get("model")) == (FORMAT, unique_id) else {}
    plans = {"format": FORMAT, "model": unique_id, "tables": {**tables, found["table"]: found["plan"]}}
    text, why = plan_text(str(found["word"]), plans), found["plan"].get("needs_adapter")
    return PlanFile(name, path, f"needs the adapter: {why}" if why else "planned", text, text != before)


def plan_text(word: str, plans: Mapping[str, Any]) -> str:
    """The file of a model; its macro returns none where the plan is not what was written. No text of a plan can be taken for Jinja: braces in it
    are written as JSON's escapes."""
    data = _STRING.sub(_without_braces, json.dumps(plans, indent=1, sort_keys=True))
    written = hashlib.md5(data.encode(), usedforsecurity=False).hexdigest()  # all that dbt's Jinja can count
    return (
        f"{_HEAD}\n{{% macro spark_mv_plan__{word}() -%}}\n{{%- set plan -%}}\n{data}\n{{%- endset -%}}\n"
        f"{{{{ return(fromjson(plan) if local_md5(plan) == '{written}' else none) }}}}\n{{%- endmacro %}}\n"
    )


def plan_in(text: str) -> dict[str, Any]:
    """What a file of `plan_text` holds; empty for any other."""
    found = _PLAN.search(text)
    try:
        data = json.loads(found[1]) if found else {}
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _without_braces(string: re.Match[str]) -> str:
    return string[0].replace("{", "\\u007b").replace("}", "\\u007d")
