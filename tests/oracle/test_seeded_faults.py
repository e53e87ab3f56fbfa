"""The oracle notices faults: each rule of the engine is broken in turn, and a wrong table must come of it."""

from __future__ import annotations

from random import Random

import pytest
from engine import Database
from grammar import Drawn
from histories import draw_history, draw_menu
from pairs import Tally, live
from search import STEPS, Seen, model_of
from seeded_faults import FAULTS, Fault

pytestmark = pytest.mark.unit

HISTORIES = 100
QUICK = [fault for fault in FAULTS if fault.quick]


def wrong_tables(fault: Fault | None, query: str, key: str) -> bool:
    """Whether a history leaves another table than the query gives."""
    drawn = Drawn(query, tuple(key.split(", ")))
    model = model_of(Database(), drawn, Seen())
    assert model is not None, query
    for number in range(HISTORIES):
        menu = draw_menu(Random(number // 4), model.tables, model.clocked)
        if live(model, draw_history(Random(number), model.tables, menu, STEPS), Tally()) is not None:
            return True
    return False


def check(fault: Fault) -> None:
    with fault.planted():
        assert wrong_tables(fault, fault.query, fault.key), f"nobody noticed that {fault.what}"


@pytest.mark.parametrize("fault", QUICK, ids=lambda f: f.what)
def test_a_fault_is_noticed(fault: Fault) -> None:
    check(fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [f for f in FAULTS if not f.quick], ids=lambda f: f.what)
def test_every_fault_is_noticed(fault: Fault) -> None:
    check(fault)
