"""Other people's packages that ask for the profile's type instead of dispatching, and do not know this one.

`{% if target.type in ('spark', 'databricks') %}` takes the other branch under `type: spark_mv`, which may be another quoting or another
function: nothing fails, and a column is a string. The profile's `target_type: spark` shows them the type that they know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

OWN_TYPE = "spark_mv"
_TYPES = r"""['"](?:spark|databricks)['"]"""
_HOW = {
    "target.type": r"""\btarget\s*(?:\.\s*type\b|\[\s*['"]type['"]\s*\]|\.\s*get\(\s*['"]type['"][^)]*\))""",
    "adapter.type()": r"\badapter\s*\.\s*type\s*\(\s*\)",
}


def _asking(asks: str) -> re.Pattern[str]:
    """Compared with a type of Spark's, on either side, or put into a variable beside one."""
    filtered = rf"{asks}(?:\s*\|\s*\w+)*"
    against = rf"\s*(?:==|!=|(?:not\s+)?in\b)\s*(?:{_TYPES}|[\[(][^\])]*{_TYPES})"
    return re.compile(
        rf"{filtered}{against}|{_TYPES}\s*(?:==|!=|(?:not\s+)?in\b)\s*{asks}|[^=!]=\s*{filtered}(?!\s*[=!]=)(?=.*{_TYPES})",
        re.DOTALL,
    )


_ASKS = {how: _asking(asks) for how, asks in _HOW.items()}
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
SHOWN = 5
_CURE = (
    "\nTo show them the type that they know, write `target_type: spark` into the profile's target; `target_type: spark_mv` keeps the "
    "type as it is and silences this"
)


@dataclass(frozen=True, order=True)
class Branch:
    """A macro, model or test that asks for the type. `what` is its name, `path` its file in the package, `asks` how it asks."""

    package: str
    what: str
    path: str
    asks: str = "target.type"


def branches(texts: Iterable[tuple[Branch, str]]) -> list[Branch]:
    """Those that ask for the type, know that of dbt-spark or dbt-databricks, and not this one."""
    return sorted({replace(branch, asks=asks) for branch, text in texts if (asks := _asks(text))})


def _asks(text: str) -> str:
    if "type" not in text or ("spark" not in text and "databricks" not in text):
        return ""
    code = _COMMENT.sub("", text)
    if OWN_TYPE in code:
        return ""
    return next((how for how, pattern in _ASKS.items() if pattern.search(code)), "")


def warning(found: list[Branch]) -> str:
    """One text for all that ask in one way, by package."""
    asks = found[0].asks
    packages: dict[str, list[Branch]] = {}
    for branch in found:
        packages.setdefault(branch.package, []).append(branch)
    lines = [
        f"  {package}: {', '.join(f'{b.what} ({b.path})' for b in of[:SHOWN])}"
        + (f" and {len(of) - SHOWN} more" if len(of) > SHOWN else "")
        for package, of in packages.items()
    ]
    return (
        f"these take another branch under `type: spark_mv` than under `type: spark`, because they compare {asks}:\n"
        + "\n".join(lines)
        + (_CURE if asks == "target.type" else "\nA macro of the same name in your project wins over the package's")
    )


def texts_of_projects(config: Any) -> Iterable[tuple[Branch, str]]:
    """dbt_project.yml of the project and of the packages that are installed for it: what they say is said before anything else is read.
    `config` is dbt's RuntimeConfig, or a profile without a project."""
    root = getattr(config, "project_root", None)
    if not root:
        return
    installed = Path(root) / (getattr(config, "packages_install_path", None) or "dbt_packages")
    for file in (Path(root) / "dbt_project.yml", *sorted(installed.glob("*/dbt_project.yml"))):
        if file.is_file():
            name = config.project_name if file.parent == Path(root) else file.parent.name
            yield Branch(str(name), file.name, file.name), file.read_text("utf-8", "replace")


def texts_of_sources(config: Any) -> Iterable[tuple[Branch, str]]:
    """The YAML files beside the models of packages, once dbt has loaded these."""
    packages: Mapping[str, Any] = getattr(config, "dependencies", None) or {}
    for name, project in packages.items():
        root = Path(project.project_root)
        if root == Path(config.project_root):
            continue
        for folder in project.model_paths:
            for file in sorted((root / folder).rglob("*.y*ml")):
                yield Branch(name, file.name, str(file.relative_to(root))), file.read_text("utf-8", "replace")


def show_target_type() -> None:
    """Let `target.type` be the profile's target_type, in models, macros and dbt_project.yml alike. dbt makes `target` of the profile and
    has no setting for it: so that what it makes is amended, once, and only where a profile asks for it. Dispatch and adapter.type()
    stay as they are."""
    from dbt.config.profile import Profile

    as_it_is = Profile.to_target_dict
    if getattr(as_it_is, "shows_target_type", False):
        return

    def shown(self: Any) -> dict[str, Any]:
        target = as_it_is(self)
        wanted = getattr(self.credentials, "target_type", None)
        return {**target, "type": wanted} if wanted else target

    shown.shows_target_type = True  # type: ignore[attr-defined]
    Profile.to_target_dict = shown


def texts_of(manifest: Any, own: Iterable[str]) -> Iterable[tuple[Branch, str]]:
    """The macros, models and tests of a manifest, but those of the packages `own`."""
    ours = {*own}
    macros: Mapping[str, Any] = getattr(manifest, "macros", None) or {}
    nodes: Mapping[str, Any] = getattr(manifest, "nodes", None) or {}
    for one in macros.values():
        if one.package_name not in ours:
            yield Branch(one.package_name, one.name, one.original_file_path), one.macro_sql
    for node in nodes.values():
        if node.package_name not in ours:
            yield Branch(node.package_name, node.name, node.original_file_path), getattr(node, "raw_code", "") or ""
