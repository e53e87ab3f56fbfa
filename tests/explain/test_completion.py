"""The shell completes `spark-mv`: in bash, zsh and fish themselves, with the lines of the documentation in their start files."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from blocks import ROOT

pytestmark = pytest.mark.unit

COMPLETED = [
    ("bash", "explain tri", ["triage"]),
    ("bash", "explain --project-dir .. tri", ["triage"]),
    ("bash", "report --ser", ["--serve"]),
    ("bash", "explain nothing", []),
    ("zsh", "adopt tri", ["triage"]),
    ("zsh", "explain never_a", ["never_a_model.sql"]),
    ("zsh", "status --format j", ["json"]),
    ("fish", "explain tri", ["triage", "triage.sql"]),
    ("fish", "report --ser", ["--serve"]),
]
KEPT = """
kept() { print -r -- "$BUFFER" > "$HOME/line"; exit }
zle -N kept
bindkey '^X' kept
"""


def start_lines() -> dict[str, str]:
    """Start file → what the page tells to put there."""
    text = (ROOT / "docs" / "reference" / "operations.md").read_text(encoding="utf-8")
    part = re.search(r"^## Completion in the shell\n(.*?)^## ", text, re.M | re.S)
    assert part
    lines = re.findall(r"^    (.*?) +# ~/(\S+)$", part[1], re.M)
    return {file: "\n".join(line for line, of in lines if of == file) for _, file in lines}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with the start files."""
    for file, text in start_lines().items():
        (tmp_path / "home" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / file).write_text(text + "\n", encoding="utf-8")
    return tmp_path / "home"


def environment(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "ZDOTDIR": str(home), "TERM": "xterm"}


def at_a_terminal(command: list[str], keys: bytes, home: Path, folder: Path) -> str:
    """What the shell wrote on its terminal after these keys."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(home),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, keys)
    said, until = b"", time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                said += os.read(ours, 4096)
            except OSError:  # it has left the terminal
                break
    process.kill()
    process.wait()
    os.close(ours)
    return said.decode(errors="replace")


def by_bash(line: str, home: Path, folder: Path) -> str:
    script = """
source "$HOME/.bashrc"
compopt() { :; }
read -ra COMP_WORDS <<< "$1"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
_spark_mv_completion spark-mv
printf '%s\\n' "${COMPREPLY[@]}"
"""
    return run(["bash", "-c", script, "bash", line], home, folder)


def by_zsh(line: str, home: Path, folder: Path) -> str:
    with (home / ".zshrc").open("a", encoding="utf-8") as file:
        file.write(KEPT)
    said = at_a_terminal(["zsh", "-i"], line.encode() + b"\t\x18", home, folder)
    kept = home / "line"
    assert kept.exists(), said
    return kept.read_text(encoding="utf-8").split()[-1]


def by_fish(line: str, home: Path, folder: Path) -> str:
    found = run(["fish", "-c", "complete -C $argv[1]", line], home, folder)
    return "\n".join(one.split("\t")[0] for one in found.splitlines())


def run(command: list[str], home: Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=environment(home), capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout


BY: dict[str, Callable[[str, Path, Path], str]] = {"bash": by_bash, "zsh": by_zsh, "fish": by_fish}


@pytest.mark.parametrize(("shell", "line", "wanted"), COMPLETED)
def test_the_shell_completes(project: Path, home: Path, shell: str, line: str, wanted: list[str]) -> None:
    """From a folder below the project's, with models and files of it."""
    if not shutil.which(shell):
        pytest.skip(f"no {shell} is installed")
    (project / "models" / "never_a_model.sql").write_text("select 1 as id", encoding="utf-8")
    assert BY[shell](f"spark-mv {line}", home, project / "models").split() == wanted
