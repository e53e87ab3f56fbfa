"""The oracle notices faults: each rule of the engine is broken in turn, and it must show."""

from __future__ import annotations

import pytest
from fault import Fault
from noticing import noticed
from seeded_faults import FAULTS

pytestmark = pytest.mark.unit

QUICK = [fault for fault in FAULTS if fault.quick]


def check(fault: Fault) -> None:
    with fault.planted():
        assert noticed(fault), f"nobody noticed that {fault.what}"


@pytest.mark.parametrize("fault", QUICK, ids=lambda f: f.what)
def test_a_fault_is_noticed(fault: Fault) -> None:
    check(fault)


@pytest.mark.parametrize("fault", [f for f in FAULTS if not f.quick], ids=lambda f: f.what)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    """What it breaks is still there and still called as it was. Whether the fault shows takes longer: the slow tests look."""
    with fault.planted():
        noticed(fault, histories=1)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [f for f in FAULTS if not f.quick], ids=lambda f: f.what)
def test_every_fault_is_noticed(fault: Fault) -> None:
    check(fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.what)
def test_without_the_fault_nothing_is_noticed(fault: Fault) -> None:
    assert not noticed(fault, histories=10)
