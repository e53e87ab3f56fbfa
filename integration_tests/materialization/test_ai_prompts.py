"""Prompts as files and examples from seeds: answers of a literal that moves to a file stay, an edited file is an edited literal, dbt sees it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.util import run_dbt, write_file
from dbt_common.exceptions import CompilationError
from integration_tests.ai.endpoint import Endpoint, Seen

CONFIG = "{{ config(materialized='nondeterministic_mv', unique_key='id', meta={'owner': 'us'}) }}\n"
INLINE = (
    CONFIG
    + """select id, ai_gen(concat('Sort this:\\n', body, ' (it\\'s a ticket)')) as kind, ai_filter(body, 'wants money back') as refund
from {{ target.schema }}.src"""
)
FILES = (
    CONFIG
    + """select id, ai_gen({{ ai_prompt('triage', body='body') }}) as kind, ai_filter(body, {{ ai_prompt('refund') }}) as refund
from {{ target.schema }}.src"""
)
TAUGHT = FILES.replace(
    "ai_prompt('refund')", "ai_prompt('refund', examples={'seed': 'cases', 'input': 'body', 'output': 'refund'})"
)
TRIAGE = "---\nversion: 1\n---\nSort this:\n{body} (it's a ticket)\n"


class TestPromptFiles:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": INLINE}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"cases.csv": "id,body,refund\n1,give it back,true\n2,thank you,false\n"}

    @pytest.fixture(scope="class")
    def endpoint(self) -> Iterator[Endpoint]:
        with Endpoint() as endpoint:
            yield endpoint

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
        ai = {"provider": "openai", "base_url": endpoint.url, "model": "m", "api_key": "k", "ask_from": "driver"}
        return {**dbt_profile_target, "ai": ai}

    def test_a_literal_moves_to_a_file(
        self, project: Any, mv: Any, sql: Any, operation: Any, endpoint: Endpoint
    ) -> None:
        root = Path(project.project_root)

        def write(text: str, *path: str) -> None:
            (root / Path(*path)).parent.mkdir(exist_ok=True)
            write_file(text, root, *path)

        def asked() -> int:
            number, endpoint.seen = sum(endpoint.seen.asked.values()), Seen()
            return number

        sql("create table {schema}.src using delta as select id, concat('text ', id % 6) as body from range(10)")
        assert (mv.run()["ai_calls"], asked()) == (12, 12)
        before = mv.rows()

        write(FILES, "models", "mv.sql")
        with pytest.raises(CompilationError, match=r"there is no file prompts/triage\.md in the project") as missing:
            mv.run()
        assert "called by model mv (models/mv.sql)" in str(missing.value) and str(root) not in str(missing.value)

        # the same text: the same answers, now from files
        write(TRIAGE, "prompts", "triage.md")
        write("wants money back", "prompts", "refund.md")
        assert (mv.run()["ai_calls"], asked()) == (0, 0)
        assert mv.rows() == before

        # an edited file is an edited literal, and only its own question is asked
        write(TRIAGE.replace("Sort this", "Sort that").replace("version: 1", "version: 2"), "prompts", "triage.md")
        edited = mv.run()
        assert (edited["strategy"], edited["ai_calls"], asked()) == ("COMPLETE_RECOMPUTE", 6, 6)
        assert mv.rows("refund") == type(before)((row[2],) for row in before.elements())
        assert mv.run()["strategy"] == "NO_OP"
        kept = sql("select split(prompts, '[(]')[0], count(*) from {schema}.ai_results group by 1 order by 1")
        assert kept == [(None, 12), ("triage 2 ", 6)]
        # another version of the same text, written otherwise
        write(
            TRIAGE.replace("Sort this", "Sort that").replace("version: 1", "version: two") + "\n\n",
            "prompts",
            "triage.md",
        )
        assert (mv.run()["ai_calls"], asked()) == (0, 0)
        operation("ai_views", {})
        shown = "select distinct function, regexp_replace(prompts, '[0-9a-f]+[)]', '…)') from {schema}.mv__ai_answers order by 1"
        assert sql(shown) == [("ai_filter", "refund (…)"), ("ai_gen", "triage two (…)")]

        # examples: rows of the seed's file, part of the question
        write(TAUGHT, "models", "mv.sql")
        run_dbt(["seed"])
        assert (mv.run()["ai_calls"], asked()) == (6, 6)
        assert (mv.run()["ai_calls"], asked()) == (0, 0)
        (prompts,) = sql("select max_by(prompts, called_at) from {schema}.ai_results where function = 'ai_filter'")[0]
        assert prompts.startswith("refund (") and ", examples of cases (" in prompts
        write("id,body,refund\n2,thank you,false\n1,give it back,true\n", "seeds", "cases.csv")
        assert (mv.run()["ai_calls"], asked()) == (6, 6)

        # ai_eval takes prompts of the project
        call = "ai_gen({{ ai_prompt('triage', body='body') }})"
        sql("create table {schema}.labelled using delta as select id, body, 'x' as kind from {schema}.src")
        said = operation(
            "ai_eval", {"data": f"{project.test_schema}.labelled", "key": "id", "label": "kind", "call": call}
        )
        assert ("0 of 10 as kind" in said, asked()) == (True, 0)

    @pytest.mark.parametrize("more", [False, True])
    def test_dbt_sees_a_changed_file(self, project: Any, more: bool) -> None:
        root = Path(project.project_root)
        write_file(TAUGHT, root, "models", "mv.sql")
        (root / "prompts").mkdir(exist_ok=True)
        for name in ("triage", "refund"):
            write_file(f"{name} {{body}}" if name == "triage" else name, root, "prompts", f"{name}.md")
        if more:
            config = yaml.safe_load((root / "dbt_project.yml").read_text())
            config["flags"] = {**config.get("flags", {}), "state_modified_compare_more_unrendered_values": True}
            (root / "dbt_project.yml").write_text(yaml.safe_dump(config))
        run_dbt(["parse", "--no-partial-parse"])
        state = root / "state"
        state.mkdir(exist_ok=True)
        shutil.copy(root / "target" / "manifest.json", state / "manifest.json")
        node = json.loads((state / "manifest.json").read_text())["nodes"]["model.test.mv"]
        assert node["config"]["meta"].keys() == {"owner", "ai_prompt triage", "ai_prompt refund", "ai_examples cases"}
        assert node["depends_on"]["nodes"] == ["seed.test.cases"]

        def modified() -> list[str]:
            arguments = [
                "ls",
                "-s",
                "state:modified",
                "--state",
                str(state),
                "--no-partial-parse",
                "--resource-type",
                "model",
            ]
            return run_dbt(arguments)

        assert modified() == []
        write_file("refund?", root, "prompts", "refund.md")
        assert modified() == ["test.mv"]
