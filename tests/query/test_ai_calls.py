"""AI calls planned out of a SELECT: types, refusals with places, rounds, and which rows are asked about."""

from __future__ import annotations

import pytest

from spark_mv.query.ai_calls.ai_plan import AiFunction, AiIdentity, AiPlan, plan_ai

ME = AiIdentity(model="m", model_version="7")


def plan(sql: str, **more: object) -> AiPlan:
    return plan_ai(sql, results_table="`s`.`ai_results`", identity=ME, **more)  # type: ignore[arg-type]


TYPES = [
    ("ai_query('m', t)", "STRING"),
    ("ai_query('text-embedding-3-small', t)", "ARRAY<FLOAT>"),
    ("ai_query('m', t, returnType => 'INT')", "INT"),
    ("ai_query(endpoint => 'm', request => named_struct('a', t))", "STRING"),
    ("ai_query('m', t, responseFormat => 'STRUCT<a: INT, b: ARRAY<STRING>>')", "STRUCT<a: INT, b: ARRAY<STRING>>"),
    ("ai_query('m', t, 'INT', false)", "STRUCT<result: INT, errorMessage: STRING, errorStatus: STRING>"),
    ("ai_classify(t, ARRAY('a', 'b'))", "STRING"),
    ('ai_classify(t, \'["a", "b"]\')', "VARIANT"),
    ("ai_classify(t, '{\"a\": \"first\"}', MAP('multilabel', 'true'))", "VARIANT"),
    ("ai_extract(t, ARRAY('who', 'the when'))", "STRUCT<`who`: STRING, `the when`: STRING>"),
    ('ai_extract(t, \'{"x": {"type": "integer"}}\')', "VARIANT"),
    ("ai_gen(t)", "STRING"),
    ("ai_summarize(t)", "STRING"),
    ("ai_summarize(t, 20)", "STRING"),
    ("ai_translate(t, 'de')", "STRING"),
    ("ai_similarity(t, u)", "FLOAT"),
    ("AI_Analyze_Sentiment(t)", "STRING"),
    ("ai_mask(t, ARRAY('person'))", "STRING"),
    ("ai_fix_grammar(t)", "STRING"),
    ("ai_filter(t, 'asks for money back')", "BOOLEAN"),
    ("ai_query('m', t, files => u)", "STRING"),
    ("ai_agg(t, 'what is asked for')", "STRING"),
    ("ai_summarize_agg(DISTINCT t, 20)", "STRING"),
    ("ai_embed(t)", "ARRAY<FLOAT>"),
    ("ai_embed(t, endpoint => 'bge')", "ARRAY<FLOAT>"),
]


@pytest.mark.parametrize(("call", "kind"), TYPES)
def test_result_types(call: str, kind: str) -> None:
    found = plan(f"SELECT {call} AS x FROM r")
    assert found.errors == ()
    assert [c.result_type for c in found.calls] == [kind]


