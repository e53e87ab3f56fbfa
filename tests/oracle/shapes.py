"""The shapes of queries that the grammar is meant to make, by their text, so that none silently dies out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_CLOCK = r"(?:now\(\)|current_date\(\)|current_timestamp\(\))"
_QUERY = r"[^()]*(?:\([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*\)[^()]*)*"

SHAPES = {
    "CTE": r"^with ",
    "CTE that reads a CTE": r"^with .*as \(.*\b(?:from|join) q\d+ ",
    "derived table": r"\bfrom \(select ",
    "nested derived tables": rf"\bfrom \(select {_QUERY}\bfrom \(select ",
    "filter over an aggregate": rf"\bfrom \(select {_QUERY} group by {_QUERY}\) ?(?:as )?\w* where ",
    "filter over a window": r" over \(.*\) ?\w* where \S+ (?:= 1|<= 2|> 1)\b",
    "inner join": r"(?:\binner join|[a-z0-9] join) ",
    "left join": r"\bleft join ",
    "right join": r"\bright join ",
    "full join": r"\bfull join ",
    "semi join": r"\bleft semi join ",
    "anti join": r"\bleft anti join ",
    "cross join": r"\bcross join ",
    "lateral join": r", lateral \(",
    "chain of outer joins": r"\b(?:left|right|full) join .*\b(?:left|right|full) join ",
    "USING": r" using \(",
    "NATURAL": r"\bnatural ",
    "UNION": r"\bunion select ",
    "UNION ALL": r"\bunion all select ",
    "UNION BY NAME": r"\bunion all by name ",
    "EXCEPT": r"\bexcept select ",
    "INTERSECT": r"\bintersect select ",
    "EXISTS": r"(?<!not )\bexists \(select ",
    "NOT EXISTS": r"\bnot exists \(select ",
    "IN a query": r"(?<!not )\bin \(select ",
    "NOT IN a query": r"\bnot in \(select ",
    "scalar subquery in WHERE": r"(?:=|<) \(select max\(",
    "scalar subquery in the select list": r"[(,] ?\(select (?:max|count|sum)\(|select \(select ",
    "LATERAL VIEW": r"\blateral view explode",
    "LATERAL VIEW OUTER": r"\blateral view outer explode",
    "generator in FROM": r"(?:,|cross join) lateral explode",
    "outer generator in FROM": r"left join lateral explode",
    "filter()": r"\bfilter\(array",
    "aggregate()": r"\baggregate\(array",
    "transform()": r"\btransform\(array",
    "exists()": r"\bexists\(array",
    "PIVOT": r"\bpivot \(",
    "star": r"select (?:distinct )?\*",
    "star EXCEPT": r"\* except \(",
    "star in a function": r"(?:hash|struct|xxhash64)\((?:\w+\.)?\*\)",
    "GROUP BY ALL": r" group by all",
    "GROUP BY a position": r" group by 1",
    "HAVING": r" having ",
    "QUALIFY": r" qualify ",
    "WINDOW clause": r" window w as ",
    "DISTINCT": r"select distinct ",
    "name with a dot": r"`C\d+\.x`",
    "name with a blank": r"`a \d+`",
    "name with a backquote": r"`q``\d+`",
    "keyword as a name": r"`(?:order|select|group|union|left|where|table|all)`",
    "clock in WHERE": rf" where [^()]*(?:\([^()]*\)[^()]*)*{_CLOCK}",
    "clock in HAVING": rf" having (?:max|min)\([^()]*\)[^()]*{_CLOCK}",
    "clock in ON": rf" on (?:(?! join | where |select ).)*{_CLOCK}",
    "clock in a CTE": rf"^with {_QUERY}\({_QUERY}{_CLOCK}",
    "clock in the select list": rf"(?:case when \S+ <= |if\(\S+ > |datediff\(){_CLOCK}",
    "clock in an aggregate": rf"count_if\([^)]*{_CLOCK}",
    "CASE": r"\bcase when ",
    "FILTER of an aggregate": r"\) filter \(where ",
    "count of distinct values": r"count\(distinct ",
    "top rows": r" order by (?:(?! order by ).)* limit \d+$",
}  # fmt: skip
_FOUND = {name: re.compile(pattern) for name, pattern in SHAPES.items()}


def shapes(texts: Iterable[str]) -> Counter[str]:
    """How many of the queries have each shape; 0 where none has."""
    found = Counter(dict.fromkeys(SHAPES, 0))
    for text in texts:
        found.update(name for name, pattern in _FOUND.items() if pattern.search(text))
    return found
