"""What the documentation shows is true of the code: models parse, words are known, defaults are those of the classes, the site builds."""

from __future__ import annotations

import ast
import re
from dataclasses import MISSING, fields
from itertools import pairwise
from typing import Any

import codes
import picture
import pytest
import settings
import yaml
from blocks import ROOT, Block, blocks, rendered

from spark_mv.ai.settings import AiSettings
from spark_mv.explain.analysis import explain_data
from spark_mv.explain.judgement import judge
from spark_mv.maintenance.config import OWN_WORDS, SAFETY, ModelConfig, read_config
from spark_mv.maintenance.errors import ConfigError, RefusedError, refused
from spark_mv.query.syntax.query_error import QueryError

pytestmark = pytest.mark.unit

DOCS = ROOT / "docs"
REFUSED = "refused "
STOPS = ("RefusedError", "RunFailed", "NotFollowed", "NotOurs", "AiConfigError")
ON_THE_PROFILE = ("type", "method", "host", "schema")
"""Words of the profile whose meaning is dbt-spark's, or that have no default to compare."""


def models() -> list[Block]:
    return [block for block in blocks("sql") if block.check != "plain dbt"]


@pytest.mark.parametrize("block", models(), ids=str)
def test_model_is_understood(block: Block) -> None:
    """Every model's config is one that a run accepts, and its SQL is refused only where the page says so."""
    from spark_mv.spark.run.config_words import declared_words

    config, sql = rendered(block.text)
    assert config.get("materialized") == "nondeterministic_mv", "a block of another kind says <!-- check: plain dbt -->"
    read = read_config("model", config, declared_words())
    found = explain_data(judge(sql, unique_key=read.unique_key, freeze=read.freeze), unique_key=read.unique_key)
    wanted = block.check.removeprefix(REFUSED).split() if block.check.startswith(REFUSED) else []
    assert [error["code"] for error in found["errors"]] == wanted
    if block.check.startswith("strategy "):
        applies = {one["name"] for one in found["strategies"] if one["applies"] or one["applies_when"]}
        assert block.check.removeprefix("strategy ") in applies


def test_plain_dbt_is_plain_dbt() -> None:
    for block in blocks("sql"):
        if block.check == "plain dbt":
            assert "nondeterministic_mv" not in block.text, str(block)


@pytest.mark.parametrize("block", list(blocks("yaml")), ids=str)
def test_yaml_loads_and_its_words_are_known(block: Block) -> None:
    from spark_mv.spark.adapter.credentials import SparkMvCredentials
    from spark_mv.spark.run.config_words import declared_words

    loaded = yaml.safe_load(block.text)
    known = {one.name for one in fields(SparkMvCredentials)} | {"type"}
    targets = list(_targets(loaded))
    for target in targets:
        assert target.keys() <= known
        AiSettings.from_config(target.get("ai"))
    ai = loaded.get("ai")
    if isinstance(ai, dict):
        AiSettings.from_config(ai)
    for config in _configs(loaded):
        read_config("model", {"unique_key": "id", **config}, declared_words())


def _targets(loaded: Any) -> list[dict[str, Any]]:
    profiles = [one for one in loaded.values() if isinstance(one, dict) and "outputs" in one]
    return [target for one in profiles for target in one["outputs"].values()]


def _configs(loaded: Any) -> list[dict[str, Any]]:
    """Config blocks: `config:` of properties, and `+words` of dbt_project.yml."""
    if isinstance(loaded, list):
        return [found for one in loaded for found in _configs(one)]
    if not isinstance(loaded, dict):
        return []
    own = {str(word)[1:]: value for word, value in loaded.items() if str(word).startswith("+")}
    found = [own] if own else []
    if isinstance(loaded.get("config"), dict):
        found.append(loaded["config"])
    return found + [deeper for one in loaded.values() for deeper in _configs(one)]


def table(page: str, heading: str) -> dict[str, tuple[str, str]]:
    """The rows of the first table below a heading: word → default and meaning. A row may name several words, with as many defaults or one."""
    text = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1]
    found: dict[str, tuple[str, str]] = {}
    for line in re.search(r"^\|.*?(?=^[^|])", text, re.M | re.S)[0].splitlines()[2:]:  # type: ignore[index]
        first, default, meaning = (cell.strip() for cell in line.strip("|").split("|", 2))
        words = [re.match(r"\w+", word)[0] for word in re.findall(r"`([^`]+)`", first)]  # type: ignore[index]
        split = default.split(", ")
        for number, word in enumerate(words):
            found[word] = (split[number] if len(split) == len(words) else default, meaning)
    return found


def same(said: str, default: Any) -> bool:
    """Whether a cell of a table says this default."""
    said = said.strip("`")
    if default is None or default in ((), {}, ""):
        return said in ("", "none", "–", "{}", "null") or not said.isdigit()
    return said == (
        str(default).lower()
        if isinstance(default, bool)
        else f"{default:g}"
        if isinstance(default, float | int)
        else str(default)
    )


def default_of(owner: type, name: str) -> Any:
    found = next(one for one in fields(owner) if one.name == name)
    return None if found.default is MISSING else found.default