WRONG = [
    ("ai_classify(t, ARRAY('a'))", "takes 2 to 20 labels, 1 given"),
    ("ai_classify(t, ARRAY('a', 'a'))", "the same label twice"),
    ("ai_classify(t, labels)", "needs its labels written out"),
    ("ai_classify(t, '[1')", "not JSON"),
    ("ai_classify(t)", "lacks labels"),
    ("ai_query('all-minilm', t, files => u)", "takes no files for an embedding model"),
    ("ai_agg(t, u)", "needs what to do with the group's values written out"),
    ("ai_gen(t, u)", "at most 1 arguments"),
    ("ai_gen(prompt => t, prompt => u)", "twice"),
    ("ai_gen(text => t)", "has no argument 'text'"),
    ("ai_query(endpoint_column, t)", "needs the endpoint's name as a string"),
    ("ai_query('m', t, returnType => 'STRNG<')", "no Spark type"),
    ("ai_query('m', t, failOnError => 1)", "true or false"),
    ("ai_filter(t, u)", "needs what is to be true of the content written out as condition"),
    ("ai_filter(t)", "lacks condition"),
    ("ai_embed(t, u)", "needs the embedding model's name as a string"),
    ("ai_summarize(t, -1)", "0 (no limit) or more"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_wrong_arguments_name_place_and_cure(call: str, message: str) -> None:
    sql = f"SELECT id,\n  {call} AS x FROM r"
    found = plan(sql)
    assert found.sql == sql
    assert found.rounds == ()
    (error,) = found.errors
    assert (error.code, error.line, error.column) == ("AI_WRONG_ARGUMENTS", 2, 3)
    assert message in error.message


PLACES = [
    ("SELECT transform(a, x -> ai_gen(x)) AS y FROM r", "lambda"),
    (
        "WITH RECURSIVE c AS (SELECT ai_gen('x') AS t UNION ALL SELECT ai_gen(t) FROM c) SELECT * FROM c",
        "recursive CTE",
    ),
    ("SELECT 1 FROM a LEFT JOIN b ON ai_similarity(a.x, b.y) > 0.5", "outer join over both sides"),
    ("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE ai_gen(o.t) = i.t)", "from outside its subquery"),
    ("SELECT ai_gen(lag(t) OVER (ORDER BY id)) AS k, * FROM r", "put it last"),
    ("SELECT id, ai_gen(to_json(struct(*))) AS k FROM r", "all columns"),
    ("SELECT id, ai_gen(to_json(struct(id, r.*))) AS k FROM r", "all columns"),
    ("SELECT r.*, hash(*) AS h FROM r ORDER BY ai_gen(t)", "beside a function of all columns"),
    ("SELECT id FROM r WHERE ai_gen((SELECT max(t) FROM i WHERE i.id = r.id)) = 'a'", "about a correlated subquery"),
    ("SELECT (SELECT max(ai_gen(i.t)) FROM i JOIN j ON j.k = r.k) AS m FROM r", "whose joins name the row around it"),
    ("SELECT t, ai_gen(t) AS k, count(*) FROM r GROUP BY t HAVING k = 'a'", "used in HAVING of its own SELECT"),
    ("SELECT id FROM r LATERAL VIEW explode(a) x AS e WHERE ai_gen(ai_gen(e)) = 'a'", "a column of a LATERAL VIEW"),
    (
        "SELECT ai_gen(t) AS k FROM r GROUP BY ai_gen(t) HAVING ai_gen( t ) <> 'a'",
        "a key of GROUP BY and stands in HAVING",
    ),
    ("SELECT ai_gen(t) AS k FROM r GROUP BY 1 HAVING ai_gen(t) <> 'a'", "a key of GROUP BY and stands in HAVING"),
    ("SELECT ai_gen(t) AS k FROM r GROUP BY ALL HAVING ai_gen(t) <> 'a'", "a key of GROUP BY and stands in HAVING"),
    ("SELECT t, count(*) FROM r GROUP BY t HAVING ai_gen(ai_gen(t)) <> 'a'", "the arguments of another call"),
    ("SELECT t, count(*) FROM r GROUP BY t HAVING ai_gen(ai_gen(max(x))) <> 'a'", "the arguments of another call"),
    (
        "WITH c AS (SELECT ai_gen(t) AS k FROM r) SELECT k FROM c GROUP BY k HAVING ai_gen(k) = 'a'",
        "over keys that are",
    ),
]


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT id FROM s.t WHERE id < (SELECT max(ai_gen(b.t)) FROM s.t b WHERE b.k = t.k AND b.x > 1)", "(b.x > 1)"),
        ("SELECT id FROM t a WHERE id < (SELECT max(ai_gen(t.t)) FROM t WHERE t.k = a.k AND t.x > 1)", "(t.x > 1)"),
        ("SELECT ai_gen(s.t.b) AS k FROM s.t WHERE s.t.x > 1 AND t.y > 2", "(s.t.x > 1) AND (t.y > 2)"),
        ("SELECT ai_gen(x) AS k FROM (t JOIN u USING (i)) LATERAL VIEW explode(l) e AS v WHERE e.v > 1 AND u.y > 1", "(e.v > 1) AND (u.y > 1)"),
    ],
)  # fmt: skip
def test_conditions_on_the_row_around_are_not_asked(sql: str, asked: str) -> None:
    found = plan(sql)
    assert not found.errors
    assert f"WHERE {asked})" in found.rounds[0][0].request_sql


