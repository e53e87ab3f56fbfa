"""All settings as the code has them: the words of a model, of the profile and of its `ai` block, each with its kind, what it may be, its default and
where it may be said. What a word means is told once, on the page about it, and taken from there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any

from spark_mv.ai import settings as ai
from spark_mv.ai.settings import AiSettings
from spark_mv.maintenance import config as model
from spark_mv.maintenance.config import ModelConfig

DOCS = Path(__file__).resolve().parents[1] / "docs"
RENAMED = {"on_row_update": "row_update"}
"""Words of a model whose field has another name."""
MAY_BE = {
    "api_key": "text", "as_of": "timestamp", "audit": "`true`, `{every: n}`", "canary": "mapping", "dedupe": "mapping", "functions": "mapping",
    "max_rows_changed": "whole number, share", "method": "`session`, `thrift`, `http`, `odbc`", "unique_key": "column, list of columns",
    "freeze": "column, list of columns", "partition_by": "column, list of columns", "rows_per_request": "whole number, `auto`", "second_reading": "true or false",
}  # fmt: skip
"""What the type of a field, once it is read, does not tell."""
WORD = re.compile(r"`(\w+)")


@dataclass(frozen=True)
class Setting:
    """`allowed`: what it may be, or its type; `meaning`: in Markdown, seen from docs/reference."""

    word: str
    allowed: str
    default: str
    said_in: str
    meaning: str


def of_a_model() -> Iterator[Setting]:
    """The words of this materialization."""
    own, told = {one.name: one for one in fields(ModelConfig)}, meanings("reference/config.md", "Of a model")
    for word in sorted(model.OWN_WORDS):
        field = own.get(RENAMED.get(word, word)) or _ai_fields().get(word)
        choices = {
            **ai._CHOICES,
            **model._CHOICES,
            "on_row_update": model.ROW_UPDATE,
            "file_format": model.MERGE_FORMATS,
        }
        allowed = _choices(choices.get(word, ())) or MAY_BE.get(word) or _kind(field)
        more = [
            place
            for place, words in (("profile", (*model.SAFETY, "file_format")), ("`--vars`", (*model.SAFETY, "as_of")))
            if word in words
        ]
        default = "required" if word == "unique_key" else _default(word, field)
        yield Setting(word, allowed, default, ", ".join(["model", *more]), told[word])


def of_the_profile() -> Iterator[Setting]:
    """The keys of `type: spark_mv` beside those of dbt-spark."""
    from dbt.adapters.spark.connections import SparkCredentials

    from spark_mv.spark.adapter import credentials

    theirs = {one.name for one in fields(SparkCredentials)} - {"host", "method"}
    told = meanings("reference/config.md", "The profile")
    choices = {
        "choose_by": model._CHOICES["choose_by"],
        "target_type": credentials.TARGET_TYPES,
        "serve": credentials.SERVE,
        "file_format": model.MERGE_FORMATS,
    }
    for field in fields(credentials.SparkMvCredentials):
        if field.name not in theirs and field.name in told:
            allowed = _choices(choices.get(field.name, ())) or _kind(field)
            yield Setting(field.name, allowed, _default(field.name, field), "profile", told[field.name])


def of_ai() -> Iterator[Setting]:
    """The words of the `ai` block."""
    told, text = meanings("ai.md", "Profile"), (DOCS / "ai.md").read_text(encoding="utf-8")
    for field in fields(AiSettings):
        allowed = _choices(ai._CHOICES.get(field.name, ())) or _kind(field)
        said_in = "profile" if field.name in ai.PROFILE_ONLY else "profile, model"
        yield Setting(
            field.name,
            allowed,
            _default(field.name, field),
            said_in,
            told.get(field.name) or _section(text, field.name),
        )


def _ai_fields() -> dict[str, Field[Any]]:
    return {one.name: one for one in fields(AiSettings)}


def meanings(page: str, heading: str) -> dict[str, str]:
    """Word → its cell in the first table below a heading; links are those of docs/reference."""
    text = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1]
    found = {}
    for line in re.search(r"^\|.*?(?=^[^|])", text, re.M | re.S)[0].splitlines()[2:]:  # type: ignore[index]
        first, _, meaning = (cell.strip() for cell in line.strip("|").split("|", 2))
        words = re.findall(r"`(\w+)[^`]*`", first)
        for word in words:
            beside = f"; beside {', '.join(f'`{other}`' for other in words if other != word)}" if len(words) > 1 else ""
            found[word] = _from_reference(meaning, page).replace("[below]", "[there]") + beside
    return found


def _from_reference(text: str, page: str) -> str:
    """The links of a page as pages in docs/reference write them."""
    name = "config.md" if page.startswith("reference/") else f"../{page}"
    return re.sub(
        r"\]\((#[^)]*|[\w/.-]+\.md[^)]*)\)",
        lambda m: f"]({name}{m[1]})" if m[1].startswith("#") else f"]({_to(m[1], page)})",
        text,
    )


def _to(link: str, page: str) -> str:
    return link if page.startswith("reference/") else f"../{link}"


def _section(text: str, word: str) -> str:
    """The part of the page in which a word is told, for one that stands in no table there."""
    at = re.search(rf"`{word}\b|^ +{word}:", text, re.M)
    assert at is not None, f"docs/ai.md does not tell of {word}"
    title = re.findall(r"^##+ (.+)$", text[: at.start()], re.M)[-1]
    return f"see [{title}](../ai.md#{slug(title)})"


def slug(title: str) -> str:
    """The anchor of a heading.

    >>> slug("A canary for another model"), slug("Retries, pace, limits")
    ('a-canary-for-another-model', 'retries-pace-limits')
    """
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def _choices(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _kind(field: Field[Any] | None) -> str:
    """The type in words. What has a class of its own is a mapping in YAML."""
    if field is not None and field.name in MAY_BE:
        return MAY_BE[field.name]
    text = str(field.type) if field is not None else ""
    kinds = (("bool", "true or false"), ("Mapping", "mapping"), ("dict", "mapping"), ("tuple", "list"), ("list", "list"),
             ("float", "number"), ("int", "whole number"), ("str", "text"))  # fmt: skip
    return next(
        (kind for name, kind in kinds if name in text), "mapping" if text[:1].isupper() and text != "Any" else ""
    )


def _default(word: str, field: Field[Any] | None) -> str:
    found = MISSING if field is None else field.default
    if word == "on_row_update":
        found = "keep"
    if word == "rows_per_request" or (
        found is not MISSING and found not in (None, "", (), 0.0) and not isinstance(found, bool)
    ):
        return f"`{found:g}`" if isinstance(found, int | float) else f"`{found}`"
    return (
        f"`{str(found).lower()}`" if isinstance(found, bool) else "0" if found == 0.0 and found is not None else "none"
    )


def table(found: Iterator[Setting]) -> str:
    lines = ["| word | may be | default | said in | meaning |", "|---|---|---|---|---|"]
    for one in found:
        lines.append(f"| `{one.word}` | {one.allowed} | {one.default} | {one.said_in} | {one.meaning} |")
    return "\n".join(lines)


def page() -> str:
    """The three tables in Markdown."""
    parts = (("Of a model", of_a_model()), ("The profile", of_the_profile()), ("The `ai` block", of_ai()))
    return "\n\n".join(f"## {title}\n\n{table(found)}" for title, found in parts)


if __name__ == "__main__":
    print(page())
