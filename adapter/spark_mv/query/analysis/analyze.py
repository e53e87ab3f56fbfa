"""`analyze`: the verdict on one model's SELECT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from spark_mv.query.analysis.field_types import field_type
from spark_mv.query.analysis.fingerprint import literals
from spark_mv.query.analysis.relations import cte_relation, query
from spark_mv.query.analysis.rules import forbid_per_row
from spark_mv.query.analysis.taint import Field, OpenPart, Relation, digest
from spark_mv.query.analysis.verdict import Analysis, ColumnVerdict, Shape, SourceTable
from spark_mv.query.analysis.walk import Env, Walk, WalkedText
from spark_mv.query.functions.catalogue import declared_levels
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.depth import deep
from spark_mv.query.syntax.parse import Parsed, parse, sql_text, written_places
from spark_mv.query.syntax.parser import Call
from spark_mv.query.syntax.query_error import QueryError
from spark_mv.query.syntax.reserved import reserved_names
from spark_mv.query.syntax.table_name import table_key


@deep
def analyze(
    sql: str,
    *,
    unique_key: str | Iterable[str] = (),
    schemas: Mapping[str, Mapping[str, str]] | None = None,
    functions: Mapping[str, Any] | None = None,
    freeze: str | Iterable[str] = (),
    views: Mapping[str, str] | None = None,
    model: str = "model",
    rewritten: bool = False,
    types: bool = False,
) -> Analysis:
    """The level of every part of `sql`, with cause and position, and all that is wrong with it.

    `schemas` maps table names as written (parts joined by dots) to {column: Spark type}; a table that is not in it
    has unknown columns. `functions` maps declared functions to {"determinism": level}; `views` maps view names to
    their SQL, which is looked through. `rewritten`: the text is the engine's, which may use names of its own. `types`: the
    types of the output columns are derived, as far as those of the tables tell them. Never raises for bad SQL: `Analysis.errors` says what is wrong.
    """
    key = (unique_key,) if isinstance(unique_key, str) else tuple(unique_key)
    frozen = (freeze,) if isinstance(freeze, str) else tuple(freeze)
    declared, problems = declared_levels(functions)
    parsed = parse(sql)
    if isinstance(parsed, QueryError):
        error = replace(parsed, message=_parse_message(model, parsed))
        return Analysis(sql, digest("text", sql), (), shape=Shape(row_wise=False, opaque=True), errors=(error,))

    def run(fingerprints: frozenset[str]) -> tuple[Walk, Relation]:
        walk = Walk(
            text=WalkedText(parsed), model=model, declared=declared, schemas=schemas, views=views or {}, unique_key=key,
            key_fingerprints=fingerprints, query=query, cte=cte_relation,
        )  # fmt: skip
        if any(token.token_type == TokenType.PIPE_GT for token in parsed.tokens):
            walk.flag("opaque")  # sqlglot reads |> as CTEs, good for levels, not for rewriting
        relation = query(walk, parsed.tree, Env(top=True, preserved=True))
        relation = replace(relation, flags=relation.flags | walk.frames[0].flags)
        return walk, relation

    try:
        walk, relation = run(frozenset())
        if key and any(level == Level.ORDER_DEPENDENT for _, level, _, _ in walk.functions.values()):
            # whether an ORDER BY is total depends on what the key columns are, which the first walk has found out
            found = [relation.find(name) for name in key]
            prints = frozenset(f.fingerprint for f in found if f is not None)
            if all(found) and any(prints <= tie for tie in walk.ties):
                walk, relation = run(prints)
    except RecursionError:
        error = QueryError("TOO_DEEP", f"model {model}: the statement is nested too deeply to be analysed", 1, 1)
        return Analysis(sql, digest("text", sql), (), shape=Shape(row_wise=False, opaque=True), errors=(error,))
    for name in () if rewritten else reserved_names(sql):
        walk.error(name.code, name.message, (name.line, name.column))
    for problem in problems:
        walk.error("UNKNOWN_LEVEL", problem)
    _check_coverage(walk, parsed.tree)
    # frozen columns in a star of columns that are not known
    hidden = (relation.find(name) for name in frozen if not relation.has(name))
    columns = tuple(_column(item, frozen, types) for item in (*relation.items, *filter(None, hidden)))
    _check_output(walk, relation, key, frozen)
    functions_found = tuple(sorted(walk.functions.values(), key=lambda f: (f[2], f[3], f[0])))
    return Analysis(
        sql=sql,
        fingerprint=_fingerprint(walk, parsed, relation),
        columns=columns,
        predicates=tuple(sorted(walk.predicates.values(), key=lambda p: (p.line, p.column))),
        tables=_tables(relation),
        functions=functions_found,
        shape=_shape(walk, relation),
        errors=tuple(sorted(walk.errors.values(), key=lambda e: (e.line, e.column, e.code))),
        clauses=tuple(sorted(walk.clauses.values(), key=lambda c: (c.line, c.column))),
        rows_level=relation.rows.level,
        rows_draw=origin.cause() if (origin := relation.rows.worst(Level.NONDETERMINISTIC)) else None,
        own_functions=tuple(sorted(walk.own_functions)),
        told_apart=_told_apart(walk, sql),
        word_columns=tuple(sorted(walk.word_columns)),
        drawn_reads=tuple((*place, walk.drawn_reads[place]) for place in sorted(walk.drawn_reads)),
    )


def _told_apart(walk: Walk, sql: str) -> frozenset[int]:
    """None where there are collations: functions hand them on, and the types that are derived here do not have them."""
    sure = frozenset(at for at, found in walk.told_apart.items() if found)
    kinds = (kind for columns in (walk.schemas or {}).values() for kind in columns.values())
    return frozenset() if sure and any("collate" in text.lower() for text in (sql, *kinds)) else sure


def _fingerprint(walk: Walk, parsed: Parsed, relation: Relation) -> str:
    """That of the query, and of the names and expressions of the output columns."""
    unread = [cte.node for cte in walk.ctes if cte.relation is None and not walk.text.via]
    names = (f"{i.name.lower()}={i.fingerprint}" if isinstance(i, Field) else i.fingerprint for i in relation.items)
    return digest("query", relation.fingerprint, literals(parsed, unread), *names)


def _parse_message(model: str, error: QueryError) -> str:
    return (
        f"model {model}: the SQL cannot be read (line {error.line}, column {error.column}): {error.message}. "
        "What cannot be read cannot be checked, so nothing was run. Correct the statement"
    )


def _column(item: Field | OpenPart, frozen: tuple[str, ...], typed: bool) -> ColumnVerdict:
    name = item.name if isinstance(item, Field) else "*"
    is_frozen = name.lower() in {f.lower() for f in frozen}
    origin = item.taint.worst() if item.taint else None
    level = item.taint.level
    return ColumnVerdict(
        name=name,
        level=level,
        levels=item.taint.levels,
        kept=is_frozen or level == Level.NONDETERMINISTIC,
        frozen=is_frozen,
        expression=_expression(item),
        fingerprint=item.fingerprint,
        cause=origin.cause() if origin else None,
        draws=frozenset((o.function, o.line, o.column) for o in item.taint if o.level == Level.NONDETERMINISTIC),
        type=(field_type(item) or "") if typed and isinstance(item, Field) else "",
    )


def _expression(item: Field | OpenPart) -> str:
    if isinstance(item, OpenPart):
        return "*"
    return sql_text(item.node) if item.node is not None else item.name


def _check_output(walk: Walk, relation: Relation, key: tuple[str, ...], frozen: tuple[str, ...]) -> None:
    """The errors about the output as a whole: the key, frozen columns, names that occur twice."""
    names = Counter(f.name.lower() for f in relation.fields)
    offered = ", ".join(f.name for f in relation.fields)
    if not key:
        walk.error(
            "MISSING_UNIQUE_KEY",
            "unique_key is missing. A nondeterministic_mv finds kept values by it: set unique_key to the columns that "
            "identify one row",
        )
    for name in key:
        found = relation.find(name)
        if found is None:
            walk.error(
                "UNKNOWN_UNIQUE_KEY", f"unique_key {name} is not a column of the SELECT ({offered}). {_cure(name)}"
            )
        elif relation.has(name):
            forbid_per_row(walk, "unique_key", found.taint, f"unique_key {name}")
    for part in relation.open_parts if not walk.errors else ():
        if (drawn := part.taint.worst(Level.NONDETERMINISTIC)) is not None:
            walk.error(
                "DRAWN_STAR",
                f"the columns of a star are not known, and {drawn.function} (line {drawn.line}, column {drawn.column}) is among what they "
                "are made of: which of them are kept cannot be told. Write the columns out, each by its name",
                (drawn.line, drawn.column),
            )
    for name in frozen:
        if relation.find(name) is None:
            walk.error(
                "UNKNOWN_FREEZE", f"freeze names {name}, which is not a column of the SELECT ({offered}). {_cure(name)}"
            )
    for name, times in names.items():
        if times > 1:
            walk.error("DUPLICATE_COLUMN", f"the SELECT has {times} columns named {name}. Give each its own name")


def _cure(name: str) -> str:
    return "Say several columns as a list, a name each" if "," in name else "Select it"


def _tables(relation: Relation) -> tuple[SourceTable, ...]:
    times: Counter[str] = Counter(table_key(name) for name, _ in relation.reads)
    shown: dict[str, tuple[str, tuple[str, ...]]] = {}
    for name, via in relation.reads:
        shown.setdefault(table_key(name), (name, via))
    return tuple(SourceTable(name, times[key], via) for key, (name, via) in shown.items())


def _shape(walk: Walk, relation: Relation) -> Shape:
    flags = relation.flags
    several = {"aggregate", "distinct", "window", "set_operation", "limit", "opaque", "pivot"}
    return Shape(
        row_wise=not flags & several,
        aggregate="aggregate" in flags,
        distinct="distinct" in flags,
        window="window" in flags,
        unpartitioned_window="unpartitioned_window" in flags,
        limit="limit" in flags,
        set_operation="set_operation" in flags,
        union_all_only="union_all" in flags and "set_distinct" not in flags,
        join="join" in flags,
        outer_join="outer_join" in flags,
        subquery="subquery" in flags,
        generator="generator" in flags,
        opaque="opaque" in flags,
        pivot="pivot" in flags,
        sample="sample" in flags,
        grouping_sets="grouping_sets" in flags,
        nested="nested" in flags,
        order_dependent=any(level == Level.ORDER_DEPENDENT for _, level, _, _ in walk.functions.values()),
        group_keys=_names(relation, relation.grouping),
        partition_keys=_names(relation, relation.partition, some=True),
    )


def _names(relation: Relation, prints: tuple[str, ...] | None, some: bool = False) -> tuple[str, ...] | None:
    """The output columns with these fingerprints; None if one is missing (`some`: those that are there)."""
    if prints is None:
        return None
    names = {item.fingerprint: item.name for item in reversed(relation.fields)}
    found = [names[p] for p in prints if p in names]
    return tuple(found) if some or len(found) == len(prints) else None


def _check_coverage(walk: Walk, tree: exp.Expr) -> None:
    """Fail closed: a call or a table that stands in the tree and was never judged makes the query opaque, with an error."""
    unread = [cte.node for cte in walk.ctes if cte.relation is None]
    skipped = {id(node) for cte in unread for node in cte.walk()}
    for node in tree.walk():
        call = node.meta.get("call")
        if id(node) in walk.seen or id(node) in skipped:
            continue
        named = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        if named and node.find_ancestor(exp.Hint) is None:
            _unseen(walk, node.name, walk.place(node), " for tables. Put what reads it into a CTE")
        if not isinstance(call, Call):
            continue
        level = walk.level(call.name)
        if level == Level.DETERMINISTIC:
            continue
        _unseen(walk, f"{call.name}()", walk.at(call.start), ". Move it into the SELECT list or a CTE")
    _check_lost_names(walk, tree)


def _unseen(walk: Walk, what: str, place: tuple[int, int], cure: str) -> None:
    line, column = place
    where = f" (line {line}, column {column})" if line else ""
    walk.error("UNSUPPORTED_SYNTAX", f"{what}{where} stands where the analysis does not look{cure}", place)


def _check_lost_names(walk: Walk, tree: exp.Expr) -> None:
    """A name of a column that is not deterministic stands in the text and not in the tree: the parser dropped it."""
    places = written_places(tree)
    units = Counter(
        unit.name.upper().rstrip("S") for unit in tree.find_all(exp.Var)
    )  # interval 1 day, which has no place
    for token in walk.text.parsed.tokens:
        named = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and token.text.lower() in walk.tainted_names
        if named and token.start not in places:
            units[token.text.upper().rstrip("S")] -= 1
            if units[token.text.upper().rstrip("S")] >= 0:
                continue
            _unseen(walk, token.text, walk.at(token.start), ". Compute it in a CTE first")
