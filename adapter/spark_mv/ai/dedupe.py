"""Near duplicates: of inputs that differ in case or white space alone, or mean the same, one is asked, and its answer counts for all.

An input's key stays what it is. Which inputs are one question is told by a second hash, `near_key`, over the arguments with case and white
space folded, and by the table of what means the same (`similar`), which gives a near_key the one that leads. The others get a row `near` or
`similar` of their own with the answer and the key of the question that it was given to (`answered_by`). Models without `dedupe` do not
read these rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_mv.query.ai_calls.ai_plan import AiCall
from spark_mv.query.ai_calls.keys import NEAR, SIMILAR, salted_sql
from spark_mv.query.syntax.nearest import did_you_mean
from spark_mv.query.syntax.source_text import string_literal as quote

FOLDS = {"case": "lower({})", "whitespace": r"trim(regexp_replace({}, '(?U)\\s+', ' '))"}
"""What may be folded, as SQL around a text. White space of any kind: a line end, a no-break space."""
REPEATS = frozenset({"ai_mask", "ai_fix_grammar", "ai_translate"})
"""Functions that give the text back: the answer to another text is never theirs."""
_FORM = "{normalize: [case, whitespace], semantic: 0.98}"
_WORDS = ("normalize", "semantic")
_LEAST = 0.8
"""Below this cosine two texts have a subject in common and no more."""
_FIRST = ("reused", "submitted", "blocked", "refused", "missing")
"""Who of several is the one that is asked: whoever was already."""


@dataclass(frozen=True)
class Dedupe:
    """What is folded before inputs are compared (words of FOLDS), and from which cosine on two of them mean the same."""

    normalize: tuple[str, ...] = ()
    semantic: float | None = None

    @property
    def statuses(self) -> tuple[str, ...]:
        """Of rows with answers to near duplicates that count."""
        return (NEAR,) if self.semantic is None else (NEAR, SIMILAR)

    def folded(self, text: str) -> str:
        """SQL of a text folded.

        >>> Dedupe(("case",)).folded("t")
        'lower(t)'
        """
        for word in self.normalize:
            text = FOLDS[word].format(text)
        return text


def problem_of_dedupe(value: Any) -> str | None:
    """What is wrong with `dedupe` in the config, None if nothing. An empty one is none.

    >>> problem_of_dedupe({"normalize": ["cases"]})
    "dedupe.normalize has an unknown word 'cases' (did you mean 'case'?)"
    """
    if not isinstance(value, Mapping):
        return f"dedupe must be like {_FORM}, not {value!r}"
    for word in value:
        if word not in _WORDS:
            return f"dedupe has an unknown word {word!r}{did_you_mean(word, _WORDS, f'; it is like {_FORM}')}"
    least = value.get("semantic")
    if least is not None and (
        isinstance(least, bool) or not isinstance(least, (int, float)) or not _LEAST <= least < 1
    ):
        return f"dedupe.semantic must be a cosine from {_LEAST} to below 1, such as 0.98, not {least!r}"
    words = value.get("normalize", [])
    if isinstance(words, str) or not isinstance(words, Sequence) or ("normalize" in value and not words):
        return f"dedupe.normalize must be a list of {' and '.join(FOLDS)}, not {words!r}"
    for word in words:
        if word not in FOLDS:
            known = did_you_mean(word, FOLDS, f"; it has {', '.join(FOLDS)}")
            return f"dedupe.normalize has an unknown word {word!r}{known}"
    return None


def dedupe_of(value: Mapping[str, Any]) -> Dedupe | None:
    """What the config says, see problem_of_dedupe."""
    words = tuple(word for word in FOLDS if word in value.get("normalize", ()))
    least = value.get("semantic")
    return Dedupe(words, None if least is None else float(least)) if words or least is not None else None


def near_key_sql(calls: Sequence[AiCall], dedupe: Dedupe, salt: str = "") -> str:
    """SQL of an input's near_key over its `request` and `site`: equal where the question is the same but for what is folded. NULL for
    calls whose answers repeat the text, or that send files."""
    rows = "from_json(get_json_object(request, '$.row'), 'array<map<string,string>>')"
    folded = f"transform({rows}, m -> transform_values(m, (k, v) -> {dedupe.folded('v')}))"
    texts = ", ".join(
        "NULL" if call.function in REPEATS or "files" in call.row_arguments else quote(call.identity_hash)
        for call in calls
    )
    who = f"element_at(cast(array({texts}) AS array<string>), site + 1)"
    return salted_sql(f"concat({who}, function, get_json_object(request, '$.constant'), to_json({folded}))", salt)


def near_parts(
    calls: Sequence[AiCall], results_table: str, dedupe: Dedupe, found: str, classes: str | None = None, salt: str = ""
) -> list[str]:
    """CTEs over `found` (the requests with their state) that end in __mv_near: the same rows with `near_key` and `leader`, the key of
    the input whose answer counts for this one. Of those that lead, `leader` is their own key; the others' state is `near`, or the
    leader's where that one is under way or has failed. `classes`: SQL of near_keys with the near_key that leads them.

    A leader is an answered input of any run, else one of these. Only answers to these inputs' classes are looked at.
    """
    answered = ", ".join(quote(status) for status in ("ok", *dedupe.statuses))
    own, joined, parts = "k.near_key", "", []
    if classes is not None:
        own, joined = "coalesce(c.class, k.near_key)", " LEFT JOIN __mv_classes c ON c.near_key = k.near_key"
        parts = [f"__mv_classes AS ({classes})"]
    wanted = "SELECT class FROM __mv_keyed WHERE state = 'missing'"
    same = f"SELECT DISTINCT {own} AS class, k.result_key FROM {results_table} k{joined} WHERE {own} IN ({wanted})" + (
        f" AND k.status <> '{SIMILAR}'" if dedupe.semantic is None else ""
    )
    order = f"array_position(array({', '.join(map(quote, _FIRST))}), k.state), k.near_key <> k.class, k.result_key"
    first = f"first_value(struct(k.result_key, k.state, k.retry_at)) OVER (PARTITION BY k.class ORDER BY {order})"
    alone = "n.state <> 'missing' OR (n.answered IS NULL AND n.first.result_key = n.result_key)"
    waits = "n.answered IS NULL AND n.first.state NOT IN ('reused', 'missing')"
    return [
        *parts,
        f"__mv_folded AS (SELECT *, coalesce({near_key_sql(calls, dedupe, salt)}, result_key) AS near_key FROM ({found}))",
        f"__mv_keyed AS (SELECT k.*, {own} AS class FROM __mv_folded k{joined})",
        "__mv_marked AS (SELECT n.class, n.result_key,"
        f" max(k.called_at) FILTER (WHERE k.status IN ({answered})) AS ok_at,"
        " max(k.called_at) FILTER (WHERE k.status = 'stale') AS stale_at"
        f" FROM ({same}) n JOIN {results_table} k ON k.result_key = n.result_key GROUP BY ALL)",
        "__mv_answered AS (SELECT class, max_by(result_key, ok_at) AS answered FROM __mv_marked"
        " WHERE ok_at > coalesce(stale_at, timestamp '1970-01-01') GROUP BY class)",
        f"__mv_first AS (SELECT k.*, a.answered, {first} AS first FROM __mv_keyed k LEFT JOIN __mv_answered a ON a.class = k.class)",
        "__mv_near AS (SELECT n.result_key, n.function, n.arguments_hash, n.request, n.site, n.old_at, n.failures, n.unclaimed, n.near_key,"
        f" CASE WHEN {alone} THEN n.state WHEN {waits} THEN n.first.state ELSE '{NEAR}' END AS state,"
        f" if({alone}, n.result_key, coalesce(n.answered, n.first.result_key)) AS leader,"
        f" if(n.state = 'missing' AND {waits}, n.first.retry_at, n.retry_at) AS retry_at FROM __mv_first n)",
    ]