@pytest.mark.parametrize(
    ("inner", "asked"),
    [
        ("SELECT max(ai_gen(txt)) FROM r WHERE k = pid AND stars > 1", "(stars > 1)"),
        ("SELECT max(ai_gen(txt)) FROM r AS x JOIN s USING (k) WHERE k = pid AND more > 1", "(more > 1)"),
        (
            "SELECT max(ai_gen(txt)) FROM r WHERE k = id AND stars > 1",
            "(k = id) AND (stars > 1)",
        ),  # a column of both is its own
        ("SELECT max(ai_gen(txt)) FROM r, LATERAL VIEW explode(l) e AS pid WHERE k = pid", "(k = pid)"),
        ("SELECT max(ai_gen(txt)) FROM (SELECT * FROM q) WHERE k = pid", "(k = pid)"),  # whose columns are not known
        ("WITH r AS (SELECT * FROM q) SELECT max(ai_gen(txt)) FROM r WHERE k = pid", "(k = pid)"),
        ("WITH r(k, txt) AS (SELECT * FROM r) SELECT max(ai_gen(txt)) FROM r WHERE k = pid", "(k = pid)"),
        ("SELECT max(ai_gen(txt)) FROM (VALUES (1, 'a', 2)) x(k, txt, pid) WHERE k = pid", "(k = pid)"),
        ("SELECT max(ai_gen(txt)) FROM (SELECT k, txt, stars FROM r) WHERE k = pid AND stars > 1", "(stars > 1)"),
        ("SELECT max(ai_gen(txt)) FROM (SELECT *, 1 AS pid FROM r) WHERE k = pid", "(k = pid)"),
        (
            "WITH r AS (SELECT k, txt, stars FROM r) SELECT max(ai_gen(txt)) FROM r WHERE k = pid AND stars > 1",
            "(stars > 1)",
        ),
        (
            "WITH q AS (SELECT * FROM r) SELECT max(ai_gen(txt)) FROM (SELECT q.* FROM q) x JOIN s ON x.k = s.k WHERE x.k = pid AND more > 1",
            "(more > 1)",
        ),
    ],
)
def test_columns_of_the_row_around(inner: str, asked: str) -> None:
    """By their tables' columns, where these are known."""
    schemas = {
        "p": {"pid": "int", "id": "int"},
        "r": {"k": "int", "id": "int", "txt": "string", "stars": "int", "l": "array<int>"},
        "s": {"k": "int", "more": "int"},
    }
    inner = inner.replace(", LATERAL VIEW", " LATERAL VIEW")
    found = plan(f"SELECT pid, ({inner}) AS m FROM p", schemas=schemas)
    assert not found.errors
    assert f"WHERE {asked})" in found.rounds[0][0].request_sql


def test_an_argument_of_the_row_around() -> None:
    schemas = {"p": {"pid": "int", "name": "string"}, "r": {"k": "int"}}
    (error,) = plan("SELECT (SELECT max(ai_gen(name)) FROM r WHERE k = pid) AS m FROM p", schemas=schemas).errors
    assert "from outside its subquery" in error.message


@pytest.mark.parametrize("sql", ["FROM r |> SELECT ai_gen(t) AS k", "SELECT * FROM (FROM r |> SELECT ai_gen(t) AS k)"])
def test_pipes_are_refused_with_what_to_write(sql: str) -> None:
    (error,) = plan(sql).errors
    assert error.code == "AI_SQL_NOT_UNDERSTOOD" and "begin with SELECT" in error.message


@pytest.mark.parametrize(("sql", "message"), PLACES)
def test_unsupported_places_are_refused(sql: str, message: str) -> None:
    found = plan(sql)
    assert {e.code for e in found.errors} == {"AI_UNSUPPORTED_PLACE"}
    assert message in found.errors[0].message
    assert found.sql == sql


def test_sql_without_calls_stays_as_it_is() -> None:
    for sql in (
        "SELECT 'ai_gen(x)' -- ai_gen(y)\nFROM r",
        "SELECT ai_gen FROM r",
        "SELECT x.ai_gen(1) FROM r",
        "FROM r",
        "",
    ):
        assert plan(sql) == AiPlan(sql)


def test_text_around_calls_stays_verbatim() -> None:
    sql = "select /*+ broadcast(r) */  id , -- the key\n   ai_gen( t )  as  `x y`  from r\n where id > 1 -- end"
    rewritten = plan(sql).sql
    assert rewritten.startswith("select /*+ broadcast(r) */  id , -- the key\n   (SELECT ")
    assert rewritten.endswith(")  as  `x y`  from r\n where id > 1 -- end")


def test_inner_calls_are_answered_first() -> None:
    found = plan(
        "SELECT ai_translate(ai_summarize(t), 'de') AS x, ai_gen(u) AS y FROM r WHERE ai_analyze_sentiment(t) = 'mixed'"
    )
    assert [[c.function for c in r] for r in found.rounds] == [
        ["ai_analyze_sentiment"],
        ["ai_summarize", "ai_gen"],
        ["ai_translate"],
    ]


def test_only_rows_that_can_need_an_answer_are_asked_about() -> None:
    found = plan("SELECT ai_gen(t) AS x FROM r WHERE day > '2026-01-01' AND ai_gen(u) = 'a' AND (b OR c)")
    filter_call, select_call = found.calls
    assert filter_call.request_sql.count("WHERE (day > '2026-01-01') AND ((b OR c))") == 1
    assert "`s`.`ai_results`" not in filter_call.request_sql
    assert "`s`.`ai_results`" in select_call.request_sql


