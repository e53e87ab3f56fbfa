"""Files and batches at an OpenAI-compatible endpoint, through the openai package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_mv.ai.plain import plain_text
from spark_mv.ai.protocol import ProviderError, ProviderSettings
from spark_mv.ai.providers.openai import Connection

METADATA = "spark_mv_batch"
"""Under which name a batch carries our own key at the endpoint: by it, a batch is found whose id was never written down."""
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_ERRORS_SAID = 3


@dataclass(frozen=True)
class RemoteBatch:
    """A batch as the endpoint describes it. `answered` counts the requests that it says were answered (0 where it says
    nothing); `ended_at` in seconds since the epoch."""

    id: str
    status: str
    created_at: float = 0.0
    ended_at: float | None = None
    output_file: str | None = None
    error_file: str | None = None
    input_file: str | None = None
    answered: int = 0
    error: str = ""

    @property
    def ended(self) -> bool:
        return self.status in ENDED


class BatchEndpoint:
    """Every method is one request (`find` one per page) and raises ProviderError; nothing is tried again here."""

    def __init__(self, settings: ProviderSettings) -> None:
        self.connection = Connection(settings)

    def upload(self, key: str, content: bytes) -> str:
        """The id of a file with the requests of a batch."""
        file = (f"spark-mv-{key}.jsonl", content, "application/jsonl")
        made = self.connection.call(lambda c: c.files.create(file=file, purpose="batch"))
        if not getattr(made, "id", None):
            raise ProviderError("server", "the endpoint gave no id to the uploaded file")
        return str(made.id)

    def create(self, key: str, file: str, path: str) -> str:
        """The id of the new batch. Endpoints that know idempotency keys make no second one for the same key."""
        made = self.connection.call(
            lambda c: c.batches.create(
                input_file_id=file,
                endpoint=path,
                completion_window="24h",
                metadata={METADATA: key},
                extra_headers={"Idempotency-Key": key},
            )
        )
        if not getattr(made, "id", None):
            raise ProviderError("server", "the endpoint gave no id to the batch")
        return str(made.id)

    def find(self, key: str, since: float) -> RemoteBatch | None:
        """The batch with our key, created at or after `since` (seconds since the epoch), None where the endpoint lists none."""

        def search(client: Any) -> Any:
            for batch in client.batches.list(limit=100):
                if (getattr(batch, "metadata", None) or {}).get(METADATA) == key:
                    return batch
                if (getattr(batch, "created_at", None) or since) < since:  # newest first
                    return None
            return None

        found = self.connection.call(search)
        return None if found is None else _described(found)

    def look(self, remote_id: str) -> RemoteBatch | None:
        """How the batch is, None where the endpoint knows of none."""
        try:
            return _described(self.connection.call(lambda c: c.batches.retrieve(remote_id)))
        except ProviderError as error:
            if error.message.startswith("HTTP 404"):
                return None
            raise

    def read(self, file: str) -> str | None:
        """The text of a file, None where the endpoint has it no more."""
        try:
            return str(self.connection.call(lambda c: c.files.content(file).text))
        except ProviderError as error:
            if error.message.startswith("HTTP 404"):
                return None
            raise

    def delete(self, file: str) -> None:
        """Remove a file."""
        self.connection.call(lambda c: c.files.delete(file))


def _described(batch: Any) -> RemoteBatch:
    ends = [getattr(batch, f"{name}_at", None) for name in ("completed", "failed", "expired", "cancelled")]
    errors = getattr(getattr(batch, "errors", None), "data", None) or []
    said = [f"{getattr(e, 'message', None) or getattr(e, 'code', None) or 'unknown'}" for e in errors[:_ERRORS_SAID]]
    return RemoteBatch(
        id=str(batch.id),
        status=str(getattr(batch, "status", "") or ""),
        created_at=float(getattr(batch, "created_at", 0) or 0),
        ended_at=max((float(at) for at in ends if at), default=None),
        output_file=getattr(batch, "output_file_id", None),
        error_file=getattr(batch, "error_file_id", None),
        input_file=getattr(batch, "input_file_id", None),
        answered=int(getattr(getattr(batch, "request_counts", None), "completed", 0) or 0),
        error=plain_text("; ".join(said)),
    )
