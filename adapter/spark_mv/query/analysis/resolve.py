"""What a name in an expression means: a column of a FROM item, a lateral alias, a keyword function, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from spark_mv.query.analysis.scopes import Scope, ambiguous, find_plain, find_qualified
from spark_mv.query.analysis.taint import CLEAN, Field, TaintedValue, digest
from spark_mv.query.analysis.walk import Walk
from spark_mv.query.functions.catalogue import Mark, is_marked
from spark_mv.query.functions.level import Level
from spark_mv.query.syntax.aggregates import of_rows
from spark_mv.query.syntax.pipes import shown
from spark_mv.query.syntax.table_name import parts_of


def name_value(walk: Walk, node: exp.Expr, parts: list[str], scope: Scope) -> TaintedValue:
    """The value of a possibly qualified column name, or of the keyword function of that name."""
    walk.seen.add(id(node))
    if _is_file_metadata(scope, parts):
        taint = walk.origin("_metadata", Level.NONDETERMINISTIC, walk.place(node))
        _note_drawn(walk, node, digest("metadata", *parts))
        return TaintedValue(taint, digest("metadata", *parts))
    column = _look_up(scope, parts, node)
    if column is not None:
        if is_marked(parts[0], Mark.KEYWORD):
            walk.word_columns.add(parts[0].lower())
        found = column[0].value.inner(column[1])
        owners = ambiguous(scope, parts[0]) if len(parts) == 1 and not scope.aliases_first else []
        if owners:
            places = [shown(owner) for owner in owners]
            example = f"{owners[0]}.{parts[0]}" if places == owners else f"t.{parts[0]} behind `|> AS t`"
            walk.error(
                "AMBIGUOUS_COLUMN",
                f"column {parts[0]} is in {' and '.join(places)}. Write which one is meant, e.g. {example}",
                walk.place(node),
            )
        if Level.NONDETERMINISTIC in found.taint.levels:
            _note_drawn(walk, node, found.fingerprint)
        return found
    if len(parts) == 1:
        keyword = _keyword(walk, node, parts[0])
        if keyword is not None:
            return keyword
    if parts[0].lower() in ("window", "session_window"):
        return TaintedValue(
            CLEAN, digest("time window", *map(str.lower, parts))
        )  # the column that GROUP BY window(…) makes
    name = ".".join(parts)
    if [part.lower() for part in parts[:-1]] in (["session"], ["system", "session"]):
        walk.error(
            "UNSUPPORTED_SYNTAX",
            f"session variable {name} has a value that a later run cannot know. Use a dbt variable",
            walk.place(node),
        )
        return TaintedValue(walk.origin(name, Level.SESSION, walk.place(node)), digest("variable", name.lower()))
    walk.error("UNRESOLVED_COLUMN", _unresolved(name, scope), walk.place(node))
    return TaintedValue(CLEAN, digest("unresolved", name.lower()))


def identifier_parts(node: exp.Expr) -> list[str] | None:
    """The parts of the name that `IDENTIFIER('…')` stands for; None where the text is not a literal."""
    text = node.expressions[0] if len(node.expressions) == 1 else None
    return list(parts_of(text.name)) if isinstance(text, exp.Literal) and text.is_string else None


def _note_drawn(walk: Walk, node: exp.Expr, print_: str) -> None:
    """Remember where a drawn column is read, in the text of the model itself."""
    if isinstance(node, exp.Column) and walk.text.anchor is None:
        first, last = node.parts[0].meta, node.parts[-1].meta
        if "start" in first and "end" in last:
            walk.drawn_reads[first["start"], last["end"] + 1] = print_


def _look_up(scope: Scope, parts: list[str], node: exp.Expr) -> tuple[Field, Sequence[str]] | None:
    """The column, and the path of a field in it."""
    here: Scope | None = scope
    maybe: Field | None = None
    keyword = len(parts) == 1 and is_marked(parts[0], Mark.KEYWORD)
    while here is not None:
        if parts[0].lower() in here.locals_:
            return here.locals_[parts[0].lower()].named(parts[0]), parts[1:]
        if len(parts) > 1:
            found = find_qualified(_alone(here), parts)
            if found is not None:
                return found
        plain, sure = find_plain(here, parts[0])
        alias = here.aliases.get(parts[0].lower())
        if plain is not None and sure and (alias is None or not here.aliases_first or _below_groups(here, plain, node)):
            return plain, parts[1:]
        if alias is not None:
            return alias.named(parts[0]), parts[1:]
        if plain is not None and maybe is None:
            maybe = plain
        here = here.parent
    return None if keyword or maybe is None else (maybe, parts[1:])


def _below_groups(scope: Scope, column: Field, node: exp.Expr) -> bool:
    """Whether a name in HAVING means the column of FROM, though the select list has one of that name: it is a key of the groups, or an
    aggregate reads it (Spark's resolveColWithAgg)."""
    if node.find_ancestor(exp.Having) is None:
        return False
    return of_rows(node) or (scope.below is not None and column.fingerprint in scope.below.grouped)


def _is_file_metadata(scope: Scope, parts: list[str]) -> bool:
    """`_metadata.file_path` and the like tell how a table's files are cut, which any rewrite of them changes."""
    at = 0 if parts[0].lower() == "_metadata" else 1
    if len(parts) <= at or parts[at].lower() != "_metadata":
        return False
    return not any(relation.has("_metadata") for relation in scope.sources.values())


def _alone(scope: Scope) -> Scope:
    return Scope(sources=scope.sources)


def _keyword(walk: Walk, node: exp.Expr, name: str) -> TaintedValue | None:
    word = name.lower()
    quoted = isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and node.this.quoted
    if quoted or not is_marked(word, Mark.KEYWORD):
        return None
    level = walk.level(word) or Level.NONDETERMINISTIC
    return TaintedValue(walk.origin(word.upper(), level, walk.place(node)), digest("call", word))


def _unresolved(name: str, scope: Scope) -> str:
    known = [f"{shown(alias)} ({', '.join(f.name for f in rel.fields[:12])})" for alias, rel in scope.visible()]
    cure = "Correct the name, or add the column to the table's schema"
    if not name.replace(".", "").isidentifier():
        cure += ". The name that Spark gives to an expression without an alias is not always foreseen here: give it one (… AS total)"
    return f"column {name} is in none of the tables in scope: {'; '.join(known) or 'there is no FROM'}. {cure}"