def test_filters_outside_the_cte_hold_back_requests() -> None:
    found = plan(
        "WITH c AS (SELECT id, ai_gen(t) AS k FROM r), d AS (SELECT * FROM c) SELECT k FROM d WHERE id > 5 AND k <> 'x'"
    )
    (call,) = found.calls
    assert "WHERE (id > 5)" in call.request_sql
    assert "k <> 'x'" not in call.request_sql


def test_calls_that_filter_each_other_do_not_wait_in_a_circle() -> None:
    found = plan(
        "WITH c AS (SELECT ai_gen(t) AS a, ai_gen(u) AS b FROM r) SELECT * FROM c WHERE a = 'x' AND b = 'y' AND ai_gen(a) = 'z'"
    )
    assert found.errors == ()
    assert [len(r) for r in found.rounds] == [2, 1]


def test_star_gains_no_column() -> None:
    rewritten = plan("SELECT *, 1 AS one FROM r ORDER BY ai_gen(t)").sql
    assert "* EXCEPT (__mv_a1), 1 AS one" in rewritten


def test_a_group_key_that_is_selected_stays_one_expression() -> None:
    rewritten = plan("SELECT ai_gen(t) AS k, count(*) AS n FROM r GROUP BY AI_GEN( t )").sql
    assert "LATERAL" not in rewritten
    assert "LATERAL" in plan("SELECT count(*) AS n FROM r GROUP BY ai_gen(t)").sql


def test_positions_are_those_of_the_users_text() -> None:
    (call,) = plan("SELECT u,\n  count(*) AS n,\n    ai_gen(max(t)) AS x FROM r GROUP BY u").calls
    assert (call.line, call.column) == (3, 5)


def test_the_key_covers_model_version_parameters_and_nothing_else() -> None:
    sql = "SELECT ai_gen(t) AS x, other FROM r"

    def hashes(identity: AiIdentity, text: str = sql) -> str:
        return plan_ai(text, results_table="x", identity=identity).calls[0].identity_hash

    assert hashes(ME) == hashes(AiIdentity("m", "7"), "SELECT 1, ai_gen(z) AS y FROM q WHERE a")
    different = {
        hashes(i)
        for i in (
            ME,
            AiIdentity("m"),
            AiIdentity("n", "7"),
            AiIdentity("m", "8"),
            AiIdentity("m", "7", {"temperature": 0}),
        )
    }
    assert len(different) == 5


def test_declared_functions() -> None:
    sql = "SELECT urgency(title, body) AS u FROM r"
    functions = [AiFunction("urgency", "INT", ("title", "body"), "How urgent is {title}: {body}?", "small", "2")]
    (call,) = plan(sql, functions=functions).calls
    assert (call.function, call.result_type, call.model, call.model_version) == ("urgency", "INT", "small", "2")
    assert "takes 2 argument(s)" in plan("SELECT urgency(x) FROM r", functions=functions).errors[0].message
    assert plan(sql) == AiPlan(sql)


@pytest.mark.parametrize(("number", "plain"), [(1, False), (8, False), (9, True), (40, True)])
def test_look_ups_of_many_calls_are_plain_joins(number: int, plain: bool) -> None:
    """Spark puts a nullif off, and then plans the query before a look-up again inside it."""
    calls = ", ".join(f"ai_classify(t, ARRAY('a{k}', 'b{k}')) AS c{k}" for k in range(number))
    found = plan(f"SELECT id, {calls} FROM r", schemas={"r": {"id": "int", "t": "string"}})
    assert len(found.calls) == number
    assert ("nullif" not in found.sql) is plain


@pytest.mark.parametrize(
    ("argument", "by_key"),
    [
        ("t", False),
        ("concat(q.t, '!')", False),
        ("cast(n as string)", False),
        ("concat('balance ', d)", True),
        ("folded", True),
        ("to_json(m)", True),
        ("st.name", True),
        ("strange", True),
        ("upper(t)", False),
        ("rounded", True),
        ("text", False),
    ],
)
def test_equal_columns_that_are_not_the_same_are_looked_up_by_the_key(argument: str, by_key: bool) -> None:
    """Spark looks an answer up once for all rows that are equal in the columns of a nullif: 0.0 = -0.0, 'a' = 'A' under a collation."""
    columns = {
        "id": "int", "t": "string", "n": "decimal(10,2)", "d": "double", "folded": "string collate UTF8_LCASE", "m": "map<string,int>",
        "st": "struct<name: string, d: double>",
    }  # fmt: skip
    sql = f"with q as (select *, n / 3 as rounded, trim(t) as text from r) SELECT id, ai_gen({argument}) AS x FROM q"
    plain = {name: kind for name, kind in columns.items() if name != "folded"}
    found = plan(sql, schemas={"r": columns if argument == "folded" else plain})
    assert len(found.calls) == 1
    assert ("nullif" not in found.sql) is by_key


