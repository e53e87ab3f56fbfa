"""The project's own functions that a model calls: what they are now, and what they read beside their arguments."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from spark_mv.maintenance.errors import RefusedError
from spark_mv.maintenance.facts import SourceFacts
from spark_mv.query.analysis.analyze import analyze
from spark_mv.spark.formats.commits import Query
from spark_mv.spark.run.look_up import decides_results
from spark_mv.spark.session.current_values import TIME_ZONE

_BODY = ("sqlFunction.expression", "sqlFunction.query")
_NOT_ITSELF = ("sqlFunction.createTime", "Create Time:", "Owner:", "Configs:")
"""What a function that is made again as it was says differently."""
_SETTING = "sqlConfig."


def own_functions(
    query: Query, names: Iterable[str], declared: Mapping[str, Mapping[str, Any]], model: str
) -> tuple[dict[str, str], dict[str, SourceFacts]]:
    """A hash of the definition of each of the functions and of those that they call, and the ones that read tables, as
    sources without versions. One statement each; `names` are declared deterministic (`declared`: all levels).

    Only functions written in SQL have a text: of others, the class and where it comes from is compared. Raises RefusedError
    for a body that is not as deterministic as it is declared.
    """
    prints: dict[str, str] = {}
    reads: dict[str, SourceFacts] = {}
    waiting = sorted(names)
    while waiting:
        name = waiting.pop()
        if name in prints:
            continue
        lines = _described(query, name)
        prints[name] = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
        body = _body(lines)
        if body is None:
            continue
        verdict = analyze(body, unique_key="body", functions=declared, model=model)
        worst = max(verdict.functions, key=lambda call: call[1], default=None)
        if worst is not None:
            raise RefusedError(
                "WRONG_LEVEL",
                f"model {model}: the function {name} is declared deterministic, and its body calls {worst[0]}, which is "
                f"{worst[1]}. Declare it as what it is (functions: {{{name}: {{determinism: …}}}}), or write the call into "
                "the model",
            )
        waiting += verdict.own_functions
        unread = [error for error in verdict.errors if error.code != "UNRESOLVED_COLUMN"]  # such are its parameters
        if verdict.tables or unread:
            reads[f"{name}()"] = SourceFacts(f"{name}()", (), "function that reads tables")
    return prints, reads


def _described(query: Query, name: str) -> list[str]:
    """The lines of DESCRIBE FUNCTION EXTENDED that tell one definition from another; none for an unknown function, of which
    Spark's own message about the query says more."""
    try:
        rows = query(f"describe function extended {name}")
    except Exception as error:
        if "UNRESOLVED_ROUTINE" in str(error) or "ROUTINE_NOT_FOUND" in str(error):
            return []
        raise
    lines = []
    for line in (str(next(iter(row.values()))) for row in rows):
        facts = _usage(line)
        if facts is not None:
            line = json.dumps({k: v for k, v in facts.items() if _is_itself(k)}, sort_keys=True)
        if not line.startswith(_NOT_ITSELF):
            lines.append(re.sub(r"\$\$Lambda.*", "", line))  # such a name is another one in each session
    return lines


def _is_itself(word: str) -> bool:
    """Of all that Spark keeps: what decides the function's values. It keeps the whole session's settings, too."""
    setting = word.removeprefix(_SETTING)
    return word not in _NOT_ITSELF and (setting in (word, TIME_ZONE) or decides_results(setting))


def _usage(line: str) -> dict[str, str] | None:
    """What Spark's catalogue keeps of a function written in SQL."""
    try:
        found = json.loads(line.removeprefix("Usage: "))
    except ValueError:
        return None
    return found if isinstance(found, dict) and any(word in found for word in _BODY) else None


def _body(lines: Iterable[str]) -> str | None:
    """The body as a SELECT, None where the function is not written in SQL."""
    for line in lines:
        facts = _usage(line)
        if facts is not None:
            return facts.get(_BODY[1]) or f"SELECT ({facts[_BODY[0]]}) AS body"
        if line.startswith("Body:"):  # as Databricks prints it
            text = line.removeprefix("Body:").strip()
            return text if re.match(r"(?i)(select|with|from)\b", text) else f"SELECT ({text}) AS body"
    return None
