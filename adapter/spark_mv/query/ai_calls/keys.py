"""What identifies an answer, and the SQL that builds its request, its key, and its look-up in the result table.

The key is sha256 over canonical JSON of function, arguments, prompt version, model, declared model version, decoding
parameters and response schema: hash too little and answers go stale, too much and an unrelated edit costs a call.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_mv.query.ai_calls.cascade import Steps
from spark_mv.query.ai_calls.signatures import ANSWER_FIELD, ERROR_FIELDS, PROMPT_VERSION, VECTORS, ParsedCall
from spark_mv.query.syntax.source_text import Span, string_literals
from spark_mv.query.syntax.source_text import string_literal as quote

_EMBEDDING_NAMES = re.compile(r"embed|minilm|(^|[-/])(bge|gte|e5)-", re.IGNORECASE)

_NO_NULLS = "map('ignoreNullFields', 'true')"
"""What to_json does by itself, unless the session says otherwise."""
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_ALL_DIGITS = f"map('timestampFormat', {quote(_TIME + 'XXX')}, 'timestampNTZFormat', {quote(_TIME)})"
"""How to_json writes timestamps with all of their digits, where it has three by itself."""
_MODEL, _VERSION = "__mv_model__", "__mv_version__"
"""What stands for the model and its version in the text of an identity."""
SUBMITTED, RELEASED = "submitted", "released"
"""Status of rows of the result table that say that a batch holds an input, or does no more: no answer, and no error."""
STALE = "stale"
"""Status of a mark: what was said of the key before is to be asked again, and shown until it is answered."""
NEAR, SIMILAR = "near", "similar"
"""Status of rows with the answer to a near duplicate of their input, one that differs in case or white space and one that means the same: an
answer for models whose `dedupe` finds these, nothing for others."""


@dataclass(frozen=True)
class AiIdentity:
    """Who answers, without who provides it: an answer stays valid when the same model moves to another endpoint.

    `models` gives the model of single functions as name → (model, version). `versions` gives declared versions of
    models named in the SQL. `keep_old`: a row whose answer by this model is missing shows the newest answer of
    another model to the same question (on_model_change: keep, or recompute under a budget). `before`: by the lineage of a call, the identities
    (hashes) whose answers the model's table has shown, newest first. `cascade`: the models that are
    asked in turn by calls that name none of their own; `model` is the last of them.
    """

    model: str
    model_version: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    embedding_models: tuple[str, ...] = ()
    keep_old: bool = False
    # not in its text, by which tables know their configuration: AiContext says it
    cascade: Steps = field(default=(), repr=False)
    shared: tuple[str, ...] = field(default=(), repr=False)  # the statuses of answers to near duplicates that count
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)
    salt: str = field(default="", repr=False)  # SQL of the salt of all hashes of arguments, "" for none
    # what is wrong with a call, as far as only who asks can tell
    problem_of: Callable[[ParsedCall], str | None] | None = field(default=None, repr=False, compare=False)

    @property
    def answered(self) -> tuple[str, ...]:
        """The statuses of rows that are answers."""
        return ("ok", *self.shared)

    @property
    def heard(self) -> str:
        """SQL over the result table: the row says something of an answer."""
        strange = (status for status in (NEAR, SIMILAR) if status not in self.shared)
        return f"status NOT IN ({string_literals((SUBMITTED, RELEASED, *strange))})"

    @classmethod
    def of(cls, value: Mapping[str, Any] | AiIdentity) -> AiIdentity:
        if isinstance(value, AiIdentity):
            return value
        return cls(**value)

    def is_embedding(self, endpoint: str) -> bool:
        """Whether the endpoint gives embeddings: declared so, or named like an embedding model."""
        return endpoint in self.embedding_models or bool(_EMBEDDING_NAMES.search(endpoint))

    def model_of(self, parsed: ParsedCall) -> tuple[str, str]:
        """Model and declared version that answer this call."""
        if parsed.endpoint is not None:
            default = (self.model_version or self.model) if parsed.endpoint == self.model else parsed.endpoint
            return parsed.endpoint, self.versions.get(parsed.endpoint, default)
        if parsed.declared and parsed.declared.model:
            model = parsed.declared.model
            return model, parsed.declared.model_version or self.versions.get(model, model)
        if parsed.declared and parsed.declared.model_version:
            return self.model, parsed.declared.model_version
        if parsed.function in self.models:
            return self.models[parsed.function]
        return self.model, self.model_version or self.model

    def cascade_of(self, parsed: ParsedCall) -> Steps:
        """The models that are asked in turn, none where the call names its model or asks for vectors."""
        named = parsed.endpoint is not None or (parsed.declared is not None and parsed.declared.model)
        if named or parsed.function in VECTORS or parsed.function in self.models or self.is_embedding(self.model):
            return ()
        return self.cascade


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks: one text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def identity_text(parsed: ParsedCall, identity: AiIdentity, by: tuple[str, str] | None = None) -> str:
    """Canonical JSON of all that the key covers besides function and arguments. `by`: model and version, where not those that are asked now."""
    model, version = by or identity.model_of(parsed)
    parts: dict[str, Any] = {"model": model, "model_version": version, "prompt": PROMPT_VERSION}
    parameters = {**identity.parameters, **parsed.parameters}
    if parameters:
        parts["parameters"] = parameters
    if steps := identity.cascade_of(parsed):
        parts["cascade"] = [[step.model, step.version, step.condition] for step in steps]
    if parsed.response_schema:
        parts["schema"] = parsed.response_schema
    if parsed.answer_type != "STRING" and parsed.function == "ai_query":
        parts["type"] = parsed.answer_type
    if parsed.declared:
        declared = parsed.declared
        parts["prompt"] = hashlib.sha256(canonical([declared.prompt, declared.returns]).encode()).hexdigest()
    return canonical(parts)


def lineage(parsed: ParsedCall) -> str:
    """A hash of what stays the same of a call's question when another model, version or prompt answers it: besides the arguments what the SQL itself
    says of who is asked and of what kind the answer is. Calls of one query that share it have one identity."""
    parts = (parsed.function, parsed.endpoint, parsed.parameters, parsed.answer_type, parsed.response_schema)
    return identity_hash(canonical(parts))[:16]


def _known(parsed: ParsedCall, identity: AiIdentity) -> list[str]:
    """Who answers the call, and whose answers to it the model's table has shown, newest first."""
    return [identity_hash(identity_text(parsed, identity)), *identity.before.get(lineage(parsed), ())]


