"""Prompts as files of the project: a file's text as a piece of SQL, which a call then has as if it had been written there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_mv.ai.examples import Examples
from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.ai_calls.prompt_marks import EXAMPLES, PROMPT, mark, shown
from spark_mv.query.syntax.nearest import did_you_mean
from spark_mv.query.syntax.source_text import string_literal as quote

SUFFIX = ".md"
_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
_VERSION = re.compile(r"[\w.-]{1,40}")
_HEAD = ("version", "description")
_PLACE = re.compile(r"{([A-Za-z_]\w*)}")


@dataclass(frozen=True)
class Prompt:
    """A prompt file read: `version` is what its head says, '' where it says none; `digest` is of the text alone."""

    name: str
    text: str
    version: str = ""

    @property
    def digest(self) -> str:
        return digest(self.text)


def digest(text: str) -> str:
    """The first 12 digits of a text's sha256."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def refused(name: str, why: str) -> RefusedError:
    """The error of a prompt that cannot be had."""
    return RefusedError("AI_PROMPT", f"ai_prompt('{name}'): {why}")


def read_prompt(root: Path, folder: str, name: str) -> Prompt:
    """The prompt `name` of the project at `root`: the file of that name, by itself or with `.md`, in the folder.

    Raises RefusedError where there is none, where it lies outside the folder, or where it cannot be read. The kind of line ends and
    white space around the text do not count, so that neither an editor's last line end nor Git's changes an answer.
    """
    if not _NAME.fullmatch(name):
        raise refused(
            name,
            f"a prompt is named by its path under {folder}/ in letters, digits, `_`, `-`, `.` and `/`, without `..`: e.g. 'triage' or 'support/triage'",
        )
    home = (root / folder).resolve()
    if not home.is_relative_to(root.resolve()) or Path(folder).is_absolute():
        raise refused(
            name,
            f"the folder of prompts ({folder}) lies outside the project: set vars: {{ai_prompt_path: prompts}} in dbt_project.yml",
        )
    paths = [home / name] if Path(name).suffix in (SUFFIX, ".txt") else [home / f"{name}{SUFFIX}"]
    file = next((path for path in paths if path.is_file()), None)
    if file is None:
        raise refused(name, _missing(home, folder, name, paths[0].relative_to(home).as_posix()))
    if not file.resolve().is_relative_to(home):
        raise refused(
            name, f"{folder}/{file.relative_to(home).as_posix()} is a link out of {folder}/: copy the file there"
        )
    return parsed(name, _text_of(file, name, folder))


def parsed(name: str, text: str) -> Prompt:
    """A prompt from its file's text, whose head between two lines of `---` may say version and description.

    >>> parsed("triage", "---\\nversion: 3\\n---\\nSort the ticket.\\n")
    Prompt(name='triage', text='Sort the ticket.', version='3')
    """
    head: dict[str, str] = {}
    if text == "---" or text.startswith("---\n"):
        lines = text.split("\n")
        if "---" not in lines[1:]:
            raise refused(
                name,
                "its head begins with `---` and never ends: put a line `---` behind it, or begin the text otherwise",
            )
        end = lines.index("---", 1)
        head = _head(name, lines[1:end])
        text = "\n".join(lines[end + 1 :])
    if not text.strip():
        raise refused(name, "the file has no text: write the prompt into it")
    return Prompt(name, text.strip(), head.get("version", ""))


