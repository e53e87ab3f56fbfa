"""A provider as a user would write one."""

from __future__ import annotations

from collections.abc import Sequence

from spark_mv.ai.protocol import Answer, ProviderSettings, Request


class Shouting:
    """Answers with the request in capitals."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.settings = settings

    def batch_size(self, request: Request) -> int:
        return 3

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return [Answer(" ".join(str(v) for v in r.row.values()).upper()) for r in requests]


class NeedsMore(Shouting):
    """A provider that imports what no worker has."""

    requires = ("a_package_that_is_nowhere",)
