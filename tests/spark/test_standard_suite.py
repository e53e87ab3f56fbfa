"""Every test class of dbt's standard adapter suite is run in integration_tests/adapter, or left out for a reason."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.unit

OURS = Path(__file__).parents[2] / "integration_tests" / "adapter"

#: regular expressions over `module.Class`, below dbt.tests.adapter, and why the classes are left out
OMITTED = {
    r"aliases.*DifferentDatabases": "dbt-spark has schemas in one catalogue, no databases",
    r"column_types\.test_column_types\.BasePostgresColumnTypes": "PostgreSQL's types; TestColumnTypes has Spark's",
    r"dbt_clone\..*TestPostgresCloneNotPossible": "PostgreSQL's own run of BaseCloneNotPossible",
    r"functions\.test_js_udfs\..*": "Spark has no functions in JavaScript",
    r"functions\.test_udafs\..*": "Spark's SQL functions are no aggregates, and functions in Python live in one session",
    r"functions\.test_udfs\.PythonUDF(Supported|WithPackagesSupported|VolatilitySupport|DefaultArgSupport)": (
        "open-source Spark keeps functions in SQL only; one in Python lives in one session"
    ),
    r"functions\.test_udfs\.CanFindScalarFunctionRelation": (
        "in Spark a function and a table may have one name: dbt's cache of relations has one place for both"
    ),
    r"grants\..*": "open-source Spark has no GRANT",
    r"incremental\.test_incremental_predicates\.TestPredicatesDeleteInsert": "dbt-spark has no delete+insert",
    r"materialized_view\..*": "Spark has materialized views in declarative pipelines only",
    r"utils\.test_current_timestamp\.BaseCurrentTimestampAware": "the suite wants either this or Naive, which fits",
    r"utils\.test_escape_single_quotes\.BaseEscapeSingleQuotesQuote": "the suite wants either this or Backslash",
}


def suite_modules() -> Iterator[ModuleType]:
    import dbt.tests.adapter as package

    root = Path(next(iter(package.__path__)))
    for file in sorted(root.rglob("*.py")):
        yield importlib.import_module(".".join(("dbt.tests.adapter", *file.relative_to(root).with_suffix("").parts)))


def our_classes() -> Iterator[type]:
    for file in sorted(OURS.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"suite_{file.stem}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield from (value for name, value in vars(module).items() if inspect.isclass(value) and name.startswith("Test"))


def methods_of(cls: type) -> dict[str, Any]:
    return {name: getattr(cls, name) for name in dir(cls) if name.startswith("test_") and callable(getattr(cls, name))}


def runs(own: type, suite: type) -> bool:
    """True when `own` runs the suite's tests or has its own words for them: not those of another class of the suite."""
    return suite in own.__mro__ and all(
        getattr(own, name) is test or getattr(own, name).__module__.startswith("suite_")
        for name, test in methods_of(suite).items()
    )


def is_plain(cls: type) -> bool:
    """True for the suite's own run of a class on PostgreSQL, which adds nothing to it."""
    return cls.__name__.startswith("Test") and len(cls.__bases__) == 1 and bool(methods_of(cls.__bases__[0]))


def test_each_class_is_run_or_left_out_for_a_reason() -> None:
    own = list(our_classes())
    wanted = {
        f"{module.__name__.removeprefix('dbt.tests.adapter.')}.{name}": cls
        for module in suite_modules()
        for name, cls in vars(module).items()
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and methods_of(cls)
    }
    missing = [
        name
        for name, cls in wanted.items()
        if not any(runs(mine, cls) for mine in own)
        and not any(re.fullmatch(pattern, name) for pattern in OMITTED)
        and not (
            is_plain(cls) and not [name for name in vars(cls) if not name.startswith("__") and name != "pytestmark"]
        )
    ]
    assert missing == []
    unused = [pattern for pattern in OMITTED if not any(re.fullmatch(pattern, name) for name in wanted)]
    assert unused == []