def earlier_sql(parsed: ParsedCall, identity: AiIdentity) -> str:
    """SQL over a row of the result table with the call's function and arguments: whether it answers the same question, whoever answered it. Of the engine's functions
    these say it all, but for ai_query and its types; of that and the project's own, it is what the model's table has shown, and what other models
    and versions said that were asked alike."""
    if parsed.function != "ai_query" and not parsed.declared:
        return "true"
    known = _known(parsed, identity)
    of_any = identity_text(parsed, identity, (parsed.endpoint or _MODEL, _VERSION))
    parts: list[str] = []
    for number, piece in enumerate(re.split(f"{_MODEL}|{_VERSION}", of_any)):
        if number:
            parts.append("model_version" if parsed.endpoint or number == 2 else "model")
        parts.append(quote(piece))
    return f"(identity_hash IN ({string_literals(known)}) OR identity_hash = sha2(concat({', '.join(parts)}), 256))"


def request_sql(parsed: ParsedCall, render: Callable[[Span], str], by_key: bool = False) -> str:
    """SQL of the call's canonical request, NULL when an argument is NULL.

    {"constant": {…}, "function": …, "row": [{"name": value}, …]}: to_json leaves out a NULL field, so each row
    argument is an object of its own that turns to NULL when it comes out empty; the argument's text stands once.

    With nullif, which Spark takes apart late, a look-up joins the answers with the rows of the query before it aggregates them, once for all rows that are
    equal in the columns that are named here: few answers of a large table are touched, but the query before it is planned anew inside each
    look-up, twice as long for every further one. `by_key`: it aggregates all answers of the function, and is a plain join by the key.
    """
    head = canonical({"constant": dict(parsed.constants), "function": parsed.function})[:-1] + ',"row":['
    parts = [quote(head)]
    for number, (name, span, around) in enumerate(parsed.row):
        value = around.replace("{}", render(span), 1)
        if number:
            parts.append("','")
        written = f"to_json(named_struct({quote(name)}, {value}), {_NO_NULLS})"
        parts.append(f"get(array_remove(array({written}), '{{}}'), 0)" if by_key else f"nullif({written}, '{{}}')")
    return f"concat({', '.join([*parts, quote(']}')])})"


