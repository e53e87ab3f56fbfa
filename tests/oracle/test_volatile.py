"""Draws and AI calls anywhere in generated queries: kept, refused at their place, or without effect on what is no draw."""

from __future__ import annotations

import os

import pytest
from engine import Database
from grammar import draw_query
from pairs import live
from search import Seen, histories_of, model_of
from volatile import Said, calls_left, wrong_verdict

pytestmark = pytest.mark.unit

QUERIES = int(os.environ.get("ORACLE_DRAWS", 40))


def test_verdicts_on_draws_are_what_draws_do() -> None:
    database, said = Database(), Said()
    for seed in range(QUERIES):
        drawn = draw_query(seed, draws=0.3)
        wrong = wrong_verdict(database, drawn, said)
        assert not wrong, f"seed {seed}: {wrong}\n{drawn.sql}\n-- unique_key: {', '.join(drawn.key)}"
    print(said)
    assert said.queries["no draw"] < QUERIES * 0.7
    assert said.untranslated.total() < QUERIES * 0.1


def test_all_ai_calls_are_taken_out() -> None:
    said = Said()
    for seed in range(QUERIES):
        drawn = draw_query(seed, ai=0.5)
        wrong = calls_left(drawn, said)
        assert not wrong, f"seed {seed}: {wrong}\n{drawn.sql}"
    print(said)
    assert said.queries["no AI call"] < QUERIES * 0.8


def test_drawn_columns_are_kept_through_histories() -> None:
    database, seen, kept = Database(), Seen(), 0
    for seed in range(QUERIES // 2):
        drawn = draw_query(seed, draws=0.2)
        model = model_of(database, drawn, seen)
        if model is None or not any(column.kept for column in model.analysis.columns):
            continue
        kept += 1
        for history in histories_of(seed, model, 2):
            wrong = live(model, history, seen.tally)
            assert wrong is None, f"seed {seed}: {wrong}\n{drawn.sql}\n-- unique_key: {', '.join(drawn.key)}\n{history}"
    assert kept
