"""Every AI function by an OpenAI-compatible endpoint, on real Spark: the column's type, and an answer in it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest
from integration_tests.ai.conftest import Bench
from integration_tests.ai.endpoint import Behaviour, Endpoint

from spark_mv.ai.job import run_ai_round

# call, type of its column, what the answer must be like (a condition over it)
FUNCTIONS = [
    ("ai_query('m', t)", "string", "{x} LIKE 'answer to%'"),
    ("ai_query('m', t, returnType => 'INT')", "int", "{x} BETWEEN 0 AND 100"),
    ("ai_query(endpoint => 'other', request => if(t IS NULL, NULL, named_struct('messages', array(named_struct('role', 'user', 'content', t)))))",
     "string", "{x} = 'answer to first'"),
    ("ai_query('m', t, responseFormat => 'STRUCT<a: INT, b: ARRAY<STRING>>')", "struct<a:int,b:array<string>>",
     "{x}.a >= 0 AND size({x}.b) = 1"),
    ("ai_query('m', t, failOnError => false)", "struct<result:string,errorMessage:string,errorStatus:string>",
     "{x}.result IS NOT NULL AND {x}.errorMessage IS NULL"),
    ("ai_query('m', t, files => cast(if(t IS NULL, NULL, x'89504E470D0A1A0A00') AS BINARY))", "string",
     "{x} = 'answer to first data:image/png;base64,iVBORw0KGgoA'"),
    ("ai_query('m', t, files => 'https://x/' || t)", "string", "{x} = 'answer to first https://x/first'"),
    ("ai_query('text-embedding-3-small', t)", "array<float>", "size({x}) = 4 AND {x}[0] BETWEEN 0 AND 1"),
    ("ai_classify(t, ARRAY('a', 'b'))", "string", "{x} IN ('a', 'b')"),
    ("ai_classify(t, '{\"a\": \"the first\", \"b\": \"the second\"}')", "variant",
     "variant_get({x}, '$.response[0]', 'STRING') IN ('a', 'b')"),
    ("ai_extract(t, ARRAY('who', 'the when'))", "struct<who:string,the when:string>", "{x}.`the when` IS NOT NULL"),
    ("ai_extract(t, '{\"n\": {\"type\": \"integer\"}}')", "variant", "variant_get({x}, '$.response.n', 'INT') >= 0"),
    ("ai_gen(t)", "string", "{x} = 'answer to first'"),
    ("ai_summarize(t, 20)", "string", "{x} IS NOT NULL"),
    ("ai_translate(t, 'de')", "string", "{x} IS NOT NULL"),
    ("ai_similarity(t, u)", "float", "{x} BETWEEN 0 AND 1"),
    ("ai_similarity(t, t)", "float", "{x} = 1"),
    ("ai_analyze_sentiment(t)", "string", "{x} IN ('positive', 'negative', 'neutral', 'mixed')"),
    ("ai_mask(t, ARRAY('person'))", "string", "{x} IS NOT NULL"),
    ("ai_fix_grammar(t)", "string", "{x} IS NOT NULL"),
    ("ai_filter(t, 'is the first')", "boolean", "{x} IS NOT NULL"),
    ("ai_embed(t)", "array<float>", "size({x}) = 4 AND {x}[0] BETWEEN 0 AND 1"),
    ("ai_embed(t, 'own-vectors')", "array<float>", "size({x}) = 4"),
    ("urgency(t, u)", "int", "{x} >= 0"),
]  # fmt: skip


def test_every_function_answers_in_its_type(bench: Bench) -> None:
    bench.table("src", "id INT, t STRING, u STRING", "(1, 'first', 'second')", "(2, NULL, 'second')")
    columns = ", ".join(f"{call} AS c{n}" for n, (call, _, _) in enumerate(FUNCTIONS))
    urgency = {"arguments": ["title", "body"], "returns": "INT", "prompt": "How urgent? {title}: {body}"}
    with Endpoint() as endpoint:
        settings = bench.openai(endpoint.url, embedding_model="text-embedding-3-small", functions={"urgency": urgency})
        plan = bench.plan(f"SELECT id, {columns} FROM {{s}}.src", settings)
        outcome = run_ai_round(
            bench.spark, plan.rounds[0], settings=settings, results_table=bench.results, invocation_id="i"
        )
        assert (outcome.errors, outcome.error_example) == (0, "")
        assert outcome.calls == len(FUNCTIONS) - 1  # failOnError makes no other question of it
        # equal texts are no question for an embedding model
        assert sum(endpoint.seen.asked.values()) == len(FUNCTIONS) - 2
    look_at(bench, FUNCTIONS, settings)  # all in one query: planned in seconds, one look-up each


def look_at(bench: Bench, functions: list[tuple[str, str, str]], settings: Any) -> None:
    """Checks types, answers, and NULL for NULL."""
    columns = ", ".join(f"{call} AS c{n}" for n, (call, _, _) in enumerate(functions))
    frame = bench.sql(bench.plan(f"SELECT id, {columns} FROM {{s}}.src", settings).sql)
    assert [f.dataType.simpleString() for f in frame.schema.fields[1:]] == [kind for _, kind, _ in functions]
    checks = [like.replace("{x}", f"c{n}") for n, (_, _, like) in enumerate(functions)]
    nulls = [f"c{n} IS NULL" for n in range(len(functions))]
    found = {row[0]: tuple(row[1:]) for row in frame.selectExpr("id", *checks, *nulls).collect()}
    number = len(functions)
    assert [call for (call, _, _), right in zip(functions, found[1], strict=False) if right is not True] == []
    assert found[2][number:] == (True,) * number


def test_a_file_of_no_byte_is_none(bench: Bench) -> None:
    bench.table("src", "id INT, f BINARY", "(1, x'89504E470D0A1A0A00')", "(2, x'')", "(3, NULL)")
    with Endpoint() as endpoint:
        sql = "SELECT id, ai_query('m', 'What is it?', files => f) AS x FROM {s}.src"
        outcome, rows = bench.run(sql, bench.openai(endpoint.url))
    assert outcome.calls == 1 and {id_: answer is None for id_, answer in rows} == {1: False, 2: True, 3: True}


def test_the_cosine_of_two_vectors(bench: Bench) -> None:
    package = SimpleNamespace()
    file = Path(__file__).parents[2] / "macros" / "functions" / "vector_cosine.sql"
    macros = jinja2.Environment().from_string(file.read_text()).make_module({"context": {}, "dbt": package})
    package.vector_dot, cosine = macros.vector_dot, macros.vector_cosine  # type: ignore[attr-defined]
    pairs = {
        ("array(1f, 0f)", "array(3f, 0f)"): 1.0,
        ("array(1f, 1f)", "array(-1f, 1f)"): 0.0,
        ("array(1, 2)", "array(-1D, -2D)"): -1.0,
        ("array(1f)", "array(1f, 2f)"): None,
        ("array(0f)", "array(1f)"): None,
        ("cast(array() as array<float>)", "cast(array() as array<float>)"): None,
        ("cast(NULL as array<float>)", "array(1f)"): None,
    }
    found = bench.sql("select " + ", ".join(cosine(a, b) for a, b in pairs)).first()
    assert list(found) == [None if wanted is None else pytest.approx(wanted) for wanted in pairs.values()]
    # of answers, too: a call may be the argument of a higher-order function
    bench.table("words", "id BIGINT, t STRING", "(1, 'a')", "(2, 'b')", "(3, NULL)")
    near = cosine("ai_embed(t)", "ai_embed('a')")
    outcome, rows = bench.run(f"SELECT id, {near} AS near FROM {{s}}.words", bench.settings({"embedding_model": "v"}))
    (one, other, none) = (near for _, near in sorted(rows))
    assert (outcome.calls, one, none) == (2, pytest.approx(1.0), None) and -1.0 <= other < 0.9999


def test_an_error_is_a_field_where_the_query_asks_for_one(bench: Bench) -> None:
    bench.table("src", "t STRING", "('first')")
    with Endpoint(Behaviour(refused=1.0)) as endpoint:
        sql = "SELECT ai_query('m', t, failOnError => false) AS x FROM {s}.src"
        outcome, rows = bench.run(sql, bench.openai(endpoint.url))
    assert outcome.errors == 1
    (answer,) = rows[0]
    assert answer.result is None
    assert "HTTP 400" in answer.errorMessage
    assert answer.errorStatus == answer.errorMessage


def test_a_batch_of_embeddings_is_one_request(bench: Bench) -> None:
    bench.sql(f"CREATE TABLE {bench.schema}.src USING delta AS SELECT concat('text ', id) AS t FROM range(200)")
    with Endpoint() as endpoint:
        outcome, rows = bench.run(
            "SELECT t, ai_query('text-embedding-3-small', t) AS e FROM {s}.src", bench.openai(endpoint.url)
        )
        assert (outcome.calls, outcome.ok) == (200, 200)
        assert sum(endpoint.seen.asked.values()) < 10
    vectors: dict[str, Any] = dict(rows)
    assert len(vectors) == 200
    assert all(len(vector) == 4 for vector in vectors.values())
