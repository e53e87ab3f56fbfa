"""Answers computed from the input, for tests only: deterministic, counting, and able to fail on purpose."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from typing import Any

from spark_mv.ai.protocol import Answer, ProviderError, Request


class ScriptedProvider:
    """Invents an answer of the right type from a hash of the input. Not a model: the answers mean nothing.

    Options (under `options` in the profile): `count_file` gets one line per request asked; `fail` maps a kind of error
    (rate_limit, server, timeout, connection, refused, invalid_answer) to the share of inputs that fail with it, `fail_attempts`
    to how often each of these fails before it succeeds (default 1; `refused` and `invalid_answer` always fail);
    `null` is the share of NULL answers; `answers` maps an input text to its answer; `seconds` the time of a batch;
    `batch` its size (a batch that holds a failing input fails as a whole).
    """

    def __init__(self, settings: Any) -> None:
        self.options: dict[str, Any] = dict(settings.options)
        self.asked: dict[str, int] = {}

    def batch_size(self, request: Request) -> int:
        return int(self.options.get("batch", 1))

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        if "count_file" in self.options:
            lines = "".join(json.dumps([r.function, dict(r.row)]) + "\n" for r in requests)
            handle = os.open(str(self.options["count_file"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(handle, lines.encode())
            finally:
                os.close(handle)
        time.sleep(float(self.options.get("seconds", 0)))
        for request in requests:
            self._maybe_fail(request)
        return [self._answer(r) for r in requests]

    def _share(self, request: Request, salt: str) -> float:
        seed = salt + request.function + json.dumps(dict(request.row), sort_keys=True)
        return int(hashlib.sha256(seed.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF

    def _maybe_fail(self, request: Request) -> None:
        for kind, share in dict(self.options.get("fail", {})).items():
            if self._share(request, kind) >= float(share):
                continue
            key = kind + json.dumps(dict(request.row), sort_keys=True)
            self.asked[key] = self.asked.get(key, 0) + 1
            permanent = kind in {"refused", "invalid_answer", "auth"}
            if permanent or self.asked[key] <= int(self.options.get("fail_attempts", 1)):
                raise ProviderError(kind, f"scripted {kind}", retry_after=0.01 if kind == "rate_limit" else None)

    def _answer(self, request: Request) -> Answer:
        text = " ".join(str(v) for v in request.row.values())
        tokens = -(-len(text.encode()) // 4)
        if self._share(request, "null") < float(self.options.get("null", 0)):
            return Answer(None, input_tokens=tokens)
        scripted = dict(self.options.get("answers", {})).get(text)
        value = scripted if scripted is not None else self._invent(request, text)
        return Answer(value, input_tokens=tokens, output_tokens=-(-len(value.encode()) // 4))

    def _invent(self, request: Request, text: str) -> str:
        draw = self._share(request, "answer")
        constant = request.constant
        if request.embedding:
            return json.dumps([round(self._share(request, str(i)), 6) for i in range(8)])
        if request.function == "ai_classify":
            labels = list(constant["labels"])
            label = labels[min(int(draw * len(labels)), len(labels) - 1)]
            return json.dumps({"response": [label], "error_message": None}) if constant.get("v") == 2 else str(label)
        if request.function == "ai_extract":
            names = list(constant.get("labels") or constant["schema"])
            found = {name: f"{name} of {text}"[:60] for name in names}
            return json.dumps({"response": found, "error_message": None} if constant.get("v") == 2 else found)
        if request.function == "ai_analyze_sentiment":
            return ("positive", "negative", "neutral", "mixed")[int(draw * 4) % 4]
        kind = request.answer_type.upper()
        if kind in {"FLOAT", "DOUBLE"} or kind.startswith("DECIMAL"):
            return repr(round(draw, 6))
        if kind in {"INT", "BIGINT", "SMALLINT", "TINYINT"}:
            return str(int(draw * 100))
        if kind == "BOOLEAN":
            return "true" if draw < 0.5 else "false"
        if kind == "STRING":
            return f"{request.function}: {text}"
        return json.dumps({})
