"""A reply that never ends, fast or slow, ends as an error of its input; memory and time have a bound."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from spark_mv.ai import endless
from spark_mv.ai.protocol import ProviderError, ProviderSettings, Request
from spark_mv.ai.providers.openai import OpenAIProvider
from spark_mv.ai.secret import Secret

pytestmark = pytest.mark.unit
REPLY = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}],
}


class Handler(BaseHTTPRequestHandler):
    """`/fast` and `/slow` never end; `/well` says what an endpoint says."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        body = json.dumps(REPLY).encode()
        if self.path.startswith("/well"):
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        try:
            if self.path.startswith("/well"):
                self.wfile.write(body)
                return
            for _ in range(10_000):
                self.wfile.write(b" " * (100_000 if self.path.startswith("/fast") else 1))
                self.wfile.flush()
                time.sleep(0 if self.path.startswith("/fast") else 0.02)
        except OSError:  # the other side has had enough
            pass

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_a_reply_that_does_not_end(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(how: str) -> str | None:
        provider = OpenAIProvider(ProviderSettings(f"{address}/{how}", Secret("sk-test"), 0.5))
        return provider.answer([Request("ai_gen", {"prompt": "?"}, model="m")])[0].value

    monkeypatch.setattr(endless, "MOST_BYTES", 2**20)
    assert ask("well") == "yes"
    with pytest.raises(ProviderError) as slow:
        ask("slow")
    assert slow.value.kind == "timeout"
    with pytest.raises(ProviderError, match="more than") as fast:
        ask("fast")
    assert fast.value.kind == "connection"


def test_threads_that_begin_together_share_one_client(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def slowly(*args: Any) -> Any:
        time.sleep(0.05)  # the others come meanwhile
        made.append(endless.bounded_client(*args))
        return made[-1]

    monkeypatch.setattr("spark_mv.ai.providers.openai.bounded_client", slowly)
    provider = OpenAIProvider(ProviderSettings(f"{address}/well", Secret("sk-test"), 5.0))
    with ThreadPoolExecutor(8) as pool:
        asked = [[Request("ai_gen", {"prompt": str(n)}, model="m")] for n in range(8)]
        assert {a.value for answers in pool.map(provider.answer, asked) for a in answers} == {"yes"}
    assert len(made) == 1
