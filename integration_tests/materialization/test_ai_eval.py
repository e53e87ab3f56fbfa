"""What AI columns cost before a run (`spark-mv cost`), and how good they are (`ai_eval`: labels, two models on the same rows, a judge, the
tables; nothing asked twice)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_mv.cli import main

LABELS = "id,body,kind\n" + "".join(f"{n},text {n},{'good' if n % 2 else 'bad'}\n" for n in range(20))
RIGHT = {f"text {n}": "good" if n % 2 else "bad" for n in range(20)}
WORSE = {**RIGHT, "text 1": "bad", "text 3": "bad", "text 4": "good"}
CALL = "ai_classify(body, array('good', 'bad'))"
MODEL = (
    "{{ config(materialized='nondeterministic_mv', unique_key='id', ai={'max_ai_calls_per_month': 15, 'max_ai_tokens_per_day': 100000}) }}\n"
    f"select id, {CALL} as judgement from {{{{ ref('labels') }}}}"
)


@pytest.mark.slow
class TestEvaluation:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"labels.csv": LABELS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"mine.sql": MODEL}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        ai = {"provider": "scripted", "model": "large", "price_per_1k_input_tokens": 1.0, "options": {"answers": RIGHT}}
        return {**dbt_profile_target, "ai": ai}

    def test_what_the_next_run_costs(self, sql: Any, project: Any) -> None:
        from dbt.tests.util import run_dbt

        def cost(*more: str) -> Any:
            where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
            return CliRunner().invoke(main, ["cost", *where, *more])

        run_dbt(["seed"])
        before = cost().output
        assert "mine: 20 AI calls without an answer, 0 with one" in before
        assert "judgement  ai_classify (line 2)  large  20" in before
        assert "spent of the project's day: 0 of 100,000 tokens" in before
        assert "max_ai_calls_per_month is used up" in before

        run_dbt(["run"])
        (after,) = json.loads(cost("--format", "json").output).values()
        assert (after["total"]["calls"], after["answered"]) == (5, 15)
        assert (after["spent"]["month"]["calls"], after["next_run"]["calls"]) == (15, 0)
        sql("delete from {schema}.ai_results")  # the evaluation begins with nothing paid

    def test_labels_variants_and_a_judge(self, sql: Any, operation: Any, project: Any) -> None:
        from dbt.tests.util import run_dbt

        run_dbt(["seed"])
        asked = {"data": "labels", "key": "id", "call": CALL, "label": "kind"}
        variants = {"small": {"model": "small", "options": {"answers": WORSE}}, "large": {}}
        sql("insert into {schema}.labels values (99, 'without a label', null)")
        said = operation("ai_eval", {**asked, "variants": variants})
        (paid,) = sql("select count(*), count(distinct arguments_hash) from {schema}.ai_results")
        assert tuple(paid) == (40, 20)
        sql("delete from {schema}.labels where id = 99")
        assert "small: 17 of 20 as kind, 85.0% (95 % interval 64.0% to 94.8%)" in said
        assert "large: 20 of 20 as kind, 100.0%" in said
        assert "small and large: same answer for 85.0% of 20 rows" in said
        columns = "variant, model, model_version, n, correct, accuracy, inputs, unanswered, requests, asked_now, cost > 0, seconds > 0"
        assert sql(f"select {columns} from {{schema}}.ai_evaluations order by correct") == [
            ("small", "small", "small", 20, 17, 0.85, 20, 0, 20, 20, True, True),
            ("large", "large", "large", 20, 20, 1.0, 20, 0, 20, 20, True, True),
        ]
        confusion = (
            "select expected, answer, n from {schema}.ai_evaluations_confusion where variant = 'small' order by 1, 2"
        )
        assert sql(confusion) == [("bad", "bad", 9), ("bad", "good", 1), ("good", "bad", 2), ("good", "good", 8)]
        compared = "select first, second, agreed, only_first_correct, only_second_correct, p_value from {schema}.ai_evaluations_agreement"
        assert sql(compared) == [("small", "large", 17, 0, 3, 0.25)]

        page = project.project_root / Path("report.html")
        where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        assert CliRunner().invoke(main, ["report", "-o", str(page), *where]).exit_code == 0
        shown = page.read_text(encoding="utf-8")
        assert "Quality of AI answers" in shown and "64.0% to 94.8%" in shown
        assert "<dt>good, answered bad</dt><dd>2</dd>" in shown
        assert "the same answer for 85.0% of the rows; 0 only this one has right, 3 only the other (p = 0.250)" in shown

        # asked once; a judge in the place of labels, in a table of another name
        judged = {"data": "labels", "key": "id", "call": CALL, "judge": "large", "into": "judged", "variants": variants}
        assert "small: 17 of 20 as large" in operation("ai_eval", judged)
        assert sql("select variant, asked_now, seconds, cost > 0 from {schema}.judged order by correct") == [
            ("small", 0, None, True),
            ("large", 0, None, True),
        ]

        # inputs without an answer are said, and count as wrong
        few = operation("ai_eval", {**asked, "variants": {"new": {"model": "new", "max_ai_calls": 5}}})
        assert "new: 5 of 20 as kind" in few
        assert "15 of 20 inputs have no answer" in few
        for wrong, why in (
            ({"key": "kind"}, "a key of its own"),
            ({"call": "upper(body)"}, "no AI function"),
            ({"label": None}, "either `label`"),
            ({"label": "nosuch"}, "ai_eval: data "),
            ({"data": "no_such_table"}, "cannot be read with key id and label kind"),
        ):
            assert why in operation("ai_eval", {**asked, **wrong}, expect_pass=False)
