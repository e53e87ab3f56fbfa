"""What `spark-mv explain` is asked: a SELECT with what is known of it, from a file or from a model of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spark_mv.explain.judgement import Judgement, judge


@dataclass(frozen=True)
class Question:
    """The arguments of `judge`. `name` is used in messages; `notes` are shown with the answer."""

    sql: str
    name: str = "model"
    unique_key: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    functions: Mapping[str, Any] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    time_zone: str = "UTC"
    notes: tuple[str, ...] = ()

    def with_options(
        self,
        *,
        name: str | None = None,
        unique_key: tuple[str, ...] = (),
        freeze: tuple[str, ...] = (),
        functions: Mapping[str, Any] | None = None,
        views: Mapping[str, str] | None = None,
        schemas: Mapping[str, Mapping[str, str]] | None = None,
        time_zone: str | None = None,
    ) -> Question:
        """The same with what somebody said in addition: tables, views and functions one by one, all else instead."""
        return replace(
            self,
            name=name or self.name,
            unique_key=unique_key or self.unique_key,
            freeze=freeze or self.freeze,
            functions={**self.functions, **(functions or {})},
            views={**self.views, **(views or {})},
            schemas={**self.schemas, **(schemas or {})},
            time_zone=time_zone or self.time_zone,
        )

    def answer(self) -> Judgement:
        """The verdict. Never raises for bad SQL."""
        return judge(
            self.sql,
            unique_key=self.unique_key,
            schemas=self.schemas or None,
            functions=self.functions or None,
            freeze=self.freeze,
            views=self.views or None,
            model=self.name,
            time_zone=self.time_zone,
        )
