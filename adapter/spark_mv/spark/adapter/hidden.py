"""What must not be shown: values of the profile's secrets and of dbt's secret environment, and what looks like one in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from spark_mv.ai.secret import NAMED_SECRET
from spark_mv.report.facts import RunRow

STARS = "*****"
_WRITTEN = re.compile(
    r"""((?:password|passwd|pwd|token|secret|api[_-]?key|access[_-]?key)["']?\s*[=:]\s*["']?)[^\s"',;&)]{4,}"""
    r"|((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}|(://[^/\s:@]+:)[^/\s@]+(?=@)|\bsk-[A-Za-z0-9_-]{16,}",
    re.IGNORECASE,
)
_LITERAL = re.compile(
    r"""\b((?:\w*password|passwd|pwd|\w*secret|api_?key|access_?key|\w*token)\s*(?:=|=>|:)\s*)(['"])(?:(?!\2).)+\2""",
    re.IGNORECASE,
)
"""In SQL, where a name beside an equals sign is mostly a column: only a literal is taken out."""


@dataclass(frozen=True)
class Hidden:
    """Texts that are replaced wherever they stand."""

    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Any) -> Hidden:
        """The secrets of a runtime config: its credentials', those within its ai block and Spark settings, dbt's DBT_ENV_SECRET_…"""
        from dbt_common.exceptions.base import env_secrets

        found = {str(value) for value in env_secrets()}
        found |= set(_secret_values(vars(config.credentials)))
        return cls(tuple(sorted((value for value in found if len(value) >= 4), key=len, reverse=True)))

    def scrub(self, text: str) -> str:
        """The text without them.

        >>> Hidden(("hunter2",)).scrub("user hunter2, api_key=abcdef12, jdbc://me:pass@host")
        'user *****, api_key=*****, jdbc://me:*****@host'
        """
        for value in self.values:
            text = text.replace(value, STARS)
        return _WRITTEN.sub(lambda m: (m[1] or m[2] or m[3] or "") + STARS, text)

    def scrub_sql(self, sql: str) -> str:
        """A statement without them.

        >>> Hidden().scrub_sql("select aes_decrypt(c, k) from t where token = u.token and api_key = 'abc def'")
        "select aes_decrypt(c, k) from t where token = u.token and api_key = '*****'"
        """
        for value in self.values:
            sql = sql.replace(value, STARS)
        return _LITERAL.sub(lambda m: f"{m[1]}{m[2]}{STARS}{m[2]}", sql)

    def run(self, run: RunRow) -> RunRow:
        """The run without them in its message and reasons."""
        return replace(run, message=self.scrub(run.message), candidates=self.scrub(run.candidates))


def _secret_values(data: Any, named: bool = False) -> Iterator[str]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _secret_values(value, named or bool(NAMED_SECRET.search(str(name))))
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _secret_values(value, named)
    elif named and isinstance(data, str) and data:
        yield data
