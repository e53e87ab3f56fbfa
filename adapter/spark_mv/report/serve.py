"""`spark-mv report --serve`: the page on loopback, made anew when a run of dbt has ended.

The page is made by a process of its own each time: an embedded Spark holds the catalogue while it lives, and dbt must be able to
run between two pages.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOST = "127.0.0.1"
LOOK = 2.0
"""Seconds between two looks at the watched file."""
WAITING = "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><meta http-equiv='refresh' content='2'><title>spark-mv report</title><p>The report is being made …"


@dataclass
class Rebuilt:
    """The page's file, what makes it (arguments of `spark-mv report`), the file whose change makes it anew (dbt writes
    run_results.json at the end of each invocation), and the seconds after which it is made anew all the same."""

    file: Path
    arguments: Sequence[str]
    watched: Path
    every: int | None = None
    problem: str = ""
    _seen: float = field(default=-1.0)
    _made_at: float = 0.0

    def due(self, now: float) -> bool:
        """Whether the page is older than what it shows."""
        return self._changed_at() != self._seen or bool(self.every and now - self._made_at >= self.every)

    def make(self) -> bool:
        """Makes the page; where that fails (dbt holds the catalogue, say) the last one stays, and `problem` says why. The next
        change makes it anew."""
        self._seen, self._made_at = self._changed_at(), time.monotonic()
        command = [sys.executable, "-m", "spark_mv.cli", "report", *self.arguments]
        done = subprocess.run(
            [*command, "--refresh", "-o", str(self.file.resolve())], capture_output=True, text=True, check=False
        )
        self.problem = (
            "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it could not be made"])[-1]
        )
        return done.returncode == 0

    def _changed_at(self) -> float:
        return self.watched.stat().st_mtime if self.watched.exists() else 0.0


def make_server(page: Rebuilt, port: int) -> ThreadingHTTPServer:
    """A server on loopback for the page and its version. Requests that name another host (DNS rebinding) are refused."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if (self.headers.get("Host") or "").rpartition(":")[0] not in (HOST, "localhost"):
                self.send_error(403)
            elif self.path == "/version":
                self._send(str(page.file.stat().st_mtime_ns if page.file.exists() else 0), "text/plain")
            elif self.path == "/":
                self._send(page.file.read_text(encoding="utf-8") if page.file.exists() else WAITING, "text/html")
            else:
                self.send_error(404)

        def _send(self, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: the terminal is for problems."""

    return ThreadingHTTPServer((HOST, port), Handler)


def serve_report(page: Rebuilt, port: int, say: Callable[[str], None]) -> None:
    """Serves until Ctrl-C."""
    server = make_server(page, port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"http://{HOST}:{server.server_address[1]}/ (Ctrl-C ends it)")
    try:
        while True:
            if page.due(time.monotonic()):
                say("the page was made" if page.make() else f"the page was not made: {page.problem}")
            time.sleep(LOOK)
    except KeyboardInterrupt:
        say("ended")
    finally:
        server.shutdown()
        server.server_close()
