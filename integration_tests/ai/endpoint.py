"""An OpenAI-compatible endpoint on loopback that counts, measures, and misbehaves for a seeded share of requests."""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Behaviour:
    """Shares of inputs (0 to 1) that fail in each way, how often each does so, and how long an answer takes."""

    rate_limit: float = 0.0
    server_error: float = 0.0
    time_out: float = 0.0
    malformed: float = 0.0
    truncated: float = 0.0
    refused: float = 0.0
    missing: float = 0.0
    pack_missing: float = 0.0
    pack_doubled: float = 0.0
    lost: float = 0.0  # answered, and the reply does not arrive
    failures: int = 1
    seconds: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 0.0
    hang_seconds: float = 3.0
    retry_after: float = 0.2
    die_after: int | None = None
    window: tuple[int, float] | None = None  # so many requests in so many seconds, 429 beyond
    says_window: bool = True  # in x-ratelimit-* headers
    models: frozenset[str] = frozenset()  # whose requests fail so; none: all
    unsure: float = 0.0  # share of inputs of which a model has 0.4 confidence, else 0.95
    differs: float = 0.0  # share of inputs that each model answers in its own way
    cached: float = 0.0  # share of each request's input tokens that it says it had cached
    graded: float = 0.0  # above 0: a text's confidence is drawn, and below this one each model answers in its own way
    silent: float = 0.0  # share of inputs to which it gives no log-probabilities


@dataclass
class Seen:
    """What the endpoint saw. `answered` counts good answers per input, `asked` all requests per input."""

    asked: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    with_logprobs: Counter[str] = field(default_factory=Counter)
    of_model: Counter[tuple[str, str]] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    most_at_once: int = 0
    refused: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)


