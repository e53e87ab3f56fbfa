"""Inputs that mean the same, by the vectors of their texts: which of them leads, and whom.

Who leads stays so: a question joins the leader that it is most like, if it is like enough, or becomes one. Compared are questions of one kind of
call whose texts name the same numbers, by a model on this machine. What was found is kept in `ai_similar` (similar_table).
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import category

from spark_mv.ai.dedupe import REPEATS
from spark_mv.ai.pending import pending_sql
from spark_mv.ai.results import insert_rows, timestamp
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.similar_table import MODEL, SIMILAR_COLUMNS, classes_sql, mine_sql, similar_table
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import canonical, identity_hash
from spark_mv.query.ai_calls.signatures import VECTORS
from spark_mv.query.functions.catalogue import ai_aggregates
from spark_mv.query.syntax.source_text import string_literal as quote

Execute = Callable[[str], Sequence[Sequence[Any]]]
Embed = Callable[[Sequence[str]], Sequence[Any]]
"""Texts to their vectors of length one; None for a text that the model cannot read whole."""

COPIES = frozenset({*REPEATS, *VECTORS, *ai_aggregates(), "ai_extract", "ai_similarity", "ai_summarize"})
"""Functions whose answers hold something of the very text: those of another text are never theirs."""
LEADERS = 200_000
"""How many texts of one kind of call lead at most: their vectors are in memory, 1.5 KB each. Further ones are asked for themselves."""
_PAGE, _INSERT = 20_000, 1_000
_BEFORE, _BEHIND = "([{", ".,;:!?)]}"
"""What may stand beside a word and is none of it; .5 is a number, and 5' is not 5\"."""


@dataclass(frozen=True)
class Text:
    """A question to be placed: its near_key, its kind (all of it but the text), its text."""

    near_key: str
    kind: str
    text: str

    @property
    def numbers(self) -> str:
        """sha256 of the words in which there is a digit, or another sign for a number: order A-7 is not order B-7, -5 not 5, and ½ not ¼, however alike the
        sentences are."""
        words = (word.lstrip(_BEFORE).rstrip(_BEHIND) for word in self.text.lower().split())
        return identity_hash(" ".join(word for word in words if any(category(sign)[0] == "N" for sign in word)))


@dataclass(frozen=True)
class Placed:
    """Where a question belongs: to the `leader` that it is so similar to, or to itself, with the vector that others are compared with."""

    text: Text
    leader: str
    similarity: float | None = None
    vector: Any = None


class _Vectors:
    """Those that lead, of one kind and the same numbers."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._rows: Any = None

    def add(self, key: str, vector: Any) -> None:
        import numpy as np

        if self._rows is None:
            self._rows = np.empty((4, len(vector)), dtype=np.float32)
        if len(self.keys) == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        self._rows[len(self.keys)] = vector
        self.keys.append(key)

    def nearest(self, vector: Any) -> tuple[str, float]:
        """The most similar of them; ('', 0) where there is none."""
        if not self.keys:
            return "", 0.0
        likeness = self._rows[: len(self.keys)] @ vector
        best = int(likeness.argmax())
        return self.keys[best], min(1.0, float(likeness[best]))


class Leaders:
    """Who leads, as far as is known."""

    def __init__(self, at_least: float) -> None:
        self.at_least = at_least
        self._vectors: dict[tuple[str, str], _Vectors] = defaultdict(_Vectors)
        self._number: dict[str, int] = defaultdict(int)

    def add(self, near_key: str, kind: str, numbers: str, vector: Any) -> None:
        self._vectors[kind, numbers].add(near_key, vector)
        self._number[kind] += 1

    def place(self, texts: Sequence[Text], embed: Embed) -> Iterator[Placed]:
        """Each text in order, with the leader that it is most like, or as one of its own."""
        for text, vector in zip(texts, embed([one.text for one in texts]), strict=True):
            if vector is None:
                yield Placed(text, text.near_key)
                continue
            leader, similarity = self._vectors[text.kind, text.numbers].nearest(vector)
            if leader and similarity >= self.at_least:
                yield Placed(text, leader, similarity)
            elif self._number[text.kind] < LEADERS:
                self.add(text.near_key, text.kind, text.numbers, vector)
                yield Placed(text, text.near_key, vector=vector)
            else:
                yield Placed(text, text.near_key)


def comparable(call: AiCall) -> bool:
    """Whether inputs of the call may share an answer because they mean the same: one text, and no answer that is made of it."""
    one_text = len(call.row_arguments) == 1 and "files" not in call.row_arguments
    return one_text and not call.embedding and call.function not in COPIES


def find_similar(
    execute: Execute,
    calls: Sequence[AiCall],
    settings: AiSettings,
    results_table: str,
    project: str,
    embed: Embed,
    say: Callable[[str], None] = lambda line: None,
) -> int:
    """Places the round's questions that were not looked at yet, those with an answer first, and keeps that. How many joined a leader."""
    dedupe = settings.dedupe
    calls = [call for call in calls if comparable(call)]
    if not calls or dedupe is None or dedupe.semantic is None:
        return 0
    leaders: Leaders | None = None
    joined = done = 0
    while page := _page(execute, calls, settings, results_table):
        if leaders is None:
            leaders = _leaders(execute, results_table, dedupe.semantic, {text.kind for text in page})
        for start in range(0, len(page), _INSERT):
            placed = list(leaders.place(page[start : start + _INSERT], embed))
            _keep(execute, placed, results_table, dedupe.semantic, project)
            joined += sum(one.similarity is not None for one in placed)
            done += len(placed)
            say(f"{done:,} AI inputs compared by meaning, {joined:,} mean the same as another one")
        if len(page) < _PAGE:
            break
    return joined


