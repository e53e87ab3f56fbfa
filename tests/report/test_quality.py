"""What the report says of evaluations."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from project_facts import HOSTILE, evaluation, model, project

from spark_mv.report.facts import from_json, to_json
from spark_mv.report.page import report_html
from spark_mv.report.quality import quality

pytestmark = pytest.mark.unit


def test_variants_best_first_with_what_they_had_wrong() -> None:
    large = evaluation("large", 20, accuracy_high=1.0, model_version="large", wrong=(), compared=())
    first, second = quality((evaluation(), large))
    assert (first.variant, first.accuracy, first.best, first.model) == ("large", "100.0%", True, "large")
    assert (second.variant, second.accuracy, second.best, second.model) == ("small", "85.0%", False, "small (2)")
    assert (second.cost, second.per_thousand) == ("0.0500", "5.00")
    assert second.wrong == (("good", "bad", "2"), ("bad", "–", "1"))
    assert second.compared[0].startswith("large: the same answer for 85.0% of the rows; 0 only this one has right, 3")


def test_the_page_has_it_and_facts_keep_it() -> None:
    facts = project(model(), evaluations=(evaluation(variant=HOSTILE),))
    page = report_html(facts, charts=False)
    assert "Quality of AI answers" in page and "64.0% to 94.8%" in page
    assert "<script>alert" not in page
    assert from_json(to_json(facts)) == facts
    assert "Quality of AI answers" not in report_html(project(model()), charts=False)