def test_every_word_of_a_model_is_in_the_reference() -> None:
    rows = table("reference/config.md", "Of a model")
    assert set(rows) == OWN_WORDS | {"liquid_clustered_by"}
    own = {one.name for one in fields(ModelConfig)}
    for word in set(rows) & own - {"unique_key"}:
        assert same(rows[word][0], default_of(ModelConfig, word)), word
    for word, allowed in {
        "refresh": ("auto", "full", "incremental"),
        "on_source_delete": ("delete", "keep"),
        "on_row_update": ("keep", "redraw"),
    }.items():
        assert all(f"`{one}`" in " ".join(rows[word]) for one in allowed), word


def test_every_word_of_the_profile_is_in_the_reference() -> None:
    from dbt.adapters.spark.connections import SparkCredentials

    from spark_mv.spark.adapter.credentials import SparkMvCredentials

    rows = table("reference/config.md", "The profile")
    own = {one.name for one in fields(SparkMvCredentials)} - {one.name for one in fields(SparkCredentials)}
    assert own <= set(rows)
    for word in own - set(ON_THE_PROFILE) - {"warehouse"}:
        assert same(rows[word][0], default_of(SparkMvCredentials, word)), word
    assert set(SAFETY) <= set(table_of_variables())


def table_of_variables() -> set[str]:
    text = (DOCS / "reference" / "config.md").read_text(encoding="utf-8").split("## Variables of one invocation", 1)[1]
    return set(re.findall(r"`(\w+)`", text))


def test_every_ai_setting_is_on_its_page() -> None:
    rows = table("ai.md", "Profile")
    text = (DOCS / "ai.md").read_text(encoding="utf-8")
    for one in fields(AiSettings):
        assert f"`{one.name}" in text or re.search(rf"^ +{one.name}:", text, re.M) or one.name == "options", one.name
        if one.name in rows and rows[one.name][0] and one.default is not MISSING:
            assert same(rows[one.name][0], one.default), one.name


def test_the_table_of_all_settings_is_that_of_the_code() -> None:
    found = {
        (part, one.word): one for part in ("of_a_model", "of_the_profile", "of_ai") for one in getattr(settings, part)()
    }
    assert {word for part, word in found if part == "of_a_model"} == OWN_WORDS
    assert {word for part, word in found if part == "of_ai"} == {one.name for one in fields(AiSettings)}
    assert all(one.allowed and one.default and one.meaning for one in found.values())
    budget = found["of_ai", "max_ai_calls_per_day"]
    assert (budget.allowed, budget.default, budget.said_in) == ("whole number", "none", "profile, model")
    assert found["of_ai", "api_key"].said_in == "profile" and found["of_a_model", "refresh"].default == "`auto`"
    assert "incremental_strict" in found["of_a_model", "refresh"].allowed


def test_readme_is_short_and_leads_everywhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 130
    pages = re.findall(r"^ +- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    assert len(pages) > 30
    for page in pages:
        assert page in ("index.md", "contributing.md", "changelog.md") or f"(docs/{page})" in text, (
            f"README.md does not lead to {page}"
        )
    for link in re.findall(r"\]\(([^)#:]+)", text):
        assert (ROOT / link).exists(), link


def test_pictures_are_those_of_their_figures() -> None:
    for name, svg in picture.pictures().items():
        assert (DOCS / "assets" / name).read_text(encoding="utf-8") == svg, "run: python docs_build/picture.py"


def test_the_picture_counts_as_the_demo_did() -> None:
    played = picture.days((DOCS / "demo.md").read_text(encoding="utf-8"))
    assert len(played) == 6
    for before, after in pairwise(played):
        assert after.rows == before.rows + after.inserted - after.deleted - after.evicted


def test_cures_are_of_codes_that_exist() -> None:
    known = {one.code for one in codes.given()}
    assert {"HISTORY_GONE", "PER_ROW_IN_GROUP_BY", "SOURCE_UNVERSIONED"} <= known
    assert set(codes.cures()) == known, "docs_build/cures.yml says what to do about each code, and about no other"


def test_every_refusal_has_a_code_and_says_it() -> None:
    """No text is raised without a code: what is called with one names it as its first argument, or is called with a variable of the same place."""
    bare = []
    for file in sorted(codes.ENGINE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
            if name in STOPS and isinstance(node, ast.Call):
                first = node.args[0]
                if not (isinstance(first, ast.Constant) and codes.CODE.fullmatch(str(first.value))):
                    bare.append(f"{file.name}:{node.lineno} {ast.unparse(first)}")
    assert [one for one in bare if not one.endswith(" first.code")] == []
    said = {one.code for one in codes.given() if one.kind == "stop"}
    assert {"NOT_OURS", "KEY_REPEATED", "MAX_ROWS_CHANGED", "TURN_TAKEN", "CONFIG", "AS_OF_AHEAD", "AI_CONFIG"} <= said
    assert str(RefusedError("NOT_OURS", "a table")) == "[NOT_OURS] a table"
    assert str(ConfigError("m", ["x"])).startswith("[CONFIG] model m: ")
    both = refused([QueryError("A_B", "one"), QueryError("C_D", "two")], "model m: ")
    assert str(both) == "[A_B] model m: one\n[C_D] model m: two"
