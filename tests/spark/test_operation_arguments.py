"""Arguments of operations: what is none of the values that are meant counts as none of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_mv.maintenance.errors import RefusedError
from spark_mv.spark.run.operation_arguments import days, flag, model_name, texts

pytestmark = pytest.mark.unit


def test_what_is_meant() -> None:
    assert (days("d", 0), days("d", 0.5), days("d", 36_500)) == (0.0, 0.5, 36_500.0)
    assert (texts("t", None), texts("t", "a"), texts("t", ["a", "b"])) == ([], ["a"], ["a", "b"])
    assert (model_name("tickets"), model_name(2024)) == ("tickets", "2024")


@pytest.mark.parametrize("value", [-1, -0.5, 36_501, float("nan"), float("inf"), "1", None, True, [1]])
def test_days(value: Any) -> None:
    refused(lambda: days("older_than_days", value), "older_than_days")


@pytest.mark.parametrize("value", [7, {"u": "id = 1"}, [None], [["u"]], [""], " ", True])
def test_texts(value: Any) -> None:
    refused(lambda: texts("columns", value), "columns")


@pytest.mark.parametrize("value", [None, "", " ", True, [], ["tickets"], {}])
def test_a_model(value: Any) -> None:
    refused(lambda: model_name(value), "Name one: --args")


@pytest.mark.parametrize("value", ["false", 0, None])
def test_flags(value: Any) -> None:
    refused(lambda: flag("apply", value), "apply")


def refused(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(RefusedError, match=says) as error:
        call()
    assert error.value.code == "OPERATION_ARGUMENT" and "Nothing was changed" in str(error.value)


def test_each_operation_knows_its_own_arguments() -> None:
    """Those in its signature, which Jinja does not tell."""
    macros = Path(__file__).parents[2] / "macros" / "operations"
    found = {}
    for file in macros.glob("*.sql"):
        for name, signature, body in re.findall(
            r"{% macro (\w+)\((.*?)\) -%}(.*?){%- endmacro %}", file.read_text(), re.DOTALL
        ):
            if not name.startswith("mv_"):
                known = re.search(r"mv_no_others\('(\w+)', \[(.*?)\], kwargs\)", body)
                assert known is not None, name
                names = re.findall(r"'(\w+)'", known[2])
                found[name] = (known[1], names) == (name, re.findall(r"(?:^|, )(\w+)(?==|,|$)", signature))
    assert len(found) == 12 and all(found.values()), found
