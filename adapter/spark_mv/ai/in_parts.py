"""A text, or a group's list of texts, that is too long for one request: its parts are asked, and then what came of them together."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from spark_mv.ai.asking import Asker, Outcome
from spark_mv.ai.cascade import Taken
from spark_mv.ai.prices import Rates, cost_of
from spark_mv.ai.protocol import Request
from spark_mv.query.functions.catalogue import ai_aggregates

LISTS = ai_aggregates()
"""Functions whose text is a list of texts."""
IN_PARTS = LISTS | {"ai_summarize"}
"""Functions of which what is said of parts is what is to be said of the whole, in fewer words."""
_ENDS = re.compile(r"\n\s*\n|\n|(?<=[.!?])\s|\s")
_DEEP = 4
"""Times that the answers of parts may be too long together, too."""


def parts_of(request: Request, most: int) -> list[Request]:
    """The request in parts of at most so many bytes of text each, as far as it can be cut: one where it is short enough."""
    text = str(request.row.get("content", ""))
    if request.function not in IN_PARTS or len(text.encode()) <= most:
        return [request]
    if request.function in LISTS:
        texts = [json.dumps(part, ensure_ascii=False) for part in _dealt(json.loads(text), most)]
    else:
        texts = _cut(text, most)
    return [replace(request, row={**request.row, "content": part}) for part in texts]


def ask_in_parts(
    asker: Asker, request: Request, version: str, most: int, price: Rates, deep: int = _DEEP, begun: bool = False
) -> Outcome:
    """The outcome of one input; every request that it took is one of its steps. Never raises.

    Ends with the first part that has no answer: the input is asked again as a whole, by the rules of that part's error.
    """
    parts = parts_of(request, most)
    if len(parts) == 1 or not deep:
        (outcome,) = asker.ask([request], begun=begun)
        return outcome
    taken: list[Taken] = []
    said: list[str] = []
    cached = 0
    for number, part in enumerate(parts):
        (outcome,) = asker.ask([part], begun=begun or number > 0)
        cached += outcome.cached_tokens
        if outcome.attempts:
            taken.append(_taken(request.model, version, outcome, price))
        if outcome.error_class is not None:
            return _summed(outcome, taken, cached)
        said += [] if outcome.value is None else [outcome.value]
    together = json.dumps(said, ensure_ascii=False) if request.function in LISTS else "\n\n".join(said)
    whole = replace(request, row={**request.row, "content": together})
    outcome = ask_in_parts(asker, whole, version, most, price, deep - 1, begun=True)
    last = outcome.steps or ((_taken(request.model, version, outcome, price),) if outcome.attempts else ())
    return _summed(outcome, [*taken, *last], cached + outcome.cached_tokens)


def _dealt(values: Sequence[str], most: int) -> list[list[str]]:
    """The values in lists of at most so many bytes; one that is longer by itself is cut."""
    lists: list[list[str]] = [[]]
    size = 0
    for value in (piece for one in values for piece in _cut(one, max(1, most - 8))):
        length = len(json.dumps(value, ensure_ascii=False).encode()) + 2
        if lists[-1] and size + length > most:
            lists.append([])
            size = 0
        lists[-1].append(value)
        size += length
    return lists


def _cut(text: str, most: int) -> list[str]:
    """The text in pieces of at most so many bytes, at the ends of paragraphs, lines, sentences or words where there are any.

    >>> _cut("One is short. Two is not.", 14)
    ['One is short. ', 'Two is not.']
    """
    pieces = []
    while len(text.encode()) > most:
        head = text.encode()[:most].decode(errors="ignore")
        ends: dict[str, int] = {}
        for found in _ENDS.finditer(head, len(head) // 2):
            ends["\n\n" if found[0].count("\n") > 1 else found[0][:1]] = found.end()
            if found.start() and head[found.start() - 1] in ".!?":
                ends["."] = found.end()
        at = next((ends[kind] for kind in ("\n\n", "\n", ".", " ") if kind in ends), len(head)) or 1
        pieces.append(text[:at])
        text = text[at:]
    return [*pieces, text] if text or not pieces else pieces


def _taken(model: str, version: str, outcome: Outcome, price: Rates) -> Taken:
    cost = cost_of(price, outcome.input_tokens, outcome.output_tokens, outcome.cached_tokens)
    return Taken(model, version, outcome.attempts, outcome.input_tokens, outcome.output_tokens, cost, None, None)


def _summed(outcome: Outcome, taken: Sequence[Taken], cached: int) -> Outcome:
    return replace(
        outcome,
        attempts=sum(one.attempts for one in taken),
        input_tokens=sum(one.input_tokens for one in taken),
        output_tokens=sum(one.output_tokens for one in taken),
        cached_tokens=cached,
        steps=tuple(taken),
    )