def key_sql(request: str, identity: str, salt: str) -> str:
    """SQL of the result key over SQL of the request. `salt`, see salted_sql."""
    return salted_sql(f"concat({quote(identity)}, {request})", salt)


def arguments_hash_sql(request: str, salt: str) -> str:
    """SQL of what identifies function and arguments, whoever answers, over SQL of the request. `salt`, see salted_sql."""
    return salted_sql(request, salt)


def salted_sql(text: str, salt: str) -> str:
    """SQL of the hash of a text. Under a `salt` (SQL; "" for none) who sees a hash and has a guess at the text cannot tell whether it is right."""
    plain = f"sha2({text}, 256)"
    return f"sha2(concat({salt}, {plain}), 256)" if salt else plain


@dataclass(frozen=True)
class LookUp:
    """Where the kept answer to a call is found: `answer` is an aggregate over the rows of `relation` that have the call's `key` as __mv_k.

    The inner names carry a prefix because Spark resolves the outer columns in the key's expression against the
    inner relation first.
    """

    answer: str
    relation: str
    key: str

    def scalar(self) -> str:
        """A scalar subquery's SELECT."""
        return f"SELECT {self.answer} AS __mv_a FROM {self.relation} WHERE __mv_k = {self.key}"

    def joined(self, name: str) -> str:
        """What a FROM clause is joined to, row by row: the answer is the column `name`, and beside it stands the key as `name`k."""
        answers = f"SELECT __mv_k AS {name}k, {self.answer} AS {name} FROM {self.relation} GROUP BY __mv_k"
        return f"LEFT JOIN ({answers}) AS {name}_ ON {name}_.{name}k = {self.key}"


def look_up(parsed: ParsedCall, key: str, request: str, results_table: str, identity: AiIdentity) -> LookUp:
    """The look-up of the kept answer in the call's type."""
    answered = answered_sql("status", identity)
    if parsed.fail_on_error and identity.shared:
        answered = f"({answered} OR status = '{STALE}')"
    where = f"function = {quote(parsed.function)} AND {answered if parsed.fail_on_error else identity.heard}"
    by, rank = "result_key", ""
    if identity.keep_old:
        # 0 for a stranger, and the more the newer
        rank = f"array_position(array({string_literals(_known(parsed, identity)[::-1])}), identity_hash)"
        by, key = "arguments_hash", arguments_hash_sql(request, identity.salt)
        where += _and(earlier_sql(parsed, identity))
    time = f"struct({rank}, called_at)" if rank else "called_at"
    columns = f"{by} AS __mv_k, value AS __mv_v, {time} AS __mv_t"
    if not parsed.fail_on_error:
        columns += ", status AS __mv_s, error AS __mv_e"
    value = "max_by(__mv_v, __mv_t)"
    if identity.shared:
        columns += f", named_struct('r', {rank or '0'}, 's', status, 't', called_at, 'v', value) AS __mv_row"
        value = _of_shared(identity)
    elif not parsed.fail_on_error:
        value = f"max_by(__mv_v, __mv_t) FILTER (WHERE {answered_sql('__mv_s', identity)})"
    answer = convert_sql(value, parsed.answer_type, strict=False)
    if not parsed.fail_on_error:
        error = f"if(max({answered_sql('__mv_s', identity)}), NULL, max_by(__mv_e, __mv_t))"
        fields = [f"'{ANSWER_FIELD}', {answer}", *(f"'{name}', {error}" for name in ERROR_FIELDS)]
        answer = f"if(count(*) = 0, NULL, named_struct({', '.join(fields)}))"
    relation = f"(SELECT {columns} FROM {results_table} WHERE {where}) AS __mv_r"
    return LookUp(answer, relation, key)


