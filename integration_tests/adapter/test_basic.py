"""The basic group of the standard adapter suite."""

from __future__ import annotations

from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations


class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass
