"""Several inputs in one chat request: an id per input, structured output with the ids back, what does not come back exactly
once asked alone. Only for functions whose instruction is the same for every row, so that inputs differ in their text alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spark_mv.ai.chat import cached, content_of, misfit, spent, structured
from spark_mv.ai.prompts import answer_text, messages, response_schema
from spark_mv.ai.protocol import Answer, ProviderError, Request

PACKABLE = frozenset(
    {"ai_classify", "ai_extract", "ai_analyze_sentiment", "ai_summarize", "ai_mask", "ai_fix_grammar", "ai_filter"}
)
_MANY = (
    "The user gives a JSON array of texts, each with an id. Do this for every text on its own, as if it were the only one, and give "
    "one answer for each id."
)
_MOST = 20
"""Inputs that `rows_per_request: auto` asks about at a time: from some twenty on there is little left to save, and much to lose at the
token limit."""
_OF_EACH = 16
"""Bytes of an input around its text: id and braces."""
_MOST_BYTES = 24_000
"""Of the texts of one request: longer ones gain little from company and lose answers at the token limit."""


def packable(request: Request) -> bool:
    """Whether the input may be asked together with others like it."""
    return request.function in PACKABLE and request.prompt is None and request.complaint is None


def packs(requests: Sequence[Request]) -> list[list[Request]]:
    """The requests cut where their texts get too long together, order kept."""
    found: list[list[Request]] = []
    size = 0
    for request in requests:
        own = len(str(request.row["content"]).encode())
        if not found or size + own > _MOST_BYTES:
            found.append([])
            size = 0
        found[-1].append(request)
        size += own
    return found


def worthwhile(request: Request) -> int:
    """How many inputs as long as this one it takes for instruction and schema, sent once, to be less than a tenth of what is sent: 1 for
    long texts, which gain nothing by company, up to _MOST for short ones."""
    text = len(json.dumps(str(request.row["content"]), ensure_ascii=False).encode())
    once = len(json.dumps(packed_body([request]), ensure_ascii=False).encode()) - text
    return max(1, min(_MOST, -(-once * 9 // (text + _OF_EACH))))


def packed_body(requests: Sequence[Request]) -> dict[str, Any]:
    """The body of one chat completion for all of them; ids are their places."""
    first = requests[0]
    task = str(messages(first)[0]["content"])
    texts = [{"id": number, "text": str(r.row["content"])} for number, r in enumerate(requests)]
    return {
        "model": first.model,
        "messages": [
            {"role": "system", "content": f"{task} {_MANY}"},
            {"role": "user", "content": json.dumps(texts, ensure_ascii=False)},
        ],
        **first.parameters,
        "response_format": structured(first.function, _schema(first)),
    }


def packed_answers(requests: Sequence[Request], reply: Any) -> list[Answer]:
    """One answer per request. An input whose id is missing, doubled, or whose answer does not fit, has an error that says `alone`.

    Raises ProviderError where the reply as a whole is of no use.
    """
    used = spent(reply)
    content, cut = content_of(reply)
    try:
        items = json.loads(content)["answers"]
        by_id: dict[Any, list[Any]] = {}
        for item in items:
            if type(item["id"]) is int:  # true is no 1
                by_id.setdefault(item["id"], []).append(item.get("answer"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProviderError("invalid_answer", f"no answers by id: {error!r}{cut}", spent=used) from None
    inputs = divided(used[0], [len(str(r.row["content"])) for r in requests])
    outputs = divided(used[1], [len(json.dumps(by_id.get(n))) for n in range(len(requests))])
    found = [
        _one(request, by_id.get(number, []), (inputs[number], outputs[number]))
        for number, request in enumerate(requests)
    ]
    shares = divided(cached(reply), [len(str(r.row["content"])) for r in requests])
    return [replace(one, cached_tokens=share) for one, share in zip(found, shares, strict=True)]


def _one(request: Request, found: Sequence[Any], used: tuple[int, int]) -> Answer:
    if len(found) != 1:
        return Answer(None, alone(f"{len(found)} answers with its id", used), *used)
    schema = response_schema(request)
    if schema is None:
        if not isinstance(found[0], str):
            return Answer(None, alone("its answer is no text", used), *used)
        return Answer(found[0].strip(), None, *used)
    text = json.dumps(found[0], ensure_ascii=False)
    if problem := misfit(text, schema):
        return Answer(None, alone(problem, used), *used)
    try:
        return Answer(answer_text(request, text), None, *used)
    except ValueError as error:
        return Answer(None, alone(str(error), used), *used)


def alone(why: str, used: tuple[int, int], sent: bool = True) -> ProviderError:
    """The error of an input that has to be asked by itself; `sent`: after it was asked with others."""
    error = ProviderError("invalid_answer", f"asked with others: {why}", spent=used)
    error.alone, error.sent = True, sent
    return error


def _schema(request: Request) -> dict[str, Any]:
    answer = response_schema(request) or {"type": "string"}
    item = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "answer": answer},
        "required": ["id", "answer"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"answers": {"type": "array", "items": item}},
        "required": ["answers"],
        "additionalProperties": False,
    }


def divided(total: int, weights: Sequence[int]) -> list[int]:
    """A whole number divided by weights, its parts adding up to it."""
    whole, given, out, seen = sum(weights) or 1, 0, [], 0
    for weight in weights:
        seen += weight
        part = total * seen // whole - given
        out.append(part)
        given += part
    return out
