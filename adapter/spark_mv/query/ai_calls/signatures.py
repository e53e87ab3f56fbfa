"""The AI functions' signatures: arguments, versions by argument type, and the type of each call's answer.

Source of names, order and types: Databricks' reference of its AI functions, so that a model moves unchanged; ai_filter, ai_embed,
ai_agg and ai_summarize_agg, which it has not, are named as in Snowflake's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from spark_mv.query.ai_calls.answer_types import problem_of_type
from spark_mv.query.ai_calls.blocks import TokenCall
from spark_mv.query.ai_calls.text import TokenText
from spark_mv.query.syntax.condition import read_expression
from spark_mv.query.syntax.source_text import SourceTextError, Span, quotes_escaped
from spark_mv.query.syntax.table_name import quoted

BUILT_IN = (
    "ai_query", "ai_classify", "ai_extract", "ai_gen", "ai_summarize", "ai_translate", "ai_similarity",
    "ai_analyze_sentiment", "ai_mask", "ai_fix_grammar", "ai_filter", "ai_embed", "ai_agg", "ai_summarize_agg",
)  # fmt: skip
# Part of every result key: raised when a prompt changes in a way that changes answers.
PROMPT_VERSION = "1"
VECTOR = "ARRAY<FLOAT>"
VECTORS = frozenset({"ai_similarity", "ai_embed"})
"""Functions that an embedding model answers, whatever it is called; ai_query asks one where its endpoint is one."""
# Fields of ai_query's STRUCT with failOnError => false. Descriptions of it disagree on the name of the error: both are there.
ANSWER_FIELD = "result"
ERROR_FIELDS = ("errorMessage", "errorStatus")


@dataclass(frozen=True)
class AiFunction:
    """A model function that the project declares: `prompt` holds {name} for each of `arguments`.

    `arguments` empty means one argument named content. `returns` is a Spark type.
    """

    name: str
    returns: str = "STRING"
    arguments: tuple[str, ...] = ()
    prompt: str = ""
    model: str | None = None
    model_version: str | None = None


@dataclass(frozen=True)
class ParsedCall:
    """One call understood. `row` are the arguments that differ from row to row, as (name, span, SQL around it);
    `constants` those that are the same for all rows. `required` names the row arguments whose NULL gives NULL."""

    call: TokenCall
    function: str
    row: tuple[tuple[str, Span, str], ...]
    constants: Mapping[str, Any]
    result_type: str
    answer_type: str  # without the STRUCT of failOnError => false
    endpoint: str | None = None
    fail_on_error: bool = True
    declared: AiFunction | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    response_schema: str | None = None


class SignatureError(ValueError):
    """The arguments do not fit the function; the message says what fits."""


def parse_call(text: TokenText, call: TokenCall, declared: Mapping[str, AiFunction], is_embedding: Any) -> ParsedCall:
    """The call with its literal arguments read and its type settled.

    `is_embedding` tells of an endpoint's name whether it gives embeddings. Raises SignatureError.
    """
    if call.name in declared:
        return _declared(text, call, declared[call.name])
    arguments = _named(text, call)
    reader = _READERS[call.name]
    return reader(text, call, arguments, is_embedding)  # type: ignore[no-any-return]


_POSITIONS: dict[str, tuple[tuple[str, ...], int]] = {  # names in order, how many are required
    "ai_query": (("endpoint", "request", "returntype", "failonerror", "modelparameters", "responseformat", "files"), 2),
    "ai_classify": (("content", "labels", "options"), 2),
    "ai_extract": (("content", "labels", "options"), 2),
    "ai_gen": (("prompt",), 1),
    "ai_summarize": (("content", "max_words"), 1),
    "ai_translate": (("content", "to_lang"), 2),
    "ai_similarity": (("expr1", "expr2"), 2),
    "ai_analyze_sentiment": (("content",), 1),
    "ai_mask": (("content", "labels"), 2),
    "ai_fix_grammar": (("content",), 1),
    "ai_filter": (("content", "condition"), 2),
    "ai_embed": (("content", "endpoint"), 1),
    "ai_agg": (("content", "instruction"), 2),
    "ai_summarize_agg": (("content", "max_words"), 1),
}
_ALIASES = {"schema": "labels"}  # ai_extract's v2 calls its second argument schema


def _named(text: TokenText, call: TokenCall) -> dict[str, Span]:
    names, required = _POSITIONS[call.name]
    found: dict[str, Span] = {}
    for number, span in enumerate(call.arguments):
        first, end = text.token_range(span)
        if end - first > 2 and text.words[first + 1] == "=>":
            name = text.tokens[first].text.lower()
            name = name if name in names else _ALIASES.get(name, name)
            span = text.span(first + 2, end)
        elif end - first > 3 and text.words[first + 1 : first + 3] == ["=", ">"]:
            name, span = text.tokens[first].text.lower(), text.span(first + 3, end)
        elif number < len(names):
            name = names[number]
        else:
            raise SignatureError(
                f"takes at most {len(names)} arguments ({', '.join(names)}), {len(call.arguments)} given"
            )
        if name not in names:
            raise SignatureError(f"has no argument {name!r}; it has {', '.join(names)}")
        if name in found:
            raise SignatureError(f"is given {name!r} twice")
        found[name] = span
    missing = [n for n in names[:required] if n not in found]
    if missing:
        raise SignatureError(f"lacks {' and '.join(missing)}; its arguments are {', '.join(names)}")
    return found


_NOT_LITERAL = object()


def literal(text: TokenText, span: Span) -> Any:
    """The Python value of a literal SQL expression, or the marker _NOT_LITERAL."""
    try:
        tree = read_expression(quotes_escaped(text.text(span)))
    except SourceTextError:
        return _NOT_LITERAL
    return _value(tree)


def _value(tree: Any) -> Any:
    if isinstance(tree, exp.Paren):
        return _value(tree.this)
    if isinstance(tree, exp.Literal):
        if tree.is_string:
            return tree.this
        return float(tree.this) if any(c in tree.this for c in ".eE") else int(tree.this)
    if isinstance(tree, exp.RawString):
        return tree.this
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Neg):
        value = _value(tree.this)
        return -value if isinstance(value, (int, float)) else _NOT_LITERAL
    if isinstance(tree, exp.Array):
        values = [_value(e) for e in tree.expressions]
        return _NOT_LITERAL if _NOT_LITERAL in values else values
    if isinstance(tree, exp.Cast):
        return _value(tree.this)
    if isinstance(tree, exp.Concat):
        values = [_value(e) for e in tree.expressions]
        return "".join(values) if all(isinstance(v, str) for v in values) else _NOT_LITERAL
    if isinstance(tree, (exp.VarMap, exp.Map)):
        keys, held = tree.args.get("keys"), tree.args.get("values")
        if isinstance(keys, exp.Array) and isinstance(held, exp.Array):
            return _pairs([*_interleave(keys.expressions, held.expressions)])
        return _NOT_LITERAL
    if isinstance(tree, exp.Struct):
        out = {}
        for e in tree.expressions:
            if isinstance(e, exp.PropertyEQ):
                name, value = e.this.name, _value(e.expression)
            elif isinstance(e, exp.Alias):
                name, value = e.alias, _value(e.this)
            else:
                return _NOT_LITERAL
            if value is _NOT_LITERAL:
                return _NOT_LITERAL
            out[name] = value
        return out
    if isinstance(tree, exp.Anonymous) and tree.name.lower() in {"map", "named_struct"}:
        return _pairs(tree.expressions)
    return _NOT_LITERAL


def _interleave(a: list[exp.Expression], b: list[exp.Expression]) -> list[exp.Expression]:
    return [e for pair in zip(a, b, strict=False) for e in pair]


def _pairs(expressions: list[exp.Expression]) -> Any:
    values = [_value(e) for e in expressions]
    if _NOT_LITERAL in values or len(values) % 2:
        return _NOT_LITERAL
    return dict(zip(values[::2], values[1::2], strict=False))


def _must(text: TokenText, span: Span, name: str, kind: type | tuple[type, ...], what: str) -> Any:
    value = literal(text, span)
    wrong = not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
    if wrong:
        raise SignatureError(f"needs {what} written out as {name}, not `{text.text(span)}`")
    return value


_STRING = "cast({} as string)"
# BINARY is a file (none where it has no byte), a text the address of one; the request's text stands once, so that it is given to a function of it
_FILE = (
    "element_at(transform(array({}), f -> if(typeof(f) = 'binary', nullif(base64(cast(f as binary)), ''), "
    "concat('url:', cast(f as string)))), 1)"
)


def _simple(result_type: str, *required: str) -> Any:
    def read(text: TokenText, call: TokenCall, arguments: dict[str, Span], is_embedding: Any) -> ParsedCall:
        row = tuple((name, arguments[name], _STRING) for name in required)
        return ParsedCall(call, call.name, row, {}, result_type, result_type)

    return read


def _labels_of(text: TokenText, span: Span, least: int, most: int) -> list[str] | str:
    value = literal(text, span)
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise SignatureError(
            f"needs its labels written out, as ARRAY('a', 'b') or as a JSON string, not `{text.text(span)}`"
        )
    if not least <= len(value) <= most:
        raise SignatureError(f"takes {least} to {most} labels, {len(value)} given")
    if len(set(value)) != len(value):
        raise SignatureError("has the same label twice")
    return value


def _json_argument(name: str, value: str) -> Any:
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise SignatureError(f"has a {name} that is not JSON: {error}") from error
    if not isinstance(parsed, (list, dict)) or not parsed:
        raise SignatureError(f"needs a {name} that is a JSON array or object with at least one entry")
    return parsed


def _options(text: TokenText, arguments: dict[str, Span], constants: dict[str, Any]) -> None:
    if "options" in arguments:
        constants["options"] = _must(text, arguments["options"], "options", dict, "a MAP")


def _classify(text: TokenText, call: TokenCall, arguments: dict[str, Span], is_embedding: Any) -> ParsedCall:
    labels = _labels_of(text, arguments["labels"], 2, 20)
    row = (("content", arguments["content"], _STRING),)
    if isinstance(labels, list):
        if "options" in arguments:
            raise SignatureError("takes options only with labels in a JSON string")
        return ParsedCall(call, call.name, row, {"labels": labels}, "STRING", "STRING")
    parsed = _json_argument("labels", labels)
    names = list(parsed)
    if not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise SignatureError("needs labels that are different strings")
    constants: dict[str, Any] = {"labels": parsed, "v": 2}
    _options(text, arguments, constants)
    return ParsedCall(call, call.name, row, constants, "VARIANT", "VARIANT")


def _extract(text: TokenText, call: TokenCall, arguments: dict[str, Span], is_embedding: Any) -> ParsedCall:
    labels = _labels_of(text, arguments["labels"], 1, 100)
    row = (("content", arguments["content"], _STRING),)
    if isinstance(labels, list):
        if "options" in arguments:
            raise SignatureError("takes options only with a schema in a JSON string")
        fields = ", ".join(f"{quoted(label)}: STRING" for label in labels)
        kind = f"STRUCT<{fields}>"
        return ParsedCall(call, call.name, row, {"labels": labels}, kind, kind)
    constants: dict[str, Any] = {"schema": _json_argument("schema", labels), "v": 2}
    _options(text, arguments, constants)
    return ParsedCall(call, call.name, row, constants, "VARIANT", "VARIANT")


def _mask(text: TokenText, call: TokenCall, arguments: dict[str, Span], is_embedding: Any) -> ParsedCall:
    labels = _labels_of(text, arguments["labels"], 1, 100)
    if not isinstance(labels, list):
        raise SignatureError("needs its labels as ARRAY('a', 'b')")
    return ParsedCall(
        call, call.name, (("content", arguments["content"], _STRING),), {"labels": labels}, "STRING", "STRING"
    )


def _filter(text: TokenText, call: TokenCall, arguments: dict[str, Span], is_embedding: Any) -> ParsedCall:
    condition = _must(text, arguments["condition"], "condition", str, "what is to be true of the content")
    row = (("content", arguments["content"], _STRING),)
    return ParsedCall(call, call.name, row, {"condition": condition}, "BOOLEAN", "BOOLEAN")


def _agg(text: TokenText, call: TokenCall, arguments: dict[str, Span], is_embedding: Any) -> ParsedCall:
    instruction = _must(text, arguments["instruction"], "instruction", str, "what to do with the group's values")
    row = (("content", arguments["content"], _STRING),)
    return ParsedCall(call, call.name, row, {"instruction": instruction}, "STRING", "STRING")


def _embed(text: TokenText, call: TokenCall, arguments: dict[str, Span], is_embedding: Any) -> ParsedCall:
    endpoint = None
    if "endpoint" in arguments:
        endpoint = _must(text, arguments["endpoint"], "endpoint", str, "the embedding model's name as a string")
    row = (("content", arguments["content"], _STRING),)
    return ParsedCall(call, call.name, row, {}, VECTOR, VECTOR, endpoint)


def _summarize(text: TokenText, call: TokenCall, arguments: dict[str, Span], is_embedding: Any) -> ParsedCall:
    words = 50
    if "max_words" in arguments:
        words = _must(text, arguments["max_words"], "max_words", int, "a whole number")
        if words < 0:
            raise SignatureError("needs a max_words of 0 (no limit) or more")
    row = (("content", arguments["content"], _STRING),)
    return ParsedCall(call, call.name, row, {"max_words": words}, "STRING", "STRING")


def _query(text: TokenText, call: TokenCall, arguments: dict[str, Span], is_embedding: Any) -> ParsedCall:
    endpoint = _must(text, arguments["endpoint"], "endpoint", str, "the endpoint's name as a string")
    if not endpoint.strip():
        raise SignatureError("needs the name of an endpoint, and it is empty")
    constants: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    schema = None
    answer = VECTOR if is_embedding(endpoint) else "STRING"
    if "modelparameters" in arguments:
        parameters = _must(text, arguments["modelparameters"], "modelParameters", dict, "a STRUCT of literals")
    if "responseformat" in arguments:
        schema = _must(text, arguments["responseformat"], "responseFormat", str, "a string")
        stripped = schema.strip()
        if stripped[:6].upper() == "STRUCT":
            answer = stripped
        elif stripped.startswith("{"):
            _json_argument("responseFormat", stripped)
        else:
            raise SignatureError("needs a responseFormat that begins with STRUCT< or is a JSON schema")
    if "returntype" in arguments:
        shaped, answer = (
            answer,
            _must(text, arguments["returntype"], "returnType", str, "a Spark type as a string").strip(),
        )
        if problem := problem_of_type(answer, shaped):
            raise SignatureError(problem)
    fail = True
    if "failonerror" in arguments:
        fail = _must(text, arguments["failonerror"], "failOnError", bool, "true or false")
    errors = ", ".join(f"{name}: STRING" for name in ERROR_FIELDS)
    result = answer if fail else f"STRUCT<{ANSWER_FIELD}: {answer}, {errors}>"
    row: tuple[tuple[str, Span, str], ...] = (("request", arguments["request"], "{}"),)
    if "files" in arguments:
        if answer == VECTOR and is_embedding(endpoint):
            raise SignatureError("takes no files for an embedding model")
        row += (("files", arguments["files"], _FILE),)
    return ParsedCall(call, call.name, row, constants, result, answer, endpoint, fail, None, parameters, schema)


def _declared(text: TokenText, call: TokenCall, function: AiFunction) -> ParsedCall:
    names = function.arguments or ("content",)
    if len(call.arguments) != len(names):
        raise SignatureError(f"takes {len(names)} argument(s) ({', '.join(names)}), {len(call.arguments)} given")
    row = tuple((name, span, _STRING) for name, span in zip(names, call.arguments, strict=False))
    return ParsedCall(call, function.name.lower(), row, {}, function.returns, function.returns, None, True, function)


_READERS = {
    "ai_query": _query,
    "ai_classify": _classify,
    "ai_extract": _extract,
    "ai_gen": _simple("STRING", "prompt"),
    "ai_summarize": _summarize,
    "ai_translate": _simple("STRING", "content", "to_lang"),
    "ai_similarity": _simple("FLOAT", "expr1", "expr2"),
    "ai_analyze_sentiment": _simple("STRING", "content"),
    "ai_mask": _mask,
    "ai_fix_grammar": _simple("STRING", "content"),
    "ai_filter": _filter,
    "ai_embed": _embed,
    "ai_agg": _agg,
    "ai_summarize_agg": _summarize,
}
