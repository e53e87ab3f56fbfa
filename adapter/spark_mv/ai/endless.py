"""The HTTP client. A reply that does not end has bounds of time and size while its body is read: the client's own time-out is one of silence, which a
byte now and then breaks. A redirect is not followed: rows go to the endpoint that the profile names, and nowhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

MOST_BYTES = 64 * 2**20
"""Of one reply: several times what the largest batch of vectors takes."""
FILES = "/files/"
"""Results of batches, which are as large as the batch: only silence ends them."""


def http_package(client: type) -> Any:
    """The HTTP package that the `openai` package is made for, of whose client this is a class: httpx, or httpx2 with later ones."""
    base = next(one for one in client.__mro__ if one.__module__.startswith("httpx"))
    return import_module(base.__module__.partition(".")[0])


def bounded_client(openai: Any, seconds: float) -> Any:
    """An HTTP client for the `openai` package, as it makes its own, that gives a body up after so many seconds or MOST_BYTES, and follows no redirect."""
    http = http_package(openai.DefaultHttpxClient)

    class Bounded(http.SyncByteStream):  # type: ignore[name-defined,misc]
        def __init__(self, response: Any) -> None:
            self.request, self.stream = response.request, response.stream

        def __iter__(self) -> Iterator[bytes]:
            until, size = time.monotonic() + seconds, 0
            for part in self.stream:
                size += len(part)
                if size > MOST_BYTES:
                    raise http.ReadError(f"the reply has more than {MOST_BYTES:,} bytes", request=self.request)
                if time.monotonic() > until:
                    raise http.ReadTimeout("the reply does not end", request=self.request)
                yield part

        def close(self) -> None:
            self.stream.close()

    def bound(response: Any) -> None:
        if FILES not in response.request.url.path:
            response.stream = Bounded(response)

    return openai.DefaultHttpxClient(event_hooks={"response": [bound]}, follow_redirects=False)
