"""What is wrong with a call that its signature does not show: a schema that no answer can be of would be found out by answers that were paid."""

from __future__ import annotations

from spark_mv.ai.prompts import response_schema
from spark_mv.ai.protocol import Request
from spark_mv.ai.schemas import problem_of_schema
from spark_mv.query.ai_calls.signatures import ParsedCall


def problem_of_call(parsed: ParsedCall) -> str | None:
    """Why the call cannot be asked, to stand behind the function's name; None where it can."""
    name = "responseFormat" if parsed.response_schema else "schema"
    if parsed.response_schema is None and name not in parsed.constants:
        return None  # what is asked for is ours
    try:
        asked = Request(parsed.function, {}, parsed.constants, response_schema=parsed.response_schema)
        schema = response_schema(asked)
    except Exception as error:  # JSON of whatever shape
        return f"has a {name} that no answer can be asked for by: {error}"
    problem = None if schema is None else problem_of_schema(schema)
    return f"has a {name} that is no JSON schema: {problem}" if problem else None
