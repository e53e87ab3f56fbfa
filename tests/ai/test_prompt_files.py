"""Prompt files and examples as SQL: what is read, what stands in the call, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_mv.ai.examples import Asked, Examples, read_examples
from spark_mv.ai.prompt_files import Prompt, examples_sql, parsed, prompt_sql, read_prompt, seen
from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.ai_calls.ai_plan import plan_ai
from spark_mv.query.ai_calls.text import TokenText

ODD = 'O\'Brien said "x"\nsecond line\\n, ${env:HOME}, {curly}, 100 %, é -- no comment /* none either */'


def planned(sql: str) -> Any:
    plan = plan_ai(sql, results_table="r", identity={"model": "m"})
    assert plan.errors == ()
    return plan


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "prompts" / "support").mkdir(parents=True)
    (tmp_path / "prompts" / "triage.md").write_text("---\nversion: 3\n---\n\nSort the ticket.\n", encoding="utf-8")
    (tmp_path / "prompts" / "support" / "odd.md").write_text(ODD + "\n", encoding="utf-8")
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "cases.csv").write_text('body,kind,urgency\n"two\nlines",bug,1\nhow?,question,2\n', "utf-8")
    return tmp_path


def test_a_file_is_read_and_named(project: Path) -> None:
    triage = read_prompt(project, "prompts", "triage")
    assert (triage.text, triage.version) == ("Sort the ticket.", "3")
    assert read_prompt(project, "prompts", "triage.md").digest == triage.digest
    assert read_prompt(project, "prompts", "support/odd").text == ODD
    (project / "prompts" / "triage.md").write_bytes(b"\xef\xbb\xbfSort the ticket.\r\n\r\n")
    assert read_prompt(project, "prompts", "triage").digest == triage.digest


@pytest.mark.parametrize(
    ("name", "folder", "said"),
    [
        ("../secret", "prompts", "without `..`"),
        ("/etc/hosts", "prompts", "named by its path under prompts/"),
        ("a/../../b", "prompts", "without `..`"),
        (".hidden", "prompts", "named by its path"),
        ("triage", "../elsewhere", "lies outside the project"),
        ("triage", "/etc", "lies outside the project"),
        (
            "trage",
            "prompts",
            r"no file prompts/trage.md in the project \(did you mean 'triage'\?\). Write the prompt there",
        ),
        ("zzz", "prompts", "there are support/odd, triage"),
        ("triage", "nowhere", "no file nowhere/triage.md .* vars: {ai_prompt_path: prompts}"),
        ("out", "prompts", r"prompts/out.md is a link out of prompts/"),
        ("latin", "prompts", "save it as UTF-8"),
    ],
)
def test_what_is_refused_says_place_and_cure(project: Path, name: str, folder: str, said: str) -> None:
    (project / "secret.md").write_text("secret")
    (project / "prompts" / "out.md").symlink_to(project / "secret.md")
    (project / "prompts" / "latin.md").write_bytes(b"gr\xfc\xdfe")
    if name == "zzz":
        (project / "prompts" / "out.md").unlink()
        (project / "prompts" / "latin.md").unlink()
    with pytest.raises(RefusedError, match=said) as error:
        read_prompt(project, folder, name)
    assert str(project) not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\nversion: 3\nSort.", "never ends"),
        ("---\nversin: 3\n---\nSort.", "takes `version: …`"),
        ("---\nversion: a b\n---\nSort.", "up to 40 letters"),
        ("---\nversion: 3\n---\n \n", "has no text"),
    ],
)
def test_a_head_that_is_none(text: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        parsed("triage", text)


def test_the_text_counts_as_if_it_stood_there() -> None:
    """Constants and requests are those of the literal, whatever the text holds, and the call knows its file."""
    prompt = Prompt("odd", ODD, "7")
    inline = ODD.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    of_file = planned(f"select ai_filter(body, {prompt_sql(prompt, {})}) as f from t").calls[0]
    written = planned(f"select ai_filter(body, '{inline}') as f from t").calls[0]
    assert of_file.constant == written.constant == {"condition": ODD}
    assert (of_file.identity_hash, of_file.request_sql) == (written.identity_hash, written.request_sql)
    assert (of_file.prompts, written.prompts) == (f"odd 7 ({prompt.digest})", "")


def test_arguments_stand_in_their_places() -> None:
    prompt = Prompt("p", "{title} is about {body}, {title}?")
    sql = prompt_sql(prompt, {"title": "t.title", "body": "t.body"})
    assert sql == f"concat('' /* ai_prompt p - {prompt.digest} */, t.title, ' is about ', t.body, ', ', t.title, '?')"
    for arguments, said in (
        ({"titel": "x"}, "no {titel}"),
        ({"title": "x"}, r"has \{body\}, which the call does not give"),
    ):
        with pytest.raises(RefusedError, match=said):
            prompt_sql(prompt, arguments)
    assert prompt_sql(Prompt("json", '{"a": 1, "b": "{b}"}'), {"b": "x"}).startswith('concat(\'{"a": 1, "b": "\'')


def test_the_file_is_known_wherever_the_call_stands() -> None:
    sql = prompt_sql(Prompt("p", "Sum up: {said}"), {"said": "max(body)"})
    (call,) = planned(f"select id, ai_gen({sql}) as s from t group by id").calls
    assert call.prompts.startswith("p (")
    fake = "select ai_gen('/* ai_prompt p 1 00aa */') as s from t"
    assert planned(fake).calls[0].prompts == ""
    nested = planned(f"select ai_filter(ai_gen({sql}), 'polite') as f from t".replace("max(body)", "body")).calls
    assert {c.function: bool(c.prompts) for c in nested} == {"ai_gen": True, "ai_filter": False}
    both = f"select ai_gen({sql}) as a, ai_gen(body) as b from t"
    assert [bool(c.prompts) for c in planned(both.replace("max(body)", "body")).calls] == [True, False]


def test_examples_in_the_order_of_the_file(project: Path) -> None:
    one = Asked.of({"seed": "cases", "input": "body", "output": "kind"})
    found = read_examples(project, ["seeds"], one)
    assert found.text == "Examples:\n\nText: two\nlines\nAnswer: bug\n\nText: how?\nAnswer: question"
    many = Asked.of({"seed": "cases", "input": "body", "output": ["urgency", "kind"]})
    assert 'Answer: {"urgency": "1", "kind": "bug"}' in read_examples(project, ["seeds", "more"], many).text
    assert TokenText(f"select {examples_sql(found)} as x").tokens[1].text == found.text

    prompt = Prompt("p", "Sort {body}.")
    assert prompt_sql(prompt, {"body": "b"}, found).count("Answer: bug") == 1
    assert prompt_sql(Prompt("p", "Sort."), {}, found).startswith("'Sort.\\n\\nExamples:\\n\\nText: two")
    between = prompt_sql(Prompt("p", "{examples}\nSort {body}."), {"body": "b"}, Examples("s", "like {body}", 1))
    assert between.startswith("concat('like {body}\\nSort ' /* ai_prompt p - ")
    assert seen(prompt, found).keys() == {"ai_prompt p", "ai_examples cases"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("cases", "given like"),
        ({"seed": "cases", "input": "body"}, "say seed, input and output"),
        ({"seed": "cases", "inputs": "body"}, "did you mean 'input'"),
        ({"seed": "../cases", "input": "body", "output": "kind"}, "without a path"),
        ({"seed": "case", "input": "body", "output": "kind"}, "case.csv is not under seeds"),
        ({"seed": "cases", "input": "text", "output": "kind"}, "no column 'text'"),
        ({"seed": "cases", "input": "body", "output": "kid"}, "did you mean 'kind'"),
        ({"seed": "empty", "input": "body", "output": "kind"}, "no rows"),
        ({"seed": "twice", "input": "body", "output": "kind"}, "the column 'kind' 2 times: rename all but one"),
        ({"seed": "holes", "input": "body", "output": "kind"}, "row 3 has no kind"),
    ],
)
def test_examples_that_cannot_be_had(project: Path, asked: Any, said: str) -> None:
    (project / "seeds" / "empty.csv").write_text("body,kind\n")
    (project / "seeds" / "twice.csv").write_text("body,kind,kind\na,b,c\n")
    (project / "seeds" / "holes.csv").write_text("body,kind\na,b\nc,\n")
    with pytest.raises(RefusedError, match=said):
        read_examples(project, ["seeds"], Asked.of(asked))