class Endpoint:
    """`with Endpoint(Behaviour(...)) as e:` serves on `e.url` until the block ends."""

    def __init__(self, behaviour: Behaviour | None = None, port: int = 0) -> None:
        self.behaviour = behaviour or Behaviour()
        self.seen = Seen()
        self._lock = threading.Lock()
        self._at_once = 0
        self._dead = False
        self.counts_everything = False
        self._window = (0.0, 0)
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()

    def respond(
        self, path: str, body: dict[str, Any], headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes] | None:
        """Status, headers and body of the reply; None hangs up without one."""
        text = json.dumps(body.get("input")) if "embeddings" in path else body["messages"][-1]["content"]
        if isinstance(text, list):  # a question with a file
            text = " ".join(part.get("text") or part.get("image_url", part)["url"] for part in text)
        if "could not be used" in text:
            text = body["messages"][-2]["content"]
        with self._lock:
            self._at_once += 1
            self.seen.most_at_once = max(self.seen.most_at_once, self._at_once)
            self.seen.times.append(time.time())
            self.seen.headers.append(headers)
            self.seen.asked[text] += 1
            model = str(body.get("model"))
            self.seen.models[model] += 1
            self.seen.with_logprobs[model] += bool(body.get("logprobs"))
            self.seen.of_model[model, text] += 1
            b = self.behaviour
            number = self.seen.of_model[model, text] if b.models else self.seen.asked[text]
            if b.die_after is not None and sum(self.seen.answered.values()) >= b.die_after:
                self._dead = True
            room = self._room(b) if b.window else None
        try:
            if room is not None and room[0] < 0:
                self.seen.refused += 1
                return _json(429, {"error": {"message": "slow down"}}, {"Retry-After": str(room[1])})
            reply = None if self._dead else self._reply(path, body, headers, text, number)
            if reply is not None and room is not None and b.says_window:
                more = {
                    "x-ratelimit-remaining-requests": str(room[0]),
                    "x-ratelimit-reset-requests": f"{room[1] * 1000:.0f}ms",
                }
                reply = reply[0], {**reply[1], **more}, reply[2]
            return reply
        finally:
            with self._lock:
                self._at_once -= 1

    def _room(self, behaviour: Behaviour) -> tuple[int, float]:
        """How many more requests the window takes (negative: not even this one), and seconds until the next window."""
        number, seconds = behaviour.window or (0, 1.0)
        now = time.time()
        if now >= self._window[0] + seconds:
            self._window = (now, 0)
        self._window = (self._window[0], self._window[1] + 1)
        return number - self._window[1], self._window[0] + seconds - now + 0.01

    def _reply(
        self, path: str, body: dict[str, Any], headers: dict[str, str], text: str, number: int
    ) -> tuple[int, dict[str, str], bytes] | None:
        b = self.behaviour
        time.sleep(b.slow_seconds if _hit(text, "slow", b.slow) else b.seconds)
        again = number <= b.failures and (not b.models or body.get("model") in b.models)
        if again and _hit(text, "429", b.rate_limit):
            return _json(429, {"error": {"message": "slow down"}}, {"Retry-After": str(b.retry_after)})
        if again and _hit(text, "500", b.server_error):
            return _json(500, {"error": {"message": "oops"}})
        if again and _hit(text, "hang", b.time_out):
            time.sleep(b.hang_seconds)
            return None
        if again and _hit(text, "malformed", b.malformed):
            return 200, {"Content-Type": "application/json"}, b'{"choices": [{"mess'
        if _hit(text, "missing", b.missing):
            return _json(404, {"error": {"message": "no such model"}})
        if _hit(text, "refused", b.refused) and (not b.models or body.get("model") in b.models):
            return _json(400, {"error": {"message": f"bad input with {headers.get('authorization')}"}})
        if "embeddings" in path:
            return self._embeddings(body, text)
        reply = self._chat(body, text, cut=again and _hit(text, "truncated", b.truncated))
        return None if again and _hit(text, "lost", b.lost) else reply

    def _embeddings(self, body: dict[str, Any], text: str) -> tuple[int, dict[str, str], bytes]:
        with self._lock:
            self.seen.answered[text] += 1
        data = [{"index": i, "embedding": [_draw(t, str(k)) for k in range(4)]} for i, t in enumerate(body["input"])]
        return _json(200, {"data": data, "usage": {"prompt_tokens": len(text) // 4, "total_tokens": len(text) // 4}})

    def _sent(self, body: dict[str, Any], text: str) -> int:
        """Tokens of the input: of the text alone, or of everything that was sent."""
        if not self.counts_everything:
            return -(-len(text) // 4)
        said = "".join(str(m["content"]) for m in body["messages"]) + json.dumps(body.get("response_format", ""))
        return -(-len(said) // 4)

    def _usage(self, sent: int, content: str) -> dict[str, Any]:
        cached = {"cached_tokens": int(sent * self.behaviour.cached)}
        return {"prompt_tokens": sent, "completion_tokens": -(-len(content) // 4), "prompt_tokens_details": cached}

    def _packed(
        self, body: dict[str, Any], shape: Any, pack: list[dict[str, Any]]
    ) -> tuple[int, dict[str, str], bytes]:
        schema = shape["properties"]["answers"]["items"]["properties"]["answer"]
        answers = []
        for item in pack:
            text = item["text"]
            answer = _example(schema, text) if schema["type"] == "object" else f"answer to {text}"
            times = 0 if _hit(text, "pack_missing", self.behaviour.pack_missing) else 1
            times += _hit(text, "pack_doubled", self.behaviour.pack_doubled)
            answers += [{"id": item["id"], "answer": answer}] * times
            if times == 1:
                with self._lock:
                    self.seen.answered[text] += 1
        content = json.dumps({"answers": list(reversed(answers))})
        usage = self._usage(self._sent(body, json.dumps(pack)), content)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        return _json(200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})

    def _chat(self, body: dict[str, Any], text: str, cut: bool) -> tuple[int, dict[str, str], bytes]:
        shape = body.get("response_format", {}).get("json_schema", {}).get("schema")
        pack = _pack(shape, text)
        if pack is not None and not cut:
            return self._packed(body, shape, pack)
        apart = _hit(text, "differs", self.behaviour.differs) or _hit(text, "graded", self.behaviour.graded)
        by = text + str(body.get("model")) if apart else text
        content = json.dumps(_example(shape, by)) if shape else f"answer to {text}"
        if cut and shape:
            content = content[: len(content) // 2]
        else:
            with self._lock:
                self.seen.answered[text] += 1
        usage = self._usage(self._sent(body, text), content)
        choice = {
            "index": 0,
            "finish_reason": "length" if cut else "stop",
            "message": {"role": "assistant", "content": content},
        }
        if body.get("logprobs") and not _hit(text, "silent", self.behaviour.silent):
            sure = 0.4 if _hit(text, "unsure", self.behaviour.unsure) else 0.95
            sure = max(1e-6, _draw(text, "graded")) if self.behaviour.graded else sure
            logs = [-0.0, math.log(sure), -0.0] if shape else [math.log(sure)] * 3
            choice["logprobs"] = {"content": [{"token": "t", "logprob": log, "top_logprobs": []} for log in logs]}
        return _json(200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})


def _pack(shape: Any, text: str) -> list[dict[str, Any]] | None:
    """The texts of a request that asks about several."""
    return json.loads(text) if shape and list(shape.get("properties", {})) == ["answers"] else None


def most_in_any_window(times: list[float], seconds: float) -> int:
    """The largest number of requests in any closed window of so many seconds."""
    times, start, most = sorted(times), 0, 0
    for end, at in enumerate(times):
        while times[start] < at - seconds:
            start += 1
        most = max(most, end - start + 1)
    return most


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up waiting is no news."""


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: else each reply waits for an acknowledgement

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = endpoint.respond(self.path, body, {k.lower(): v for k, v in self.headers.items()})
            if reply is None:
                self.close_connection = True
                return
            status, headers, content = reply
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    return Handler


def _json(status: int, body: Any, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(body).encode()


def _draw(text: str, salt: str) -> float:
    return int(hashlib.sha256((salt + text).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def _hit(text: str, salt: str, share: float) -> bool:
    return _draw(text, salt) < share


def _example(schema: dict[str, Any], text: str) -> Any:
    """A value of the schema, always the same for the same text."""
    if "enum" in schema:
        values = [v for v in schema["enum"] if v is not None]
        return values[int(_draw(text, "enum") * len(values)) % len(values)]
    kinds = schema.get("type", "string")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind == "object":
        return {name: _example(part, text + name) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_example(schema.get("items", {}), text + "0")]
    if kind in {"integer", "number"}:
        return int(_draw(text, "number") * 100)
    return _draw(text, "boolean") < 0.5 if kind == "boolean" else f"a {text}"[:40]
