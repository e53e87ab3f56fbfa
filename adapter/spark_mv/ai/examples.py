"""Few-shot examples: rows of a seed as text of a prompt, in the order of the seed's file."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_mv.maintenance.errors import RefusedError
from spark_mv.query.syntax.nearest import did_you_mean

_WORDS = ("seed", "input", "output", "delimiter")
_SEED = re.compile(r"\w[\w.-]*")
_FORM = "{'seed': 'triage_examples', 'input': 'body', 'output': 'kind'}"


@dataclass(frozen=True)
class Examples:
    """The rows of a seed, written out."""

    seed: str
    text: str
    number: int


@dataclass(frozen=True)
class Asked:
    """Which seed, which column has the input, which ones the answer: one as it stands, several as a JSON object."""

    seed: str
    input: str
    output: tuple[str, ...]
    whole: bool  # one column's text is the answer itself
    delimiter: str = ","

    @classmethod
    def of(cls, values: Any) -> Asked:
        """Raises RefusedError saying what is missing or wrong."""
        if not isinstance(values, Mapping):
            raise _refused("", f"they are given like {_FORM}, not {values!r}")
        for word in values:
            if word not in _WORDS:
                known = did_you_mean(word, _WORDS, f"; it has {', '.join(_WORDS)}")
                raise _refused("", f"they have an unknown word {word!r}{known}")
        seed, output = str(values.get("seed") or ""), values.get("output")
        if not seed or not values.get("input") or not output:
            raise _refused(seed, f"say seed, input and output, like {_FORM}")
        if not _SEED.fullmatch(seed):
            raise _refused(seed, "a seed is named as in ref(), without a path")
        delimiter = str(values.get("delimiter") or ",")
        if len(delimiter) != 1:
            raise _refused(seed, f"delimiter is one character, not {delimiter!r}")
        columns = (output,) if isinstance(output, str) else tuple(map(str, output))
        return cls(seed, str(values["input"]), columns, isinstance(output, str), delimiter)


def read_examples(root: Path, seed_paths: Sequence[str], asked: Asked) -> Examples:
    """The examples, from the seed's file in the project at `root`: what is in the project is what is reviewed with it, and a table has no order.

    Raises RefusedError where there is no such file or column, no row, or a row with an empty value.
    """
    files = sorted({f for path in seed_paths for f in (root / path).rglob(f"{asked.seed}.csv") if f.is_file()})
    if len(files) != 1:
        where = ", ".join(seed_paths)
        why = f"is {len(files)} times" if files else "is not"
        raise _refused(asked.seed, f"the file {asked.seed}.csv {why} under {where}: there has to be one")
    try:
        with files[0].open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter=asked.delimiter)
            columns, rows = list(reader.fieldnames or []), list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _refused(
            asked.seed, f"{files[0].name} cannot be read as CSV in UTF-8 ({getattr(error, 'strerror', None) or error})"
        ) from error
    for name in (asked.input, *asked.output):
        if name not in columns:
            hint = did_you_mean(name, columns, f"; it has {', '.join(columns)}")
            raise _refused(asked.seed, f"it has no column {name!r}{hint}")
        if columns.count(name) > 1:
            raise _refused(
                asked.seed, f"its header has the column {name!r} {columns.count(name)} times: rename all but one"
            )
    if not rows:
        raise _refused(asked.seed, "it has no rows: add some, or leave examples away")
    texts = [_written(asked, number, row) for number, row in enumerate(rows, 2)]
    return Examples(asked.seed, "Examples:\n\n" + "\n\n".join(texts), len(rows))


def _written(asked: Asked, line: int, row: Mapping[str, Any]) -> str:
    for name in (asked.input, *asked.output):
        if not (row.get(name) or "").strip():
            raise _refused(asked.seed, f"row {line} has no {name}: an example has an input and its answer")
    answer = row[asked.output[0]] if asked.whole else json.dumps({n: row[n] for n in asked.output}, ensure_ascii=False)
    text, answer = (value.replace("\r\n", "\n").replace("\r", "\n").strip() for value in (row[asked.input], answer))
    return f"Text: {text}\nAnswer: {answer}"


def _refused(seed: str, why: str) -> RefusedError:
    return RefusedError("AI_EXAMPLES", f"examples of a prompt{f', seed {seed}' if seed else ''}: {why}")
