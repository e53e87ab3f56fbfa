"""A model of a dbt project as `target/manifest.json` has it: the compiled SELECT, its settings, and the views that it reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_mv.maintenance.config import column_names, with_meta_words
from spark_mv.query.syntax.nearest import nearest
from spark_mv.query.syntax.table_name import joined, parts_of

MATERIALIZATION = "nondeterministic_mv"
Node = Mapping[str, Any]


_EMPTIED = re.compile(r"\bwhere\s+false\s+limit\s+0\s*\)", re.IGNORECASE)
"""What dbt writes behind each table under `--empty`."""


class ModelError(Exception):
    """The model cannot be explained. The message says why, and which command cures it."""


@dataclass(frozen=True)
class ProjectModel:
    """What `judge` wants to know of a model. `config` is all of its config. `notes`: what is not
    known, or may be out of date."""

    name: str
    sql: str
    unique_key: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def project_model(root: Path, target: Path, name: str) -> ProjectModel:
    """The model `name` (also `package.name`, `name.v2`, or dbt's unique_id) of the project at `root`, from the files that dbt left
    in its folder `target`. Nothing is compiled. Raises ModelError."""
    manifest = _json(target / "manifest.json")
    if manifest is None:
        raise ModelError(f"there is no {target / 'manifest.json'}; `dbt compile -s {name}` makes it")
    project = _Project(root, target, manifest)
    node = project.find(name)
    if node.get("language", "sql") != "sql":
        raise ModelError(f"model {name} is written in {node['language']}: there is no SQL to explain")
    sql = project.compiled(node)
    if sql is None:
        raise ModelError(f"model {name} has not been compiled; `dbt compile -s {name}` does that")
    config = with_meta_words(name, node.get("config") or {})
    below = project.below(node)
    views, missing = project.views(below)
    notes = [*project.outdated(node, name)]
    if _EMPTIED.search(sql):
        notes.append(
            f"it was compiled last under --empty, which reads no rows; `dbt compile -s {name}` has the query itself"
        )
    if _materialized(node) != MATERIALIZATION:
        notes.append(
            f"it is materialized as {_materialized(node)}; what follows is what {MATERIALIZATION} would make of it"
        )
    if missing:
        notes.append(
            f"not looked through, since not compiled: {', '.join(missing)}; `dbt compile -s +{name}` does that"
        )
    return ProjectModel(
        name=str(node["name"]),
        sql=sql,
        unique_key=column_names(config.get("unique_key")),
        freeze=column_names(config.get("freeze")),
        config=config,
        views=views,
        schemas=project.columns(below),
        notes=tuple(notes),
    )


def compiled_file(target: Path, package: str, path: str) -> Path:
    """Where dbt writes the compiled SELECT of a model. `target`: the project's folder for what dbt makes, `path`: the model's file, in its package."""
    return target / "compiled" / package / path


def model_names(target: Path) -> list[str]:
    """The names of the models that the manifest in this folder knows; none where there is none."""
    try:
        nodes = (_json(target / "manifest.json") or {}).get("nodes") or {}
    except ModelError:
        return []
    return sorted({str(node["name"]) for node in nodes.values() if node.get("resource_type") == "model"})


@dataclass(frozen=True)
class _Project:
    root: Path
    target: Path
    manifest: Mapping[str, Any]

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self.manifest.get("nodes") or {}

    def find(self, name: str) -> Node:
        """The one model of that name; of several versions the latest, as `ref` takes it. Raises ModelError."""
        models = [node for node in self.nodes.values() if node.get("resource_type") == "model"]
        found = [node for node in models if name in called(node)]
        if len(found) > 1:
            found = [node for node in found if node.get("version") == node.get("latest_version")] or found
        if len(found) == 1:
            return found[0]
        if found:
            raise ModelError(f"several models are called {name}: {', '.join(str(n['unique_id']) for n in found)}")
        disabled = [node for nodes in (self.manifest.get("disabled") or {}).values() for node in nodes]
        if any(name in called(node) for node in disabled):
            raise ModelError(f"model {name} is disabled (enabled: false)")
        near = nearest(name, [str(node["name"]) for node in models])
        meant = f"; did you mean {near!r}?" if near else "; `dbt parse` renews it"
        raise ModelError(f"{self.target / 'manifest.json'} has no model {name!r}{meant}")

    def compiled(self, node: Node) -> str | None:
        """The SELECT as dbt compiled it: in the manifest, else the file under target/compiled. None where there is neither."""
        code = node.get("compiled_code")
        if code:
            return str(code)
        file = self._compiled_file(node)
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _compiled_file(self, node: Node) -> Path:
        return compiled_file(self.target, str(node.get("package_name")), str(node.get("original_file_path")))

    def outdated(self, node: Node, name: str) -> Iterator[str]:
        """A note where the model's file is not the one that was compiled. Files of packages are not looked at."""
        if node.get("package_name") != (self.manifest.get("metadata") or {}).get("project_name"):
            return
        file, checksum = self.root / str(node.get("original_file_path")), node.get("checksum") or {}
        try:
            text, changed = file.read_text(encoding="utf-8"), file.stat().st_mtime
        except (OSError, UnicodeDecodeError):
            return
        read = (text.strip(), " ".join(text.split()))  # before dbt-core 1.12, and since
        hashes = [hashlib.sha256(one.encode()).hexdigest() for one in read]
        other = checksum.get("name") == "sha256" and checksum["checksum"] not in hashes
        compiled = self._compiled_file(node)
        older = not node.get("compiled_code") and compiled.is_file() and compiled.stat().st_mtime < changed
        if other or older:
            yield f"{node.get('original_file_path')} has changed since; `dbt compile -s {name}` renews what is said here"

    def below(self, node: Node) -> dict[str, Node]:
        """What the model reads, by unique_id: what it names itself, and what stands below views and ephemeral models."""
        known = {**self.nodes, **(self.manifest.get("sources") or {})}
        found: dict[str, Node] = {}
        open_ = list(_reads(node))
        while open_:
            unique_id = open_.pop()
            if unique_id in known and unique_id not in found:
                found[unique_id] = known[unique_id]
                if _materialized(known[unique_id]) in ("view", "ephemeral"):
                    open_ += _reads(known[unique_id])
        return found

    def views(self, below: Mapping[str, Node]) -> tuple[dict[str, str], list[str]]:
        """The SELECTs of views, by the names that compiled SQL has for them; and the names of those that were not compiled."""
        views = [node for node in below.values() if _is_view(node) and node.get("language", "sql") == "sql"]
        texts = [(node, self.compiled(node)) for node in views]
        found = {_relation(node): text for node, text in texts if text is not None}
        return found, sorted(str(node["name"]) for node, text in texts if text is None)

    def columns(self, below: Mapping[str, Node]) -> dict[str, dict[str, str]]:
        """Columns and types of tables, where all of them are known: from catalog.json (`dbt docs generate`) or an enforced contract."""
        catalog = _json(self.target / "catalog.json") or {}
        described = {**(catalog.get("nodes") or {}), **(catalog.get("sources") or {})}
        found = {}
        for unique_id, node in below.items():
            columns = _contract(node) or _catalogued(described.get(unique_id) or {})
            if columns and not _is_view(node):
                found[_relation(node)] = columns
        return found


def _materialized(node: Node) -> str:
    return str((node.get("config") or {}).get("materialized") or "")


def _is_view(node: Node) -> bool:
    return _materialized(node) == "view" and node.get("resource_type") == "model"


def _contract(node: Node) -> dict[str, str]:
    if not ((node.get("config") or {}).get("contract") or {}).get("enforced"):
        return {}
    return {str(column["name"]): str(column.get("data_type") or "") for column in node["columns"].values()}


def _catalogued(entry: Mapping[str, Any]) -> dict[str, str]:
    columns = sorted((entry.get("columns") or {}).values(), key=lambda column: int(column.get("index") or 0))
    return {str(column["name"]): str(column.get("type") or "") for column in columns}


def called(node: Node) -> set[str]:
    """The words that mean this node: `tickets`, `desk.tickets`, `tickets.v2`, its unique_id."""
    name, package, version = node["name"], node.get("package_name"), node.get("version")
    names = {name} if version is None else {name, f"{name}.v{version}"}
    return {*names, *(f"{package}.{one}" for one in names), str(node["unique_id"])}


def not_called(names: Iterable[str], unique_ids: Iterable[str]) -> list[str]:
    """The names that mean none of these models of dbt's ids.

    >>> not_called(["b", "a.b", "b.v2", "c"], ["model.a.b.v2"])
    ['c']
    """
    known: set[str] = set()
    for unique_id in unique_ids:
        _, package, model = unique_id.split(".", 2)
        name, _, version = model.partition(".v")
        known |= called({"unique_id": unique_id, "package_name": package, "name": name, "version": version or None})
    return [name for name in names if name not in known]


def _reads(node: Node) -> Iterable[str]:
    return (node.get("depends_on") or {}).get("nodes") or ()


def _relation(node: Node) -> str:
    """As compiled SQL names it, without the quotes that it can do without."""
    return joined(parts_of(str(node.get("relation_name") or f"{node.get('schema')}.{node.get('alias')}")))


def _json(file: Path) -> Mapping[str, Any] | None:
    """The file's object, None where there is no file. Raises ModelError for one that is none of dbt's."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise ModelError(f"{file} is not one that dbt wrote")
    return data
