"""The warehouse's side of batches: plain SQL, over any connection. See `state` for what the two tables hold."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spark_mv.ai.batches.state import ABANDONED, COLLECTED, EXPECTED, INTENDED, Batch, Claim, Room, Wanted
from spark_mv.ai.files import FILE_TOKENS
from spark_mv.ai.pending import pending_sql, requests_sql
from spark_mv.ai.results import COLUMN_NAMES, COLUMNS, beside, create_table_sql, insert_rows, timestamp
from spark_mv.ai.settings import AiSettings
from spark_mv.ai.work import site_of
from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import RELEASED, SUBMITTED
from spark_mv.query.syntax.source_text import string_literal as quote

Execute = Callable[[str], Sequence[Sequence[Any]]]
TABLE_NAME = "ai_batches"
BATCH_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("batch", "STRING", "our key; the endpoint has it as metadata spark_mv_batch"),
    ("state", "STRING", "intended, submitted, collected or abandoned: a row for each, the furthest counts"),
    ("remote_id", "STRING", "the id at the endpoint"),
    ("endpoint", "STRING", "its address"),
    ("path", "STRING", "which of its interfaces is asked"),
    ("model", "STRING", "the model that is asked"),
    ("inputs", "BIGINT", "how many it holds"),
    ("tokens", "BIGINT", "estimated, input and output"),
    ("cost", "DOUBLE", "estimated, by the prices of batches at that time"),
    ("at", "TIMESTAMP", "when this state was reached"),
    ("intended_at", "TIMESTAMP", "when it was intended"),
    ("invocation_id", "STRING", "the dbt run that submits it"),
    ("project", "STRING", "the dbt project that pays"),
)


def batches_table(results_table: str) -> str:
    """The table of batches, beside that of answers."""
    return beside(results_table, TABLE_NAME)


def create_batches_sql(results_table: str, file_format: str = "delta") -> str:
    """CREATE TABLE IF NOT EXISTS. Made by the first run that may submit."""
    what = "Batches of AI calls, an event a row"
    return create_table_sql(batches_table(results_table), BATCH_COLUMNS, what, file_format)


@dataclass
class SqlStore:
    """The Store (see `state`) over SQL. `calls` are those of the round; collecting needs none."""

    execute: Execute
    results_table: str
    settings: AiSettings
    address: str
    calls: Sequence[AiCall] = ()
    now: Callable[[], float] = time.time

    @property
    def batches_table(self) -> str:
        return batches_table(self.results_table)

    def intend(self, batch: Batch) -> None:
        self.note(batch, INTENDED)

    def note(self, batch: Batch, state: str, inputs: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        values = (
            batch.key, state, batch.remote_id, batch.endpoint, batch.path, batch.model, inputs, tokens, float(cost),
            self.now(), batch.intended_at, batch.invocation_id, batch.project,
        )  # fmt: skip
        self.execute(insert_rows(self.batches_table, BATCH_COLUMNS, [values]))

    def open(self) -> list[Batch]:
        rows = self.execute(
            "SELECT batch, max(path), max(model), max(unix_micros(intended_at)) / 1e6 AS at, max(invocation_id), max(project), "
            f"max(remote_id) FROM {self.batches_table} WHERE endpoint = {quote(self.address)} GROUP BY batch "
            f"HAVING NOT bool_or(state IN ('{COLLECTED}', '{ABANDONED}')) ORDER BY at, batch"
        )
        return [
            Batch(str(r[0]), self.address, str(r[1]), str(r[2]), float(r[3]), str(r[4]), str(r[5] or ""), r[6])
            for r in rows
        ]

    def claim(self, batch: Batch, sites: Sequence[int], room: Room) -> list[Wanted]:
        at = timestamp(self.now())
        pending = pending_sql(self.calls, self.results_table, self.settings, at, invocation_id=batch.invocation_id)
        number = f"row_number() OVER (ORDER BY {_ORDER})"
        before = f"OVER (ORDER BY {_ORDER} ROWS UNBOUNDED PRECEDING)"
        size, tokens = "octet_length(request)", self._tokens()
        limits = [f"number <= {room.inputs}", f"size_so_far - {size} < {room.size}"]
        if room.tokens is not None:
            limits.append(f"tokens_so_far + number * {room.output_tokens} <= {room.tokens}")
        if room.cost is not None:
            limits.append(
                f"(tokens_so_far * {room.input_price!r}D + number * {room.output_tokens * room.output_price!r}D) / 1000 <= {room.cost!r}D"
            )
        first = (
            f"SELECT *, {number} AS number, sum({size}) {before} AS size_so_far, sum({tokens}) {before} AS tokens_so_far "
            f"FROM ({pending}) AS p WHERE state = 'missing' AND site IN ({', '.join(map(str, sites))})"
        )
        of_call, expected = [site_of(call) for call in self.calls], {EXPECTED: asdict(room.each)}
        given = {
            "result_key": "result_key",
            "function": "function",
            "arguments_hash": "arguments_hash",
            "model": _by_site(site.model for site in of_call),
            "model_version": _by_site(site.model_version for site in of_call),
            "identity_hash": _by_site(site.identity_hash for site in of_call),
            "status": f"'{SUBMITTED}'",
            "value": _by_site(json.dumps({**site.reading(), **expected}, sort_keys=True) for site in of_call),
            "attempts": "failures",
            "input_tokens": tokens,
            "called_at": f"timestamp '{at}'",
            "invocation_id": quote(batch.invocation_id),
            "request": "request" if self.settings.keep_requests else "NULL",
            "project": quote(batch.project),
            "batch": quote(batch.key),
            "near_key": "near_key" if self.settings.dedupe else "NULL",
        }
        self.execute(
            f"INSERT INTO {self.results_table} SELECT {_columns(given)} FROM ({first}) AS f WHERE {' AND '.join(limits)}"
        )
        return self._wanted(batch)

    def _wanted(self, batch: Batch) -> list[Wanted]:
        """The claimed inputs with their texts, without those that another open batch has claimed at the same time: of two
        processes, the one that commits later always sees the other's claim, and both may give way."""
        mine = f"batch = {quote(batch.key)}"
        functions = ", ".join(quote(f) for f in sorted({c.function for c in self.calls}))
        open_ = (
            f"array_except(collect_set(batch) FILTER (WHERE status = '{SUBMITTED}' AND NOT {mine}), "
            f"collect_set(batch) FILTER (WHERE status <> '{SUBMITTED}'))"
        )
        claims = (
            f"SELECT result_key, max(input_tokens) FILTER (WHERE {mine} AND status = '{SUBMITTED}') AS tokens "
            f"FROM {self.results_table} WHERE batch IS NOT NULL AND function IN ({functions}) "
            f"GROUP BY result_key HAVING bool_or({mine}) AND size({open_}) = 0"
        )
        rows = self.execute(
            f"SELECT q.result_key, q.request, q.site, c.tokens FROM ({requests_sql(self.calls)}) AS q "
            f"JOIN ({claims}) AS c ON c.result_key = q.result_key"
        )
        wanted = [Wanted(str(r[0]), str(r[1]), int(r[2]), int(r[3])) for r in rows]
        claimed = self.execute(f"SELECT count(*) FROM {self.results_table} WHERE {mine} AND status = '{SUBMITTED}'")
        if int(claimed[0][0]) != len(wanted):
            self.release(batch, [one.result_key for one in wanted])
        return wanted

    def release(self, batch: Batch, kept: Sequence[str] | None = None) -> None:
        given = {
            **{
                name: name
                for name in ("result_key", "function", "arguments_hash", "model", "model_version", "identity_hash")
            },
            "status": f"'{RELEASED}'",
            "called_at": f"timestamp '{timestamp(self.now())}'",
            "invocation_id": "invocation_id",
            "project": "project",
            "batch": "batch",
        }
        but = f" AND result_key NOT IN ({', '.join(map(quote, kept))})" if kept else ""
        self.execute(
            f"INSERT INTO {self.results_table} SELECT {_columns(given)} FROM ({self._open_claims(batch)}) AS c WHERE true{but}"
        )

    def claims(self, batch: Batch) -> list[Claim]:
        names = "result_key, function, arguments_hash, model, model_version, identity_hash, attempts, value, request, input_tokens"
        rows = self.execute(f"SELECT {names} FROM ({self._open_claims(batch)}) AS c")
        return [
            Claim(
                result_key=str(key),
                function=str(function),
                arguments_hash=str(arguments),
                model=str(model),
                model_version=str(version),
                identity_hash=str(identity),
                failures=int(failures or 0),
                site=json.loads(site or "{}"),
                request=request,
                tokens=int(tokens or 0),
            )
            for key, function, arguments, model, version, identity, failures, site, request, tokens in rows
        ]

    def take_in(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.execute(insert_rows(self.results_table, COLUMNS, rows))

    def _open_claims(self, batch: Batch) -> str:
        rows = f"SELECT * FROM {self.results_table} WHERE batch = {quote(batch.key)}"
        return (
            f"SELECT s.* FROM ({rows} AND status = '{SUBMITTED}') AS s "
            f"LEFT ANTI JOIN ({rows} AND status <> '{SUBMITTED}') AS o ON o.result_key = s.result_key"
        )

    def _tokens(self) -> str:
        """SQL of the input tokens of a request, estimated: four bytes each, and so many for a file."""
        size = "octet_length(request)"
        if sites := [str(n) for n, call in enumerate(self.calls) if "files" in call.row_arguments]:  # of ai_query
            text = "octet_length(get_json_object(request, '$.row[0].request'))"
            size = f"if(site IN ({', '.join(sites)}), coalesce({text}, 0) + {4 * FILE_TOKENS}, {size})"
        return f"(ceil({size} / 4) + 1)"


_ORDER = "old_at NULLS FIRST, result_key"


def _by_site(texts: Iterable[str]) -> str:
    """SQL of a property of the call whose number is `site`, given that of each."""
    return f"element_at(array({', '.join(map(quote, texts))}), site + 1)"


def _columns(given: dict[str, str]) -> str:
    kinds = {name: kind for name, kind, _ in COLUMNS}
    return ", ".join(f"cast({given.get(name, 'NULL')} AS {kinds[name]}) AS {name}" for name in COLUMN_NAMES)
