"""Whether an error says that Spark itself is gone: its process died or was ended, or its server answers no more."""

from __future__ import annotations

from traceback import walk_tb

STOPPED = "Cannot call methods on a stopped SparkContext"
ENDED = "Spark was ended while this ran (its process died, or `spark-mv serve --stop --force`). Run dbt again: what was published stands, and nothing else was changed."


def spark_has_ended(error: BaseException | None) -> bool:
    """Whether the error, or one that it was raised from, is of a connection to Spark that is closed or refused.

    Py4J passes Python's own errors of sockets through, which an endpoint or a database raises as well: those count where they
    come out of Py4J itself.
    """
    while error is not None:
        kind = type(error)
        if STOPPED in str(error) or (
            kind.__name__ == "Py4JNetworkError" or kind.__module__.startswith("thrift.transport")
        ):
            return True
        if isinstance(error, OSError | EOFError) and _raised_in(error, "py4j"):
            return True
        error = error.__cause__
    return False


def connection_is_lost(error: BaseException | None) -> bool:
    """Whether what became of a statement is not known: Spark is gone, or a client of Spark Connect could not hear its end."""
    if spark_has_ended(error):
        return True
    while error is not None:
        kind = type(error)
        if kind.__module__.startswith("grpc") or kind.__name__ in ("SparkConnectGrpcException", "RetriesExceeded"):
            return True
        error = error.__cause__
    return False


def _raised_in(error: BaseException, package: str) -> bool:
    frames = list(walk_tb(error.__traceback__))
    return any(frame.f_globals.get("__name__", "").startswith(f"{package}.") for frame, _ in frames)
