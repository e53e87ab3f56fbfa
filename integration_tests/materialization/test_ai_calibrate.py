"""`ai_calibrate` through dbt: what it asks, what it finds, and what the cascade with that threshold then does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from integration_tests.ai.endpoint import Behaviour, Endpoint, Seen

CALL = "ai_classify(body, array('good', 'bad', 'neither', 'both'))"
PRICES = {"small": {"input": 1.0, "output": 4.0}, "large": {"input": 10.0, "output": 40.0}}
MODEL = (
    "{{ config(materialized='nondeterministic_mv', unique_key='id', ai={'cascade': var('cascade', [])}) }}\n"
    f"select id, {CALL} as kind from {{{{ target.schema }}}}.src"
)


@pytest.mark.slow
class TestCalibration:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mv.sql": MODEL}

    @pytest.fixture(scope="class")
    def endpoint(self) -> Iterator[Endpoint]:
        with Endpoint(Behaviour(graded=0.3)) as endpoint:
            yield endpoint

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
        ai = {
            "provider": "openai",
            "base_url": endpoint.url,
            "model": "large",
            "api_key": "k",
            "ask_from": "driver",
            "prices": PRICES,
        }
        return {**dbt_profile_target, "ai": ai}

    def test_a_threshold_from_a_target(
        self, project: Any, mv: Any, sql: Any, operation: Any, endpoint: Endpoint
    ) -> None:
        sql("create table {schema}.src using delta as select id, concat('text ', id % 900) as body from range(1000)")
        cascade = [{"model": "small"}, {"model": "large"}]
        about = {
            "data": f"{project.test_schema}.src",
            "call": CALL,
            "agree_with_large": 0.9,
            "ai": {"cascade": cascade},
        }

        few = operation("ai_calibrate", {**about, "ai": {"cascade": cascade, "max_ai_calls": 100}}, expect_pass=False)
        assert "max_ai_calls leaves room for 50 inputs" in few
        assert endpoint.seen.asked.total() == 0

        said = operation("ai_calibrate", about)
        assert dict(endpoint.seen.models) == {"small": 400, "large": 400}  # each input once of each
        assert "400 of 900 inputs of" in said
        assert "does not hold, nothing further was tested" in said
        found = re.search(r'cascade: \[\{model: small, accept_if: "confidence >= ([\d.]+)"\}, \{model: large\}\]', said)
        assert found is not None, said
        threshold = float(found[1])
        assert 0.1 < threshold < 0.35

        # a second look asks nothing; a larger sample what is new
        endpoint.seen = Seen()
        assert found[0] in operation("ai_calibrate", about)
        assert endpoint.seen.asked.total() == 0
        operation("ai_calibrate", {**about, "sample": 500})
        assert dict(endpoint.seen.models) == {"small": 100, "large": 100}

        # the cascade with that threshold, over all inputs: as good as was said, and as expensive
        large = mv.run()
        alone = dict(sql("select body, kind from {schema}.src join {schema}.mv using (id)"))
        cascade[0]["accept_if"] = f"confidence >= {threshold}"
        in_turn = mv.run(cascade=cascade)
        answers = dict(sql("select body, kind from {schema}.src join {schema}.mv using (id)"))
        newest = "(select max_by(identity_hash, called_at) from {schema}.ai_results)"
        ((asked, by_small),) = sql(
            f"select count(*), count_if(model = 'small') from {{schema}}.ai_results where identity_hash = {newest}"
        )
        differ = sum(answers[body] != alone[body] for body in alone)
        assert (large["ai_calls"], in_turn["ai_calls"], asked) == (400, 900, 900)
        assert 1 - differ / by_small >= 0.9
        share = re.search(rf"confidence >= {threshold}  +([\d.]+)%", said)
        assert share is not None
        assert by_small / 900 == pytest.approx(float(share[1]) / 100, abs=0.06)

        # no answer of which the small model knows how sure it is: found out by the first twenty
        endpoint.behaviour, endpoint.seen = Behaviour(silent=1.0), Seen()
        silent = [{"model": "other"}, {"model": "large"}]
        none = operation("ai_calibrate", {**about, "ai": {"cascade": silent}}, expect_pass=False)
        assert "gives no log-probabilities" in none
        assert endpoint.seen.models["other"] == 20
        for wrong, why in (
            ({"call": "ai_gen(body)"}, "gives free text"),
            ({"call": "ai_query('large', body, returnType => 'INT')"}, "which it names"),
            ({"call": "upper(body)"}, "there are 0 AI calls"),
            ({"agree_with_large": 0.99}, "say sample: 1452"),
        ):
            assert why in operation("ai_calibrate", {**about, **wrong}, expect_pass=False)
