"""What `spark-mv doctor` found, as lines for people and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from rich.console import Console
from rich.text import Text

from spark_mv.report.words import plain

FORMAT_VERSION = 1


class State(str, Enum):
    """`PROBLEM`: runs fail, or will. `WARNING`: runs work, and somebody should look."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


_STYLES = {State.OK: "green", State.WARNING: "yellow", State.PROBLEM: "bold red"}


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, how it is, and what to do (empty where there is nothing)."""

    check: str
    state: State
    sentence: str
    cure: str = ""


def ok(check: str, sentence: str) -> Finding:
    """Nothing to do."""
    return Finding(check, State.OK, sentence)


def warning(check: str, sentence: str, cure: str = "") -> Finding:
    """Runs work, and somebody should look."""
    return Finding(check, State.WARNING, sentence, cure)


def problem(check: str, sentence: str, cure: str = "") -> Finding:
    """Runs fail, or will."""
    return Finding(check, State.PROBLEM, sentence, cure)


def has_problems(findings: Sequence[Finding]) -> bool:
    """Whether `spark-mv doctor` ends with exit status 1."""
    return any(finding.state is State.PROBLEM for finding in findings)


def findings_json(findings: Sequence[Finding]) -> str:
    """Keys are stable within FORMAT_VERSION."""
    data: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "problems": _count(findings, State.PROBLEM),
        "warnings": _count(findings, State.WARNING),
        "findings": [asdict(finding) for finding in findings],
    }
    return json.dumps(data, indent=2, ensure_ascii=False)


def print_findings(findings: Sequence[Finding], console: Console | None = None) -> None:
    """A line for each, what to do below it, and a sum at the end. A pipe gets no colours."""
    out = console or Console(file=sys.stdout, highlight=False, soft_wrap=True)
    width = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        state = Text(f"{finding.state.value:<8}", style=_STYLES[finding.state])
        out.print(state, Text(f" {finding.check:<{width}}  {_line(finding.sentence)}"), sep="")
        if finding.cure:
            out.print(Text(f"{'':{width + 11}}→ {_line(finding.cure)}", style="bold"))
    problems, warnings = _count(findings, State.PROBLEM), _count(findings, State.WARNING)
    out.print(Text(f"\n{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}"))


def _line(text: str) -> str:
    return " ".join(plain(text).split())


def _count(findings: Sequence[Finding], state: State) -> int:
    return sum(finding.state is state for finding in findings)


def _counted(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"