def _and(condition: str) -> str:
    return "" if condition == "true" else f" AND {condition}"


def _of_shared(identity: AiIdentity) -> str:
    """An aggregate over the rows of a key: the answer that it has for a model with `dedupe`. What was shared with the key stays its answer although a model without
    dedupe has asked for it since, until it is marked as stale."""
    rows = "collect_list(__mv_row)"
    marked = f"array_max(transform(filter({rows}, y -> y.s = '{STALE}' AND y.r = x.r), y -> y.t))"
    worth = (
        f"named_struct('r', x.r, 'since', coalesce(x.t > {marked}, true), 'shared', x.s <> 'ok', 't', x.t, 'v', x.v)"
    )
    return f"array_max(transform(filter({rows}, x -> {answered_sql('x.s', identity)}), x -> {worth})).v"


def failing_sql(parsed: ParsedCall, key: str, request: str, results_table: str, identity: AiIdentity) -> str:
    """A scalar subquery's SELECT: whether the call was made for this row, and nothing but errors came of it."""
    if parsed.fail_on_error is False:
        return "SELECT false"  # the error itself is the answer that the query asks for
    by, match = (
        ("arguments_hash", arguments_hash_sql(request, identity.salt)) if identity.keep_old else ("result_key", key)
    )
    alike = _and(earlier_sql(parsed, identity)) if identity.keep_old else ""
    relation = f"(SELECT {by} AS __mv_k, status AS __mv_s FROM {results_table} WHERE function = {quote(parsed.function)} AND {identity.heard}{alike}) AS __mv_r"
    return f"SELECT coalesce(NOT max({answered_sql('__mv_s', identity)}), false) AS __mv_f FROM {relation} WHERE __mv_k = {match}"


def answered_sql(column: str, identity: AiIdentity) -> str:
    """SQL: whether the status is that of an answer."""
    return f"{column} IN ({string_literals(identity.answered)})" if identity.shared else f"{column} = 'ok'"


def convert_sql(value: str, result_type: str, strict: bool = True) -> str:
    """SQL that turns the stored text into the call's type. Not `strict`: NULL for a text of another type, as a look-up meets
    among the answers to other calls of the function."""
    kind = result_type.strip().upper()
    if kind == "STRING":
        return value
    if kind == "VARIANT":
        return f"parse_json({value})" if strict else f"try_parse_json({value})"
    if kind.startswith(("ARRAY", "STRUCT", "MAP")):
        # a field may have the name that Spark has for what it cannot read
        other = ", map('columnNameOfCorruptRecord', '__mv_corrupt')" if "_CORRUPT_RECORD" in kind else ""
        return f"from_json({value}, {quote(result_type.strip())}{other})"
    return f"try_cast({value} AS {result_type.strip()})"


def stored_sql(value: str, result_type: str) -> str:
    """SQL of the text from which convert_sql makes the value again."""
    kind = result_type.strip().upper()
    if not kind.startswith(("ARRAY", "STRUCT", "MAP", "VARIANT")):
        return f"cast({value} AS STRING)"
    return f"to_json({value}, {_ALL_DIGITS})" if "TIMESTAMP" in kind else f"to_json({value})"


def identity_hash(text: str) -> str:
    """sha256 of an identity, as kept beside each answer."""
    return hashlib.sha256(text.encode()).hexdigest()
