"""Room for deep queries: 2,000 terms of an OR, 500 CTEs in a chain, 200 calls in each other.

Trees are read and written by recursion, of which Python allows a thousand frames. The functions that a run calls work in a
thread with a stack of its own size, and a limit to match; what is deeper still is refused.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from spark_mv.query.syntax.source_text import SourceTextError

P = ParamSpec("P")
R = TypeVar("R")

FRAMES = 60_000
STACK = 1 << 29
"""Bytes of address space; only what is used becomes memory."""

_lock = threading.Lock()
_running = 0
_before = 0
_here = threading.local()


class TooDeepError(SourceTextError):
    """The statement is nested more deeply than there is room for."""


def deep(function: Callable[P, R]) -> Callable[P, R]:
    """The function with room for deep queries. Raises TooDeepError instead of RecursionError."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if getattr(_here, "deep", False):
            return function(*args, **kwargs)
        results: list[R] = []
        errors: list[BaseException] = []

        def body() -> None:
            _here.deep = True
            try:
                results.append(function(*args, **kwargs))
            except RecursionError:
                errors.append(TooDeepError("the statement is nested too deeply to be read"))
            except BaseException as error:
                errors.append(error)

        _enter()
        try:
            context = contextvars.copy_context()
            with _lock:
                usual = threading.stack_size(STACK)
                try:
                    thread = threading.Thread(target=context.run, args=(body,), name="deep", daemon=True)
                    thread.start()
                finally:
                    threading.stack_size(usual)
            thread.join()
        finally:
            _leave()
        if errors:
            raise errors[0]
        return results[0]

    return run


def _enter() -> None:
    global _running, _before
    with _lock:
        if _running == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, FRAMES))
        _running += 1


def _leave() -> None:
    global _running
    with _lock:
        _running -= 1
        if _running == 0:
            sys.setrecursionlimit(_before)
