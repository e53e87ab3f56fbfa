"""The loopback endpoint with files and batches, as the interface documents them, and as it may misbehave."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from integration_tests.ai.endpoint import Endpoint, Seen, _hit


@dataclass
class BatchFaults:
    """What becomes of the next batches. `status` is how they end; `answered` the share of their requests with an answer (the rest
    expires); shares of inputs whose line is `missing`, `doubled`, of HTTP status 500 (`failed_lines`) or 400 (`refused_lines`)."""

    status: str = "completed"
    answered: float = 1.0
    missing: float = 0.0
    doubled: float = 0.0
    failed_lines: float = 0.0
    refused_lines: float = 0.0
    cut_short: bool = False  # the last line of the output file ends in its middle
    honest_counts: bool = True  # else request_counts say less than there is
    lose_reply_of: str = ""  # "files", "batches": done, and hung up without a word
    refuse: str = ""  # "files", "batches", or the batches of an interface (its path): HTTP 400
    unlisted: int = 0  # so many listings do not show batches yet


class BatchEndpoint(Endpoint):
    """`paid` counts good answers per input, whether direct or in batches that ended; batches end when `finish()` is called."""

    def __init__(self, faults: BatchFaults | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.faults = faults or BatchFaults()
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.deleted: list[str] = []
        self.requests: Counter[str] = Counter()
        self.now = time.time
        self.ends_when_looked_at = False
        self._made = threading.Lock()
        self._server.RequestHandlerClass = _handler(self)

    @property
    def paid(self) -> Counter[str]:
        return self.seen.answered

    def forget(self) -> None:
        """As new."""
        self.seen = Seen()
        self.files, self.batches, self.deleted, self.requests = {}, {}, [], Counter()

    def finish(self) -> None:
        """Every batch that is under way ends."""
        with self._made:
            for batch in self.batches.values():
                if batch["status"] in {"validating", "in_progress"}:
                    self._end(batch)

    def _end(self, batch: dict[str, Any]) -> None:
        f = self.faults
        batch["status"] = f.status
        batch[
            {"completed": "completed_at", "failed": "failed_at", "expired": "expired_at", "cancelled": "cancelled_at"}[
                f.status
            ]
        ] = int(self.now())
        if f.status == "failed":
            batch["errors"] = {
                "object": "list",
                "data": [{"code": "invalid_json_line", "message": "line 3 is not JSON"}],
            }
            return
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].decode().split("\n") if line]
        good: list[str] = []
        bad: list[str] = []
        answered = 0
        for number, line in enumerate(lines):
            if number >= len(lines) * f.answered:
                error = {
                    "code": "batch_expired",
                    "message": "This request could not be executed before the window ended.",
                }
                bad.append(
                    json.dumps({"id": f"r{number}", "custom_id": line["custom_id"], "response": None, "error": error})
                )
                continue
            text = self._text(line["body"])
            status, body = 200, None
            if _hit(text, "failed", f.failed_lines):
                status, body = 500, {"error": {"message": "oops"}}
            elif _hit(text, "refused", f.refused_lines):
                status, body = 400, {"error": {"message": "bad input"}}
            else:
                path = line["url"]
                reply = (
                    self._embeddings(line["body"], text)
                    if "embeddings" in path
                    else self._chat(line["body"], text, cut=False)
                )
                body = json.loads(reply[2])
                answered += 1
            out = json.dumps(
                {
                    "id": f"r{number}",
                    "custom_id": line["custom_id"],
                    "response": {"status_code": status, "request_id": "q", "body": body},
                    "error": None,
                }
            )
            if status != 200:
                bad.append(out)
            elif _hit(text, "missing", f.missing):
                self.paid[text] -= 1
                answered -= 1
            else:
                good += [out] * (2 if _hit(text, "doubled", f.doubled) else 1)
        good.reverse()  # in any order
        content = ("\n".join(good) + "\n").encode()
        batch["output_file_id"] = self._keep(content[: len(content) - 20] if f.cut_short else content)
        if bad:
            batch["error_file_id"] = self._keep(("\n".join(bad) + "\n").encode())
        batch["request_counts"] = {
            "total": len(lines),
            "completed": answered if f.honest_counts else 0,
            "failed": len(lines) - answered,
        }

    def _text(self, body: dict[str, Any]) -> str:
        if "input" in body:
            return json.dumps(body["input"])
        return str(body["messages"][-1]["content"])

    def _keep(self, content: bytes) -> str:
        name = f"file-{len(self.files) + 1}"
        self.files[name] = content
        return name

    def serve(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, Any] | None:
        """Status and body (bytes or JSON) of /files and /batches; None hangs up."""
        parts = urlsplit(path)
        words = [w for w in parts.path.split("/") if w][1:]
        with self._made:
            self.requests[f"{method} {words[0]}"] += 1
            if method == "POST" and self.faults.refuse == words[0]:
                return 400, {"error": {"message": "no such thing here"}}
            done = (
                self._files(method, words, headers, raw)
                if words[0] == "files"
                else self._batches(method, words, parts.query, raw)
            )
            if method == "POST" and self.faults.lose_reply_of == words[0]:
                self.faults.lose_reply_of = ""
                return None
            return done

    def _files(self, method: str, words: list[str], headers: dict[str, str], raw: bytes) -> tuple[int, Any]:
        if method == "POST":
            name = self._keep(_file_of(raw, headers["content-type"]))
            return 200, {
                "id": name,
                "object": "file",
                "purpose": "batch",
                "bytes": len(raw),
                "created_at": int(self.now()),
                "filename": "x",
                "status": "processed",
            }
        if words[1] not in self.files or words[1] in self.deleted:
            return 404, {"error": {"message": "no such file"}}
        if method == "DELETE":
            self.deleted.append(words[1])
            return 200, {"id": words[1], "object": "file", "deleted": True}
        return 200, self.files[words[1]]

    def _batches(self, method: str, words: list[str], query: str, raw: bytes) -> tuple[int, Any]:
        if method == "POST":
            asked = json.loads(raw)
            if asked["endpoint"] == self.faults.refuse:
                return 400, {"error": {"message": "no batches of this kind here"}}
            batch = {
                "id": f"batch-{len(self.batches) + 1}", "object": "batch", "status": "in_progress", "created_at": int(self.now()), **asked,
            }  # fmt: skip
            self.batches[batch["id"]] = batch
            return 200, batch
        if len(words) > 1:
            found = self.batches.get(words[1])
            if found and self.ends_when_looked_at and found["status"] == "in_progress":
                self._end(found)
            return (200, found) if found else (404, {"error": {"message": "no such batch"}})
        if self.faults.unlisted > 0:
            self.faults.unlisted -= 1
            return 200, {"object": "list", "data": [], "has_more": False}
        newest = list(reversed(self.batches.values()))
        after = parse_qs(query).get("after", [None])[0]
        start = next((n + 1 for n, b in enumerate(newest) if b["id"] == after), 0)
        page = newest[start : start + 2]  # small pages, so that there are several
        more = start + 2 < len(newest)
        return 200, {
            "object": "list",
            "data": page,
            "has_more": more,
            "first_id": None,
            "last_id": page[-1]["id"] if page else None,
        }


def _file_of(raw: bytes, content_type: str) -> bytes:
    boundary = re.search('boundary="?([^";]+)', content_type)
    assert boundary
    for part in raw.split(b"--" + boundary[1].encode()):
        head, _, body = part.partition(b"\r\n\r\n")
        if b'name="file"' in head:
            return body[:-2]
    raise AssertionError("no file in the upload")


def _handler(endpoint: BatchEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: else each reply waits for an acknowledgement

        def _serve(self, method: str) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {k.lower(): v for k, v in self.headers.items()}
            if "/files" in self.path or "/batches" in self.path:
                done = endpoint.serve(method, self.path, headers, raw)
                if done is None:
                    self.close_connection = True
                    return
                status, body = done
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                more = {"Content-Type": "application/json" if content is not body else "application/octet-stream"}
            else:
                reply = endpoint.respond(self.path, json.loads(raw), headers)
                if reply is None:
                    self.close_connection = True
                    return
                status, more, content = reply
            self.send_response(status)
            for name, value in {**more, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self._serve("POST")

        def do_GET(self) -> None:
            self._serve("GET")

        def do_DELETE(self) -> None:
            self._serve("DELETE")

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    return Handler
