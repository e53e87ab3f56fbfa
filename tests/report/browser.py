"""A headless Chromium, driven over its debugging pipe: what a page asks for, how it looks, what it answers to a script."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PATH = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WAIT = 60.0


def _value_of(script: str) -> dict[str, Any]:
    return {"expression": script, "returnByValue": True, "awaitPromise": True}


class Browser:
    def __init__(self, profile: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        flags = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars"
        command = f"exec {PATH} {flags} --remote-debugging-pipe --user-data-dir={shlex.quote(str(profile))} about:blank"
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", f"{command} 3<&{theirs_in} 4>&{theirs_out}"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in), os.close(theirs_out)
        self._in, self._out = ours_in, ours_out
        self._buffer, self._number, self.events = b"", 0, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    session: str | None = None

    def ask(self, method: str, **params: Any) -> Any:
        answer = self._answer(method, **params)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _answer(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                return answer
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._in, 1 << 20)
            assert more, "Chromium has ended"
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(text))

    def script(self, text: str) -> Any:
        found = self.ask("Runtime.evaluate", **_value_of(text))
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def open(self, page: str, width: int = 1280, height: int = 900, dark: bool = False, ready: str = "true") -> None:
        """Loads the page and waits until `ready` (a script) is true."""
        self.events.clear()
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.ask("Page.navigate", url=page)
        self.wait(f"document.readyState === 'complete' && location.href !== 'about:blank' && ({ready})")

    def wait(self, condition: str) -> None:
        """Until `condition` (a script) is true."""
        until = time.monotonic() + WAIT
        while not self._holds(condition):
            assert time.monotonic() < until, condition
            time.sleep(0.1)

    def _holds(self, condition: str) -> bool:
        """Whether the script is true now; one that fails is not: a page that loads has no body, one that is being left gives no answer."""
        answer = self._answer("Runtime.evaluate", **_value_of(condition))
        return bool(answer.get("result", {}).get("result", {}).get("value"))

    def requests(self) -> list[str]:
        sent = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith("data:")]

    def complaints(self) -> list[str]:
        """Errors of scripts and of the content policy."""
        found = [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"]
        thrown = [e["params"] for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        return found + [json.dumps(t)[:400] for t in thrown]

    def picture(self, file: Path, whole: bool = True, height: int = 4000) -> None:
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height), "scale": 1}
        data = self.ask(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, **({"clip": clip} if whole else {})
        )
        file.write_bytes(base64.b64decode(data["data"]))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        os.close(self._in), os.close(self._out)
