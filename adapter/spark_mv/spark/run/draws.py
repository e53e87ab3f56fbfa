"""Random filters (`where rand() < 0.1`): the draws of the candidate rows live in the model's state table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.facts import Column, SourceFacts, TargetFacts
from spark_mv.maintenance.record import RunRecord
from spark_mv.maintenance.state import Seed
from spark_mv.maintenance.steps.versions import MOVED, at_versions
from spark_mv.query.ai_calls.kept_rows import UnkeptDraws, split_rows
from spark_mv.query.analysis.verdict import Analysis
from spark_mv.query.functions.level import Level
from spark_mv.query.rewrite.draw_texts import DRAW, FilterTexts, Members
from spark_mv.query.rewrite.filter_draws import FilterDraws, split_filter_draws
from spark_mv.query.rewrite.pin import Pins, pin
from spark_mv.query.syntax.reserved import relation
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.look_up import query_columns

TRIALS = 24
"""Draws for each row that is known to have passed, times the candidates for each of these rows: all of them fail for a few
rows in a thousand million."""
TRIALS_AT_MOST = 20_000


@dataclass(frozen=True)
class KeptDraws:
    """`filtered_sql` is the model's SELECT with its draws read from the state table, `candidates` is `draw_sql` with its clock, `texts` those
    of a SELECT with a place for the state table. `below`: fingerprints of drawn columns that are read, `shown`: of the columns of the result that
    show a draw as it is, with their names. The rest as in Rewritten."""

    filtered_sql: str
    candidates: str
    draw_sql: str
    columns: tuple[Column, ...]
    fingerprints: Mapping[str, str]
    state_table: str
    split: Callable[[Members], FilterDraws | None]
    shown: Mapping[str, str]
    below: frozenset[str]
    texts: Callable[[str], FilterTexts | None]
    pins: Pins

    def describable(self, sql: str) -> str:
        """The text reading the draws themselves, for a look at its columns: the state table may not be there yet, or lack
        a draw that the query has got since."""
        return sql.replace(self.state_table, f"(SELECT * FROM ({self.draw_sql}))")

    def seed(self, query: Query, target: TargetFacts, table: str, same_filter: bool) -> Seed:
        """How to draw again for the rows of the table, which are known to have passed this very filter. Counts the rows of
        both: the fewer pass, the more trials it takes."""
        if not same_filter or not all(target.has(c.name) for c in self.columns if not c.name.startswith(DRAW)):
            return Seed()
        kept = target.record.kept if target.record else {}
        shown = {p: name for p, name in self.shown.items() if kept.get(name.lower()) == p and target.has(name)}
        if self.below & set(self.fingerprints.values()) - shown.keys():
            return Seed()
        counts = query(
            f"select (select count(*) from ({self.draw_sql})) as candidates, (select count(*) from {table}) as members"
        )[0]
        if not counts["members"]:
            return Seed()
        trials = min(TRIALS_AT_MOST, max(TRIALS, int(TRIALS * counts["candidates"] / counts["members"])))
        split = self.split(Members(relation("target"), relation("trials"), trials, shown))
        if split is None or split.trial_sql is None or split.accepted_sql is None:
            return Seed()
        return Seed(pin(split.trial_sql, self.pins).sql, pin(split.accepted_sql, self.pins).sql)

    def left_by(self, query: Query, record: RunRecord, sources: Sequence[SourceFacts]) -> str | None:
        """The candidates of the run that left the record: at its instant, of its sources' versions. None where these cannot be read any more."""
        then = [replace(source, version=record.sources.get(source.name), pinnable=True) for source in sources]
        if any(s.view_text is None and (s.version is None or s.version.version == MOVED) for s in then):
            return None
        at = datetime.fromisoformat(record.as_of).replace(tzinfo=timezone.utc)
        sql = at_versions(pin(self.candidates, self.pins.at(at)).sql, then)
        try:
            if sql is not None:
                query(f"select max(hash(*)) as h from ({sql})")
        except Exception:  # a version that is gone
            return None
        return sql


def kept_draws(
    query: Query,
    model: str,
    sql: str,
    read: Callable[[str], Analysis],
    unique_key: Sequence[str],
    declared: Mapping[str, Level],
    state_table: str,
    pins: Pins,
) -> KeptDraws:
    """The draws that decide which rows the model has. `read` gives the verdict on a text. Raises RefusedError where a draw
    decides rows in a way that the key of a row cannot keep."""
    try:
        kept = split_rows(sql, read, unique_key, declared, state_table)
    except UnkeptDraws as error:
        raise RefusedError("NOT_KEPT", f"model {model}: {error}") from error

    def texts(sql: str) -> FilterTexts | None:
        try:
            return split_rows(sql, read, unique_key, declared, relation("state")).split.followed
        except UnkeptDraws:
            return None

    split = kept.split
    draw_sql = pin(kept.draw_sql, pins).sql
    columns = query_columns(query, draw_sql)
    prints = dict(zip(split.columns, split.fingerprints, strict=True))
    return KeptDraws(
        kept.filtered_sql,
        kept.draw_sql,
        draw_sql,
        columns,
        prints,
        state_table,
        lambda members: split_filter_draws(kept.sql, unique_key, state_table, declared, kept.reads, members),
        {column.fingerprint: column.name for column in read(kept.sql).columns if column.kept},
        frozenset(print_ for _, _, print_ in kept.reads),
        texts,
        pins,
    )
