"""AI calls taken out of a model's SELECT: who must be asked what, and the SELECT with the kept answers in their place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from spark_mv.query.ai_calls.blocks import TextError, edited
from spark_mv.query.ai_calls.cascade import Steps
from spark_mv.query.ai_calls.desugar import desugar
from spark_mv.query.ai_calls.failing import Failing, failing_rows
from spark_mv.query.ai_calls.groups import with_lists
from spark_mv.query.ai_calls.kept_answers import KeptAnswers, kept_answer
from spark_mv.query.ai_calls.keys import (
    AiIdentity,
    LookUp,
    earlier_sql,
    failing_sql,
    identity_hash,
    identity_text,
    key_sql,
    lineage,
    look_up,
    request_sql,
)
from spark_mv.query.ai_calls.places import Places
from spark_mv.query.ai_calls.prompt_marks import prompts_in
from spark_mv.query.ai_calls.requests import Requests
from spark_mv.query.ai_calls.signatures import BUILT_IN, VECTORS, AiFunction, ParsedCall, SignatureError, parse_call
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.analysis.analyze import analyze
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.source_text import Span

__all__ = ["AiCall", "AiFunction", "AiIdentity", "AiPlan", "plan_ai"]


MANY = 9
"""Calls in a query from which on Spark takes longer to plan their look-ups, a second at eight and twice that for each two more, than
to aggregate the answers of their functions."""


@dataclass(frozen=True)
class AiCall:
    """One call site. `request_sql` is a stand-alone SELECT of distinct result_key, function, arguments_hash and request, for the rows
    that can need an answer; `request` is canonical JSON of function and arguments. `result_type` is Spark DDL. `place` is the column of its
    SELECT that it stands in, else the clause. `prompts` are the prompt files that its text is from, '' where there are none. `kept_column`: the
    frozen column that alone shows the answer, '' where there is none; `unkept_sql`: the requests of the rows for which the table has no value in it.
    `lineage`, `earlier`: see keys.lineage and keys.earlier_sql; `before`: the identities of that lineage that the model's table has shown."""

    function: str
    line: int
    column: int
    result_type: str
    request_sql: str
    answer_type: str = "STRING"
    model: str = ""
    model_version: str = ""
    identity_hash: str = ""
    embedding: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    response_schema: str | None = None
    prompt: str | None = None  # of a declared function
    constant: Mapping[str, Any] = field(default_factory=dict)
    row_arguments: tuple[str, ...] = ()
    cascade: Steps = ()
    place: str = ""
    prompts: str = ""
    answered: tuple[str, ...] = ("ok",)  # the statuses of rows that are answers to it
    kept_column: str = ""
    unkept_sql: str = ""
    lineage: str = ""
    earlier: str = "false"
    before: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """All that may be asked."""
        return tuple(step.model for step in self.cascade) or (self.model,)


@dataclass(frozen=True)
class AiPlan:
    """`rounds` in the order in which they must be answered: a later one reads answers of earlier ones."""

    sql: str
    rounds: tuple[tuple[AiCall, ...], ...] = ()
    errors: tuple[QueryError, ...] = ()
    failing: Failing | None = None  # where it was asked for

    @property
    def calls(self) -> tuple[AiCall, ...]:
        return tuple(call for round_ in self.rounds for call in round_)


@deep
def plan_ai(
    sql: str,
    *,
    results_table: str,
    identity: Mapping[str, Any] | AiIdentity,
    schemas: Mapping[str, Any] | None = None,
    functions: Sequence[AiFunction] | Mapping[str, Any] | None = None,
    failing_keys: Sequence[str] = (),
    kept: KeptAnswers | None = None,
) -> AiPlan:
    """The plan for a model's SELECT.

    Args:
        sql: the SELECT, compiled.
        results_table: the result table as it stands in SQL, quoted where needed.
        identity: model, version and what else the result key covers.
        schemas: table name → columns and their types, as far as they are known: those of a subquery are told from those of the row around it, and
            whether equal values of a column are the same. None: nobody asks.
        functions: the project's own AI functions.
        failing_keys: the columns of unique_key, where it is asked which rows show failing answers.
        kept: the model's table, where columns of it keep their answers.

    Errors never raise; they are in `AiPlan.errors`, and then `sql` is the text as given and `rounds` is empty.
    """
    declared = declared_functions(functions)
    if not _mentions(sql, declared):
        return AiPlan(sql)
    try:
        text = TokenText(sql)
    except TextError as error:
        return AiPlan(
            sql, errors=(QueryError("AI_SQL_NOT_UNDERSTOOD", f"AI functions cannot be looked for: {error}."),)
        )
    text, unfit = with_lists(text)
    who = AiIdentity.of(identity)
    errors: list[QueryError] = list(unfit)
    parsed: list[ParsedCall] = []
    for call in text.calls({*BUILT_IN, *declared}):
        try:
            found = parse_call(text, call, declared, who.is_embedding)
            if who.problem_of and (problem := who.problem_of(found)):
                raise SignatureError(problem)
            parsed.append(found)
        except SignatureError as error:
            errors.append(
                QueryError("AI_WRONG_ARGUMENTS", f"{call.name} at line {call.line} {error}.", call.line, call.column)
            )
    if errors or not parsed:
        return AiPlan(sql, errors=tuple(errors))
    spans = [p.call.span for p in parsed]
    prompts = {(p.call.line, p.call.column): prompts_in(text, p.call.span, spans) for p in parsed}
    try:
        plain, refused = desugar(text, {*BUILT_IN, *declared})
        if refused:
            return AiPlan(sql, errors=refused)
        if plain is not text:
            parsed = [parse_call(plain, c, declared, who.is_embedding) for c in plain.calls({*BUILT_IN, *declared})]
        told_apart = _told_apart(plain, parsed, schemas, declared)
        plan = Planner(plain, parsed, results_table, who, failing_keys, prompts, schemas, kept, told_apart).plan()
    except TextError as error:
        return AiPlan(
            sql, errors=(QueryError("AI_SQL_NOT_UNDERSTOOD", f"the query's AI calls cannot be taken out: {error}."),)
        )
    return replace(plan, sql=sql) if plan.errors else plan