def test_functions_hand_on_collations() -> None:
    sql = "with q as (select id, trim(t) as text from r) SELECT id, ai_gen(text) AS x FROM q"
    for kind in ("string", "string collate UTF8_LCASE"):
        assert ("nullif" in plan(sql, schemas={"r": {"id": "int", "t": kind}}).sql) is (kind == "string")
    assert (
        "nullif" not in plan(sql.replace("trim(t)", "trim(t collate UTF8_LCASE)"), schemas={"r": {"t": "string"}}).sql
    )


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("with d as (select ai_gen(s) as g from t), e as (select * from d) select id from t", 0),
        ("with d as (select ai_gen(s) as g from t), e as (select ai_gen(u) as h from t) select h from e", 1),
        ("with d as (select ai_gen(s) as g from t) select id from t where exists (select 1 from d)", 1),
    ],
)
def test_nobody_is_asked_for_a_cte_that_nobody_reads(sql: str, asked: int) -> None:
    found = plan_ai(sql, results_table="r", identity={"model": "m"})
    assert len(found.calls) == asked and all(found.rounds) and "ai_gen(" not in found.sql


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("returnType => 'INTERVAL DAY TO SECOND'", "no answer is read as"),
        ("returnType => 'STRUCT<a: MAP<INT, STRING>>'", "keys of JSON are texts"),
        ("responseFormat => 'STRUCT<a: INT>', returnType => 'INT'", "leave out one of the two"),
        ("responseFormat => 'STRUCT<a: INT>', returnType => 'struct<a:int>'", ""),
        ("returnType => 'MAP<STRING, INT>'", ""),
    ],
)
def test_types_that_no_answer_has(more: str, why: str) -> None:
    errors = plan(f"SELECT ai_query('m', t, {more}) AS a FROM r").errors
    assert (why in errors[0].message) if why else not errors


def test_only_the_same_question_has_earlier_answers() -> None:
    """Beside another model or version: the endpoint, the parameters and the type of the answer that the SQL itself names are the question's."""
    texts = (
        "ai_gen(t)", "ai_summarize(t)", "ai_query('m', t)", "ai_query('n', t)", "ai_query('m', t, returnType => 'INT')",
        "ai_query('m', t, returnType => 'STRUCT<a: INT>')", "ai_query('m', t, modelParameters => named_struct('temperature', 0.0))",
        "ai_query('m', t, responseFormat => 'STRUCT<a: INT>')",
    )  # fmt: skip
    calls = [plan(f"SELECT {text} AS a FROM r").calls[0] for text in texts]
    assert len({call.lineage for call in calls}) == len(texts)
    assert [call.earlier == "true" for call in calls] == [True, True, *[False] * 6]
    other = AiIdentity("other", "9", {"temperature": 0}, before={calls[2].lineage: ("seen",)})
    (now,) = plan_ai("SELECT ai_query('m', t) AS a FROM r", results_table="r", identity=other).calls
    assert now.lineage == calls[2].lineage and now.before == ("seen",) and "'seen'" in now.earlier


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("SELECT ai_gen(concat('n', ai_gen(t))) AS x FROM r", "LATERAL"),
        ("SELECT ai_gen(concat('n', ai_gen(concat('i', d)))) AS x FROM r", "LEFT JOIN"),
        ("SELECT k FROM r LATERAL VIEW explode(split(ai_gen(concat('lv', d)), ',')) AS k", "LEFT JOIN"),
        ("SELECT k FROM r LATERAL VIEW explode(split(ai_gen(t), ',')) AS k", "LATERAL"),
        ("SELECT ai_gen(concat('n', ai_gen(concat('i', d)))) AS x FROM r, s", "write JOIN"),
        ("SELECT ai_gen(concat('n', ai_gen(concat('i', t)))) AS x FROM r, s", "LATERAL"),
    ],
)
def test_answers_beside_from_are_joined_by_the_key_where_equal_columns_are_not_the_same(text: str, how: str) -> None:
    found = plan(text, schemas={"r": {"t": "string", "d": "double"}, "s": {"z": "int"}})
    if how == "write JOIN":
        assert how in found.errors[0].message
    else:
        assert not found.errors and (", LATERAL (" in found.sql) is (how == "LATERAL"), found.sql
        assert ("LEFT JOIN (SELECT __mv_k" in found.sql) is (how == "LEFT JOIN")
