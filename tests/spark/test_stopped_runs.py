"""A run that is stopped before it has a plan: what dbt is told, and what is kept of it."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from spark_mv.maintenance.errors import ConfigError, NotOurs, RefusedError
from spark_mv.spark.adapter.mv_methods import MvMixin
from spark_mv.spark.run.run_history import Done

pytestmark = pytest.mark.unit
INVOCATION = {"model": {"unique_id": "model.desk.m"}, "schema": "`a`", "invocation_id": "i1"}


class Adapter(MvMixin):
    def __init__(self, run_history: bool = True) -> None:
        self.kept: list[tuple[str, Done]] = []
        self.profile = {"run_history": run_history}

    def _mv_profile(self) -> dict[str, Any]:
        return self.profile

    def _run_history(self) -> Any:
        return self

    def add(self, schema: str, done: Done) -> None:
        self.kept.append((schema, done))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RefusedError("PER_ROW_IN_UNIQUE_KEY", "no"), CompilationError),
        (ConfigError("m", ["unique_key is missing"]), CompilationError),
        (NotOurs("NOT_OURS", "a table of another materialization"), DbtRuntimeError),
        (KeyError("what nobody thought of"), KeyError),
    ],
)
def test_it_is_said_and_kept(error: Exception, said: type[Exception]) -> None:
    adapter = Adapter()
    with pytest.raises(said) as raised, adapter._beginning(INVOCATION):
        raise error
    assert (said is DbtRuntimeError) == (type(raised.value) is DbtRuntimeError)  # a CompilationError is one, too
    ((schema, done),) = adapter.kept
    assert (schema, done.model, done.invocation_id, done.status, done.message) == (
        "`a`", "model.desk.m", "i1", "error", str(error)
    )  # fmt: skip
    row = done.values()
    assert (row["strategy"], row["as_of"], row["candidates"], row["estimated_seconds"]) == ("", None, "[]", None)


def test_a_jvm_that_died_is_one_sentence() -> None:
    """Wherever Spark is asked: a closed socket is told by where it comes from, see spark_has_ended."""
    closed = type("Py4JNetworkError", (OSError,), {})("[Errno 111] Connection refused")
    with pytest.raises(DbtDatabaseError, match="Run dbt again"), Adapter()._beginning(INVOCATION):
        raise closed
    run = SimpleNamespace(
        plan=SimpleNamespace(model="m"), execute=lambda *_: (_ for _ in ()).throw(closed),
        started_at=datetime.now(timezone.utc), model_id="model.desk.m", invocation_id="i1", as_of="", schema="`a`",
    )  # fmt: skip
    adapter = Adapter()
    adapter.mv_spark = lambda: None  # type: ignore[attr-defined]
    adapter._remember = lambda *_: None  # type: ignore[assignment]
    with pytest.raises(DbtDatabaseError, match="Run dbt again"):
        adapter.mv_execute(run, SimpleNamespace(kind="look"), None)  # type: ignore[arg-type]


def test_nothing_is_kept_of_one_that_has_a_plan_or_where_the_profile_wants_no_history() -> None:
    adapter, silent = Adapter(), Adapter(run_history=False)
    with adapter._beginning(INVOCATION):
        pass
    with pytest.raises(CompilationError), silent._beginning(INVOCATION):
        raise ValueError("no")
    assert adapter.kept == silent.kept == []