def prompt_sql(prompt: Prompt, arguments: Mapping[str, str], examples: Examples | None = None) -> str:
    """The text as one string literal; with arguments a concat, in which each `{name}` of the text is the SQL given for it. Examples stand where the
    text says `{examples}`, else at its end. Comments say which files it is from.

    >>> prompt_sql(Prompt("triage", "Sort this: {body}"), {"body": "t.body"})
    "concat('Sort this: ' /* ai_prompt triage - 14f203f3d860 */, t.body)"
    """
    wanted = [*arguments, *(["examples"] if examples else [])]
    parts = re.split("{(" + "|".join(map(re.escape, wanted)) + ")}", prompt.text) if wanted else [prompt.text]
    written, places = parts[::2], parts[1::2]
    _all_placed(prompt, arguments, written, places)
    if examples and "examples" not in places:
        written[-1] += f"\n\n{examples.text}"
    texts, values = [written[0]], []
    for place, after in zip(places, written[1:], strict=True):
        if place in arguments:
            values.append(arguments[place])
            texts.append(after)
        else:
            texts[-1] += (examples.text if examples else "") + after
    marks = mark(PROMPT, prompt.name, prompt.version, prompt.digest)
    if examples:
        marks += " " + mark(EXAMPLES, examples.seed, "", digest(examples.text))
    literals = [quote(text) for text in texts]
    literals[0] += f" {marks}"
    if not values:
        return literals[0]
    pieces = [literals[0]]
    for value, text, literal in zip(values, texts[1:], literals[1:], strict=True):
        pieces += [value, *([literal] if text else [])]
    return f"concat({', '.join(pieces)})"


def examples_sql(examples: Examples) -> str:
    """Examples by themselves, as a string literal."""
    return f"{quote(examples.text)} {mark(EXAMPLES, examples.seed, '', digest(examples.text))}"


def seen(prompt: Prompt | None, examples: Examples | None) -> dict[str, str]:
    """What of a model's files dbt is to compare: its config's `meta` says it."""
    found = {}
    if prompt:
        found[f"{PROMPT} {prompt.name}"] = shown(PROMPT, prompt.name, prompt.version, prompt.digest)
    if examples:
        found[f"{EXAMPLES} {examples.seed}"] = shown(EXAMPLES, examples.seed, "", digest(examples.text))
    return found


def _missing(home: Path, folder: str, name: str, file: str) -> str:
    there = (
        sorted(path.relative_to(home).with_suffix("").as_posix() for path in home.rglob(f"*{SUFFIX}"))
        if home.is_dir()
        else []
    )
    known = did_you_mean(name, there, f"; there are {', '.join(there[:8])}" if there else "")
    return (
        f"there is no file {folder}/{file} in the project{known}. Write the prompt there, or name the folder in dbt_project.yml: "
        "vars: {ai_prompt_path: prompts}"
    )


def _text_of(file: Path, name: str, folder: str) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise refused(
            name,
            f"{folder}/{file.name} cannot be read as UTF-8 text ({getattr(error, 'strerror', None) or error}): save it as UTF-8",
        ) from error


def _head(name: str, lines: list[str]) -> dict[str, str]:
    head: dict[str, str] = {}
    for line in filter(str.strip, lines):
        word, colon, value = line.partition(":")
        if not colon or word not in _HEAD:
            raise refused(
                name, f"its head has the line `{line}`; it takes `version: …` and `description: …`, a line each"
            )
        head[word] = value.strip().strip("'\"")
    if "version" in head and not _VERSION.fullmatch(head["version"]):
        raise refused(name, f"its version is `{head['version']}`; it takes up to 40 letters, digits, `_`, `-` and `.`")
    return head


def _all_placed(prompt: Prompt, arguments: Mapping[str, str], written: list[str], places: list[str]) -> None:
    if lost := [name for name in arguments if name not in places]:
        has = sorted(set(_PLACE.findall(prompt.text)))
        said = f"it has {', '.join(f'{{{p}}}' for p in has)}" if has else "it has no place in braces"
        raise refused(prompt.name, f"its text has no {{{lost[0]}}}, which the call gives; {said}")
    left = [name for text in written for name in _PLACE.findall(text)]
    if arguments and left:
        raise refused(
            prompt.name,
            f"its text has {{{left[0]}}}, which the call does not give: say {left[0]}='…', the SQL to stand there",
        )
