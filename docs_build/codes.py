"""The codes of reasons and errors with their sentences, read from the places in the code that give them.

`python docs_build/codes.py` prints the page `docs/reference/codes.md` as the site shows it. What a sentence fills in at run time is shown as `…`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "adapter" / "spark_mv"
MACROS = ROOT / "macros"
CURES = Path(__file__).with_name("cures.yml")
CODE = re.compile(r"[A-Z][A-Z0-9]+(_[A-Z0-9]+)*")
RAISED = re.compile(r"raise_compiler_error\((.*?)\) -?%}", re.DOTALL)
TEXT = re.compile(r""""([^"]*)"|'([^']*)'""")
"""What a macro stops with: texts in quotes, and names between them."""
CALLED = {
    **dict.fromkeys(("Reason", "NotIncremental"), "reason"),
    **dict.fromkeys(("QueryError", "error"), "error"),
    **dict.fromkeys(("RefusedError", "RunFailed", "NotFollowed", "NotOurs", "AiConfigError", "__init__"), "stop"),
}
"""The last word of what is called with a code and a sentence → why a strategy is not (or is) taken; what is wrong with a query; why a run
was refused or stopped."""

GROUPS = {
    "reason": (
        "Reasons",
        "Why a strategy was taken or not, in `explain_mv`, in `mv_runs` (`reasons`, `candidates`) and in `strategies` of `spark-mv explain`. "
        "A reason is no error: the run goes on with another strategy, in the last resort a complete recompute, "
        "unless `refresh: incremental` forbids that.",
    ),
    "error": (
        "Errors",
        "What is wrong with a query. `spark-mv explain` lists all of them; a run stops before it touches anything. "
        "Every message names the line and column.",
    ),
    "stop": (
        "Stops",
        "Why a run, an operation or a test was refused, or stopped on its way. The message begins with the code in brackets, as Spark's own do.",
    ),
}


@dataclass(frozen=True)
class Given:
    """A code where it is given. `kind` is one of GROUPS; `sentence` may be empty where it is put together elsewhere."""

    kind: str
    code: str
    sentence: str


def given() -> list[Given]:
    """Every code of the engine and of the macros with each of its sentences, in the order of codes."""
    found = {
        one for file in sorted(ENGINE.rglob("*.py")) for one in _given(ast.parse(file.read_text(encoding="utf-8")))
    } | {one for file in sorted(MACROS.rglob("*.sql")) for one in _raised(file.read_text(encoding="utf-8"))}
    return sorted(found, key=lambda one: (one.kind, one.code, one.sentence))


def _given(tree: ast.Module) -> Iterator[Given]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = ast.unparse(node.func).rpartition(".")[2]
            kind = CALLED.get(name, "")
            arguments: list[ast.expr] = node.args
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1:  # tables of rules: (code, what, why)
            kind, arguments = "error", node.elts
            if " " not in _sentence(arguments[1]):
                continue
        elif isinstance(node, ast.ClassDef) and (own := _own_code(node)):
            yield Given("stop", own, ast.get_docstring(node) or "")
            continue
        else:
            continue
        for code in _constants(arguments[0]):
            if kind and CODE.fullmatch(code) and (isinstance(node, ast.Call) or "_" in code):
                yield Given(kind, code, ", because ".join(_sentence(one) for one in arguments[1:3] if _sentence(one)))


def _raised(macros: str) -> Iterator[Given]:
    for call in RAISED.finditer(macros):
        parts = [first or second for first, second in TEXT.findall(re.sub(r'"\s*~\s*"', "", call[1]))]
        text = re.sub(r"…(\s*…)+", "…", "…".join(parts))
        if coded := re.match(rf"\[({CODE.pattern})\] (.*)", text, re.DOTALL):
            yield Given("stop", coded[1], coded[3])


def _own_code(node: ast.ClassDef) -> str:
    """The code of an exception that has one for all its texts."""
    for line in node.body:
        if (
            isinstance(line, ast.Assign)
            and ast.unparse(line.targets[0]) == "code"
            and isinstance(line.value, ast.Constant)
        ):
            return str(line.value.value)
    return ""


def _constants(node: ast.expr) -> list[str]:
    """The texts that an expression may be: a constant, or either side of `a if … else b`."""
    if isinstance(node, ast.IfExp):
        return [*_constants(node.body), *_constants(node.orelse)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def _sentence(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value.strip() if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = [str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values]
        return re.sub(r"…(\s*…)+", "…", "".join(parts)).strip()
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return " ".join(filter(None, (_sentence(node.left), _sentence(node.right))))
    return ""


def cures() -> dict[str, str]:
    """What to do about a code, where there is more to say than the sentence itself does."""
    return dict(yaml.safe_load(CURES.read_text(encoding="utf-8")))


def page() -> str:
    """The lists in Markdown."""
    known, told, lines = given(), cures(), []
    for kind, (title, about) in GROUPS.items():
        lines += [f"## {title}", "", about, ""]
        for code in sorted({one.code for one in known if one.kind == kind}):
            sentences = [
                one.sentence for one in known if (one.kind, one.code) == (kind, code) and one.sentence.strip("…")
            ]
            lines += [f"### `{code}` {{ #{code.lower()} }}", ""]
            lines += [f"- {_escaped(sentence)}" for sentence in sentences]
            if code in told:
                lines += ["", f"**What to do:** {told[code]}"]
            lines.append("")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return re.sub(r"([*<>|\[\]])", r"\\\1", text)


if __name__ == "__main__":
    print(page())