def _told_apart(
    text: TokenText,
    calls: Sequence[ParsedCall],
    schemas: Mapping[str, Mapping[str, str]] | None,
    declared: Mapping[str, AiFunction],
) -> Collection[int]:
    """See Analysis.told_apart. All calls where nobody says what columns there are."""
    if schemas is None:
        return {parsed.call.span.start for parsed in calls}
    levels = {name: {"determinism": Level.AI.value} for name in declared}
    return analyze(text.sql, schemas=schemas, functions=levels, rewritten=True).told_apart


def _mentions(sql: str, declared: Mapping[str, AiFunction]) -> bool:
    low = sql.lower()
    return any(name in low for name in (*BUILT_IN, *declared))


def declared_functions(functions: Sequence[AiFunction] | Mapping[str, Any] | None) -> dict[str, AiFunction]:
    """The project's own AI functions by their names in lower case."""
    if not functions:
        return {}
    if isinstance(functions, Mapping):
        functions = [f if isinstance(f, AiFunction) else AiFunction(name=n, **f) for n, f in functions.items()]
    return {f.name.lower(): f for f in functions}


class Planner:
    """Holds the edits while the calls are planned from the innermost outwards."""

    def __init__(
        self,
        text: TokenText,
        parsed: list[ParsedCall],
        results_table: str,
        identity: AiIdentity,
        failing_keys: Sequence[str] = (),
        prompts: Mapping[tuple[int, int], str] | None = None,
        schemas: Mapping[str, Mapping[str, str]] | None = None,
        kept: KeptAnswers | None = None,
        told_apart: Collection[int] = (),
    ) -> None:
        self.told_apart = told_apart  # offsets of calls, see Analysis.told_apart
        self.text, self.results_table, self.identity, self.failing_keys = text, results_table, identity, failing_keys
        self.kept = kept
        self.prompts = prompts or {}  # by the call's line and column: what its arguments were before they moved
        self.calls = sorted(parsed, key=lambda p: p.call.span.end - p.call.span.start)  # inner calls first
        self.places = Places(text, self.calls, schemas, told_apart)

    def plan(self) -> AiPlan:
        errors = self.places.errors()
        if errors:
            return AiPlan(self.text.sql, errors=tuple(errors))
        edits = self.places.edits(self._lookup)
        requests = Requests(self.places, edits, self._request, self.identity.salt)
        found = self._requests(requests)
        shown = {id(p): column for p in self.calls if self.kept and (column := kept_answer(self.places, p, self.kept))}
        unkept = self._requests(requests, {key: there for key, (_, there) in shown.items()}) if shown else {}
        rounds: dict[int, int] = {}
        for parsed in self._by_need({k: needs for k, (_, needs) in found.items()}):
            rounds[id(parsed)] = 1 + max((rounds[id(n)] for n in found[id(parsed)][1]), default=-1)
        read = (p for p in self.calls if self.text.is_read(p.call))
        calls = sorted(read, key=lambda p: (rounds[id(p)], p.call.line, p.call.column))
        ordered = tuple(
            tuple(
                replace(
                    self._call(p, found[id(p)][0]),
                    kept_column=shown[id(p)][0] if id(p) in shown else "",
                    unkept_sql=unkept[id(p)][0] if id(p) in shown else "",
                )
                for p in calls
                if rounds[id(p)] == number
            )
            for number in range(max((rounds[id(p)] for p in calls), default=-1) + 1)
        )
        rounds_asked = tuple(round_ for round_ in ordered if round_)
        plan = AiPlan(edited(self.text.sql, Span(0, len(self.text.sql)), edits), rounds_asked)
        if not self.failing_keys:
            return plan
        failing = failing_rows(self.places, self.failing_keys, partial(self._fails, requests))
        return (
            replace(plan, errors=(_keep_old(self.calls[0], failing),))
            if isinstance(failing, str)
            else replace(plan, failing=failing)
        )

    def _requests(
        self, requests: Requests, unless: Mapping[int, str] = MappingProxyType({})
    ) -> dict[int, tuple[str, list[ParsedCall]]]:
        """Each call's request statement: the one with filters from further out, unless calls then wait for each other. `unless`: conditions
        under which a row of a call's SELECT asks for nothing."""
        found = {id(p): requests.own(p, unless.get(id(p), "")) for p in self.calls}
        for parsed in self.calls:
            carried = requests.carried(parsed, unless.get(id(parsed), ""))
            if carried is None:
                continue
            narrower = {**found, id(parsed): carried}
            if not _circular({k: [id(n) for n in needs] for k, (_, needs) in narrower.items()}):
                found = narrower
        return found

    def _by_need(self, needs: Mapping[int, Sequence[ParsedCall]]) -> list[ParsedCall]:
        done: list[ParsedCall] = []
        seen: set[int] = set()

        def visit(parsed: ParsedCall) -> None:
            if id(parsed) in seen:
                return
            seen.add(id(parsed))
            for other in needs[id(parsed)]:
                visit(other)
            done.append(parsed)

        for parsed in self.calls:
            visit(parsed)
        return done

    def _request(self, parsed: ParsedCall, render: Any) -> tuple[str, str]:
        request = request_sql(parsed, render)
        return request, identity_text(parsed, self.identity)

    def _by_key(self, parsed: ParsedCall) -> bool:
        """Whether an answer is looked up by its key alone. Else Spark looks it up once for all rows that are equal in the columns that the key is made
        of: right only where equal values are the same (not 0.0 and -0.0), and refused for maps and variants."""
        return len(self.calls) >= MANY or parsed.call.span.start not in self.told_apart

    def _lookup(self, parsed: ParsedCall, render: Any) -> LookUp:
        request = request_sql(parsed, render, self._by_key(parsed))
        key = key_sql(request, identity_text(parsed, self.identity), self.identity.salt)
        return look_up(parsed, key, request, self.results_table, self.identity)

    def _fails(self, requests: Requests, parsed: ParsedCall, render: Any) -> str:
        request = request_sql(parsed, render, self._by_key(parsed))
        key = key_sql(request, identity_text(parsed, self.identity), self.identity.salt)
        failing = failing_sql(parsed, key, request, self.results_table, self.identity)
        return f"coalesce({requests.guarded(parsed, f'({failing})')}, false)"

    def _asks_for_vectors(self, parsed: ParsedCall, model: str) -> bool:
        if parsed.function == "ai_embed" and parsed.endpoint is not None:
            return True
        return parsed.function in {"ai_query", *VECTORS} and self.identity.is_embedding(model)

    def _call(self, parsed: ParsedCall, sql: str) -> AiCall:
        model, version = self.identity.model_of(parsed)
        return AiCall(
            function=parsed.function,
            line=parsed.call.line,
            column=parsed.call.column,
            result_type=parsed.result_type,
            request_sql=sql,
            answer_type=parsed.answer_type,
            model=model,
            model_version=version,
            identity_hash=identity_hash(identity_text(parsed, self.identity)),
            embedding=self._asks_for_vectors(parsed, model),
            parameters={**self.identity.parameters, **parsed.parameters},
            response_schema=parsed.response_schema,
            prompt=parsed.declared.prompt if parsed.declared else None,
            constant=dict(parsed.constants),
            row_arguments=tuple(name for name, _, _ in parsed.row),
            cascade=self.identity.cascade_of(parsed),
            place=self.places.shown_in(parsed),
            prompts=self.prompts.get((parsed.call.line, parsed.call.column), ""),
            answered=self.identity.answered,
            lineage=lineage(parsed),
            earlier=earlier_sql(parsed, self.identity),
            before=tuple(self.identity.before.get(lineage(parsed), ())),
        )


def _keep_old(parsed: ParsedCall, why: str) -> QueryError:
    call = parsed.call
    return QueryError(
        "AI_KEEP_OLD",
        f"on_ai_error is keep_old, and a call of the query {why}, so that the row whose old value stays cannot be told. Call it in "
        "a column with an alias of the outermost SELECT (what is filtered or grouped by it, in a model behind this one), or say "
        "on_ai_error: null",
        call.line,
        call.column,
    )


def _circular(needs: Mapping[int, Sequence[int]]) -> bool:
    done: set[int] = set()
    on_the_way: set[int] = set()

    def visit(one: int) -> bool:
        if one in on_the_way:
            return True
        if one in done:
            return False
        on_the_way.add(one)
        if any(visit(other) for other in needs[one]):
            return True
        on_the_way.discard(one)
        done.add(one)
        return False

    return any(visit(one) for one in needs)