def _page(execute: Execute, calls: Sequence[AiCall], settings: AiSettings, results_table: str) -> list[Text]:
    """Questions that were not looked at yet."""
    assert settings.dedupe is not None and settings.dedupe.semantic is not None
    folded = replace(settings, dedupe=replace(settings.dedupe, semantic=None))
    pending = pending_sql(calls, results_table, folded, timestamp(time.time()))
    known = classes_sql(results_table, settings.dedupe.semantic)
    rows = execute(
        "SELECT p.near_key, min(p.site) AS site, min_by(p.request, p.result_key) AS request, "
        f"min(if(p.state IN ('reused', 'near'), 0, 1)) AS place FROM ({pending}) AS p LEFT ANTI JOIN ({known}) AS k "
        f"ON k.near_key = p.near_key GROUP BY p.near_key ORDER BY place, p.near_key LIMIT {_PAGE}"
    )
    return [_text(str(key), calls[int(site)], json.loads(request)) for key, site, request, _ in rows]


def _text(near_key: str, call: AiCall, request: Mapping[str, Any]) -> Text:
    kind = canonical([call.identity_hash, call.function, request["constant"]])
    (value,) = request["row"][0].values()
    return Text(near_key, identity_hash(kind), value if isinstance(value, str) else canonical(value))


def _leaders(execute: Execute, results_table: str, at_least: float, kinds: set[str]) -> Leaders:
    import numpy as np

    found = Leaders(at_least)
    listed = ", ".join(map(quote, sorted(kinds)))
    rows = execute(
        f"SELECT near_key, kind, numbers, vector FROM {similar_table(results_table)} WHERE {mine_sql(at_least)} AND kind IN ({listed}) "
        "AND vector IS NOT NULL ORDER BY at, near_key"
    )
    for near_key, kind, numbers, vector in rows:
        found.add(str(near_key), str(kind), str(numbers), np.frombuffer(bytes(vector), dtype="<f4"))
    return found


def _keep(execute: Execute, placed: Sequence[Placed], results_table: str, at_least: float, project: str) -> None:
    import numpy as np

    at = time.time()
    rows = [
        (
            one.text.near_key, one.leader, one.similarity, one.text.kind, one.text.numbers,
            None if one.vector is None else np.asarray(one.vector, dtype="<f4").tobytes(), at_least, MODEL, at, project or None,
        )
        for one in placed
    ]  # fmt: skip
    execute(insert_rows(similar_table(results_table), SIMILAR_COLUMNS, rows))
