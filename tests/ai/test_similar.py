"""Which text leads whom, without a model: vectors are written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spark_mv.ai.providers.local import LocalProvider
from spark_mv.ai.similar import LEADERS, Leaders, Placed, Text, comparable
from spark_mv.query.ai_calls.ai_plan import plan_ai
from spark_mv.query.ai_calls.keys import AiIdentity

ANGLES = {"late": 0.0, "late!": 0.1, "later": 0.25, "broken": 1.5, "late 7": 0.0, "late 8": 0.0, "late 7!": 0.1}


def embed(texts: Sequence[str]) -> list[Any]:
    found = [ANGLES.get(text) for text in texts]
    return [None if a is None else np.array([np.cos(a), np.sin(a)], dtype=np.float32) for a in found]


def placed(leaders: Leaders, *texts: str, kind: str = "k") -> dict[str, str]:
    return {one.text.text: one.leader for one in leaders.place([Text(f"#{t}", kind, t) for t in texts], embed)}


def test_the_first_leads_and_the_nearest_counts() -> None:
    leaders = Leaders(0.98)
    assert placed(leaders, "late", "broken", "late!", "later") == {
        "late": "#late", "broken": "#broken", "late!": "#late", "later": "#later",
    }  # fmt: skip
    assert placed(leaders, "late!") == {"late!": "#late"}
    assert placed(leaders, "late!", kind="of another call") == {"late!": "#late!"}


def test_other_numbers_are_another_question() -> None:
    assert placed(Leaders(0.9), "late 7", "late 8", "late 7!") == {
        "late 7": "#late 7", "late 8": "#late 8", "late 7!": "#late 7",
    }  # fmt: skip


def test_a_text_without_a_vector_stands_alone() -> None:
    (one,) = Leaders(0.9).place([Text("#", "k", "unknown")], embed)
    assert one == Placed(Text("#", "k", "unknown"), "#")


def test_more_leaders_than_memory_holds_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_mv.ai.similar.LEADERS", 1)
    assert LEADERS > 1
    first, second, third = Leaders(0.98).place([Text(f"#{t}", "k", t) for t in ("late", "broken", "late!")], embed)
    assert first.vector is not None and second.vector is None and (second.leader, third.leader) == ("#broken", "#late")


def test_answers_made_of_the_text_are_never_shared() -> None:
    sql = (
        "SELECT ai_classify(t, array('a', 'b')), ai_extract(t, array('name')), ai_mask(t, array('name')), ai_summarize(t), "
        "ai_similarity(t, u), ai_similarity(t, 'x'), ai_gen(t) FROM x"
    )
    plan = plan_ai(sql, results_table="r", identity=AiIdentity("m"))
    assert [call.function for call in plan.calls if comparable(call)] == ["ai_classify", "ai_gen"]


def test_texts_that_the_model_reads_whole() -> None:
    local = LocalProvider(None)
    same, other, long, digits = local.vectors(["My parcel came late.", "My parcel came late.", "word " * 300, "4711"])
    assert long is None and digits is None
    assert float(same @ other) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It was -5 degrees.", "It was 5 degrees."),
        ("Send invoice 1.5 again", "Send invoice 1 5 again"),
        ("Add ½ cup of sugar", "Add ¼ cup of sugar"),
        ("Refund order A-7 for me", "Refund order B-7 for me"),
        ("article X² please", "article X³ please"),
        ("10/12 in spelling", "10-12 in spelling"),
        ("dose .5 mg", "dose 5 mg"),
        ("a temperature >5 C", "a temperature <5 C"),
        ("a 5' board", 'a 5" board'),
    ],
)
def test_words_of_other_numbers(one: str, other: str) -> None:
    assert Text("a", "k", one).numbers != Text("b", "k", other).numbers


def test_what_stands_beside_a_number_is_none_of_it() -> None:
    assert Text("a", "k", "Order 7, please!").numbers == Text("b", "k", "please: order (7)").numbers
