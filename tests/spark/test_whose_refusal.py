"""An operation over all models of a project says which of them it could not read, and why that one matters."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.run import ai_upkeep


@pytest.mark.parametrize(
    "text", ["the record in a commit has what is not known", "model b: the record has what is not known"]
)
def test_the_model_that_cannot_be_read_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(adapter: Any, invocation: Any, profile: Any) -> Any:
        if invocation.name == "b":
            raise RefusedError("NEWER_FORMAT", text)
        return nullcontext(SimpleNamespace(ai=None))

    monkeypatch.setattr(ai_upkeep, "looked", looked)
    monkeypatch.setattr(ai_upkeep, "session_of", lambda *_: nullcontext())
    invocations: Any = [SimpleNamespace(name=name) for name in ("a", "b")]
    for one in invocations:
        one.by_any_strategy = lambda one=one: one
    models = ai_upkeep.Models(None, invocations, {})
    with pytest.raises(RefusedError, match=r"^\[NEWER_FORMAT\] model b: the record") as said:
        list(models.asking())
    assert "Every model of the project is read" in str(said.value) and "Nothing was changed" in str(said.value)
    with pytest.raises(RefusedError) as said:
        list(ai_upkeep.Models(None, invocations[1:], {}).asking())
    assert "Every model" not in str(said.value) and str(said.value).count("model b") == 1
