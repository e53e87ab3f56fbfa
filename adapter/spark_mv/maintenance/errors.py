"""The ways in which a run says no. Each text names the place, the reason and the cure."""

from __future__ import annotations

from collections.abc import Sequence


class ConfigError(ValueError):
    """One or more settings of a model are wrong; the text lists all of them with their cures."""

    def __init__(self, model: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"model {model}: the configuration of this nondeterministic_mv needs a change:\n{lines}")


class RefusedError(ValueError):
    """The run stops before it touches anything."""


class NotOurs(RefusedError):
    """A table is in the way that this materialization did not make. Nothing is wrong with the model."""


class RunFailed(RuntimeError):
    """The run stopped on its way; the table was not touched, or another run's state of it stands."""


class NotFollowed(RunFailed):
    """The data is of a kind that the plan's steps do not follow; those of its fallback do."""


class TurnTaken(RunFailed):
    """Another writer published first from the same state of a table; this one has written nothing to it."""

    def __init__(self, table: str) -> None:
        super().__init__(f"{table}: another writer published first; nothing was written")
