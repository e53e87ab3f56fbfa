"""A cancelled connection stops what it does, also what only begins to run, and begins nothing more."""

from __future__ import annotations

import threading

import pytest

from spark_mv.spark.adapter.handle import Cancelled, SessionHandle

pytestmark = pytest.mark.unit


class Session:
    """As Spark's: interrupts only jobs that run, and the statement's job begins a while after the statement."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.begun = threading.Event()
        self.stopped = threading.Event()
        self.statements: list[str] = []

    def sql(self, statement: str) -> None:
        self.statements.append(statement)
        self.asked.acquire()  # planning, until somebody has interrupted in vain
        self.begun.set()
        assert self.stopped.wait(30)
        raise RuntimeError("interrupted")

    def interruptAll(self) -> None:
        if self.begun.is_set():
            self.stopped.set()
        self.asked.release()


def test_a_statement_whose_job_begins_after_the_cancel_is_stopped() -> None:
    session = Session()
    handle = SessionHandle(session)  # type: ignore[arg-type]
    errors: list[BaseException] = []

    def work() -> None:
        try:
            handle.cursor().execute("select 1; select 2")
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not session.statements:
        pass
    handle.cancel()
    thread.join(30)
    assert not thread.is_alive()
    assert [str(error) for error in errors] == ["interrupted"]
    assert session.statements == ["select 1"]
    with pytest.raises(Cancelled):
        handle.execute("select 3")
    assert session.statements == ["select 1"]
