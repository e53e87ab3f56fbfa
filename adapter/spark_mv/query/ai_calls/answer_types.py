"""Types that an answer can have: their values are kept as a text, most of them as JSON."""

from __future__ import annotations

from sqlglot import exp

from spark_mv.query.syntax.parse import is_spark_type, type_tree


def problem_of_type(wanted: str, format_: str) -> str:
    """What is wrong with a returnType, empty where nothing is. `format_`: the type of the responseFormat, STRING where there is none.

    >>> problem_of_type("ARRAY<INT>", "STRING"), problem_of_type("MAP<INT, STRING>", "STRING")
    ('', 'has a returnType with a MAP<INT, STRING>, and the keys of JSON are texts: ask for a MAP<STRING, …>')
    """
    if not is_spark_type(wanted):
        return f"has a returnType that is no Spark type: {wanted!r}"
    for part in type_tree(wanted).find_all(exp.DataType):
        if isinstance(part.this, exp.Interval) or part.this == exp.DType.INTERVAL:
            return "has a returnType with an INTERVAL, which no answer is read as: ask for a number, and make an interval of it"
        if part.this == exp.DType.MAP and part.expressions and part.expressions[0].this not in exp.DataType.TEXT_TYPES:
            return (
                f"has a returnType with a {part.sql('spark')}, and the keys of JSON are texts: ask for a MAP<STRING, …>"
            )
    if format_ != "STRING" and is_spark_type(format_) and type_tree(format_) != type_tree(wanted):
        return f"has a responseFormat and another returnType ({wanted}), so that the column could not show the answers: leave out one of the two"
    return ""
