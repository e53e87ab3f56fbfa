"""What each column of the staged rows is made of, and what becomes of the target's schema."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from spark_mv.maintenance.config import ModelConfig
from spark_mv.maintenance.facts import Column, TargetFacts
from spark_mv.maintenance.forget import ForgetRequest
from spark_mv.maintenance.record import KeptRecord
from spark_mv.maintenance.row_identity import RowIdentity, row_identity
from spark_mv.query.analysis.verdict import Analysis, ColumnVerdict
from spark_mv.query.functions.level import Level

_PINNED = frozenset({Level.COMMAND, Level.USER, Level.SESSION})
_NOT_COMPARABLE = re.compile(r"\b(map<|variant\b|collate\b)", re.IGNORECASE)
_TEXT = re.compile(r"\b(?:var)?char\(\d+\)", re.IGNORECASE)


class Role(str, Enum):
    """KEY finds the row. DATA follows the sources; a difference is an update of the row. PINNED follows the clock, the
    user or the session; a difference is written, but is no update of the row that would redraw anything. KEPT is drawn
    once per key and read back from the target."""

    KEY = "key"
    DATA = "data"
    PINNED = "pinned"
    KEPT = "kept"


@dataclass(frozen=True)
class StagedColumn:
    """One column of the staged rows, of the target's type.

    `fresh`: a kept column of whose own expression the table has no kept values, so that every row draws anew. `redraw`: an update of the row
    draws anew. `in_query` / `in_target`: where a value can come from. `as_json`: Spark cannot compare this type, so
    its JSON text is compared. `forget`: markers of rows whose value was asked
    to be forgotten. `cast` / `retyped`: the query's / the target's value must be cast to `type`, from the type `given`. For an audit: `watched`
    columns may differ without a fault, `approximate` ones are equal up to rounding.
    `may_fail`: under on_ai_error: keep_old, a failing answer leaves the value that the row had. `asked`: frozen, with an AI answer in it and no
    draw, so that a NULL is no value yet.
    `stands_in`: the target's column that holds its values, where that has another name.
    """

    name: str
    type: str
    role: Role
    in_query: bool = True
    in_target: bool = True
    fresh: bool = False
    redraw: bool = False
    as_json: bool = False
    cast: bool = False
    given: str = ""
    retyped: bool = False
    forget: tuple[str, ...] = ()
    watched: bool = False
    approximate: bool = False
    may_fail: bool = False
    asked: bool = False
    stands_in: str = ""


@dataclass(frozen=True)
class ColumnPlan:
    """`replace`: the target's columns or keys change, so that the run replaces the table instead of merging into it.
    `prints` are the fingerprints of the query's columns, by name in lower case; `drawn_anew` says of columns that had a value
    why they get another one; `apart` of columns that draw in rows that were there before, which columns with values of the same draw keep theirs. `stays`: the condition over the table's columns that tells its rows which the run leaves as they are."""

    columns: tuple[StagedColumn, ...]
    identity: RowIdentity = field(default_factory=lambda: RowIdentity(()))
    replace: bool = False
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    prints: Mapping[str, str] = field(default_factory=dict)
    drawn_anew: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stays: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns if c.role is Role.KEY)

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns if c.role is Role.KEPT)

    @property
    def keeps(self) -> bool:
        """Whether rows of the target keep values that were drawn for them: where any of them is found for a row of the query."""
        return bool(self.identity.pairs) and any(
            c.role is Role.KEPT and c.in_target and not c.fresh for c in self.columns
        )

    @property
    def found_by(self) -> dict[str, Any] | None:
        """How rows of the target are found that are not simply found by their key; None where they are."""
        types = {c.name.lower(): c.type for c in self.columns}
        if not self.identity.rekeyed or any(q.lower() not in types for q, _ in self.identity.pairs):
            return None
        return {
            "by_former": self.identity.by_former,
            "pairs": [{"query": q, "table": t, "type": types[q.lower()]} for q, t in self.identity.pairs],
            "former": [{"query": q, "table": t} for q, t in self.identity.former],
        }

    @property
    def kept_prints(self) -> dict[str, str]:
        return {name.lower(): self.prints[name.lower()] for name in self.kept if name.lower() in self.prints}


def plan_columns(
    analysis: Analysis,
    query: Sequence[Column],
    target: TargetFacts,
    config: ModelConfig,
    before: KeptRecord | None,
    anew: bool = False,
) -> ColumnPlan:
    """The columns that a run stages for `query` (its result as DESCRIBE gives it) into `target`, in the table's order; in that of the query where
    the table is made `anew`, or gets other columns.

    `before` is what the last record says of its columns. A kept column keeps the values of the target where its own
    expression is that of the last run: kept then, or frozen only now. All others are drawn anew. Without a record (None), what
    the target holds is taken for kept values: they may be the only copy. Problems (missing or repeated columns, a change that `on_schema_change`
    forbids) are returned, not raised, so that a run can report all of them at once.
    """
    problems = [*_name_problems(query, config), *_misread(analysis, query)]
    verdicts = _verdicts(analysis, query)
    wanted = {c.name.lower(): c for c in query}
    existing = {c.name.lower(): c for c in target.columns} if target.exists else {}
    strange = {n: c for n, c in existing.items() if n in wanted and (c.type, wanted[n].type) in target.uncastable}
    existing = {name: column for name, column in existing.items() if name not in strange}  # as if it had another name
    added = tuple(c.name for c in query if c.name.lower() not in existing) if target.exists else ()
    removed = (
        tuple(c.name for c in target.columns if c.name.lower() not in wanted or c in strange.values())
        if target.exists
        else ()
    )
    retyped = tuple(c.name for c in query if c.name.lower() in existing and not same_type(c, existing[c.name.lower()]))
    changed = bool(added or removed or retyped)
    policy = config.on_schema_change if changed else "sync_all_columns"

    names: Sequence[Column] = target.columns
    if not target.exists or anew or (policy == "sync_all_columns" and changed):
        names = query
    elif policy == "append_new_columns":
        names = [*target.columns, *(wanted[name.lower()] for name in added)]
    elif policy == "fail":
        problems.append(_columns_changed(added, removed, retyped))
    keys = {key.lower() for key in config.unique_key}
    prints = column_prints(analysis, query)
    identity = row_identity(
        config.unique_key,
        before.keys if before else (),
        {name: c.name for name, c in wanted.items()},
        {name: c.name for name, c in existing.items()},
        prints,
        before.columns if before else {},
    )
    columns = tuple(
        _staged(column, column.name.lower() in keys, wanted, existing, verdicts, config, before, target.forget)
        for column in names
    )
    if before is not None and target.exists:
        columns = _with_values_of(columns, target, prints, before)
    if any(c.role is Role.KEY and c.retyped for c in columns):
        identity = identity.retyped()
    if target.exists and identity.rekeyed:
        found = {q.lower(): t for q, t in identity.pairs if q.lower() != t.lower()}
        columns = tuple(
            replace(c, stands_in=found[c.name.lower()], in_target=True, retyped=True)
            if c.role is Role.KEY and c.name.lower() in found
            else c
            for c in columns
        )
    if strange and names is not query and policy != "fail":
        was = "; ".join(f"column {c.name} was {c.type} and is {wanted[n].type} now" for n, c in strange.items())
        kept = f"There is no cast from the one to the other, and on_schema_change: {policy} keeps the table's type"
        problems.append(f"{was}. {kept}. {_CURE}")
    missing_keys = keys - {c.name.lower() for c in columns}
    if missing_keys and not problems:
        missing = f"unique_key: {', '.join(sorted(missing_keys))} is not in the table"
        problems.append(f"{missing}, and on_schema_change: {policy} keeps new columns out of it. {_CURE}")
    return ColumnPlan(
        columns=columns,
        identity=identity,
        replace=bool(added and policy != "ignore")
        or (changed and policy == "sync_all_columns")
        or any(c.stands_in for c in columns)
        or (target.exists and identity.rekeyed),
        added=added,
        removed=removed,
        retyped=retyped,
        problems=tuple(problems),
        prints=prints,
        drawn_anew={c.name: _why_anew(c, before, strange) for c in columns if c.fresh or _is_strange(c, strange)},
        apart=_apart(columns, analysis, strange) if target.exists else {},
    )


def _with_values_of(
    columns: Sequence[StagedColumn], target: TargetFacts, prints: Mapping[str, str], before: KeptRecord
) -> tuple[StagedColumn, ...]:
    """A kept column of whose expression the table has no values under its name takes those of the kept column that had the expression, and has it
    no longer: it has got another name. Not where several had it, or have it now, or where the type is another one."""
    old = [c for c in target.columns if c.name.lower() in before.kept]
    old = [c for c in old if prints.get(c.name.lower()) != before.columns.get(c.name.lower())]
    new = [c for c in columns if c.role is Role.KEPT and (c.fresh or not c.in_target)]
    wanted = Counter(prints.get(c.name.lower()) for c in new)

    def with_values(column: StagedColumn) -> StagedColumn:
        print_ = prints.get(column.name.lower())
        had = [c for c in old if print_ is not None and before.columns.get(c.name.lower()) == print_]
        if column not in new or len(had) != 1 or wanted[print_] != 1:
            return column
        if not same_type(had[0], Column(column.name, column.type)):
            return column
        name = had[0].name
        forget = tuple(r.flag for r in target.forget if {name.lower(), column.name.lower()} & {*r.columns})
        return replace(column, stands_in=name, in_target=True, fresh=False, retyped=False, forget=forget)

    return tuple(with_values(column) for column in columns)


def _apart(
    columns: Sequence[StagedColumn], analysis: Analysis, strange: Mapping[str, Column]
) -> dict[str, tuple[str, ...]]:
    draws = {c.name.lower(): c.draws for c in analysis.columns}
    kept = [c for c in columns if c.role is Role.KEPT and draws.get(c.name.lower())]
    stay = [c for c in kept if c.in_target and not c.fresh and not _is_strange(c, strange)]
    found = {
        c.name: tuple(s.name for s in stay if draws[s.name.lower()] & draws[c.name.lower()])
        for c in kept
        if c not in stay
    }
    return {name: others for name, others in found.items() if others}


_CURE = "Run with --full-refresh, or set on_schema_change: sync_all_columns"


def _columns_changed(added: Sequence[str], removed: Sequence[str], retyped: Sequence[str]) -> str:
    other = [*retyped, *(name for name in added if name in removed)]  # a struct's fields
    kinds = (
        ("new", [name for name in added if name not in removed]),
        ("gone", [name for name in removed if name not in added]),
        ("other type", other),
    )
    what = "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in kinds if columns)
    return f"the columns of the query changed ({what}) and on_schema_change is fail. {_CURE}"


def _is_strange(column: StagedColumn, strange: Mapping[str, Column]) -> bool:
    return column.role is Role.KEPT and column.name.lower() in strange


def _why_anew(column: StagedColumn, before: KeptRecord | None, strange: Mapping[str, Column]) -> str:
    if _is_strange(column, strange):
        return f"what it was, {strange[column.name.lower()].type}, cannot be cast to {column.type}"
    return (
        "its expression changed"
        if before is not None and column.name.lower() in before.kept
        else "it was not kept before"
    )


def _staged(
    column: Column,
    is_key: bool,
    wanted: Mapping[str, Column],
    existing: Mapping[str, Column],
    verdicts: Mapping[str, ColumnVerdict],
    config: ModelConfig,
    before: KeptRecord | None,
    forget: Sequence[ForgetRequest],
) -> StagedColumn:
    name = column.name.lower()
    verdict = verdicts.get(name)
    role = Role.KEY if is_key else _role(verdict)
    in_query, in_target = name in wanted, name in existing
    fresh = (
        role is Role.KEPT
        and in_target
        and verdict is not None
        and before is not None
        and before.columns.get(name) != verdict.fingerprint
    )
    return StagedColumn(
        name=column.name,
        type=column.type,
        role=role,
        in_query=in_query,
        in_target=in_target,
        fresh=fresh,
        redraw=role is Role.KEPT and not (verdict is not None and verdict.frozen) and config.redraws(column.name),
        as_json=bool(_NOT_COMPARABLE.search(column.type)),
        cast=in_query and not same_type(wanted[name], column),
        given=_given(column, wanted.get(name), existing.get(name)),
        forget=tuple(r.flag for r in forget if name in r.columns) if role is Role.KEPT else (),
        asked=role is Role.KEPT and verdict is not None and _asks_alone(verdict),
        retyped=in_target and not same_type(existing[name], column),
    )


def _given(column: Column, query: Column | None, table: Column | None) -> str:
    return next((other.type for other in (query, table) if other is not None and not same_type(other, column)), "")


def _asks_alone(verdict: ColumnVerdict) -> bool:
    return Level.AI in verdict.levels and Level.NONDETERMINISTIC not in verdict.levels


def _role(verdict: ColumnVerdict | None) -> Role:
    if verdict is None:
        return Role.DATA
    if verdict.kept:
        return Role.KEPT
    return Role.PINNED if verdict.levels & _PINNED else Role.DATA


def column_prints(analysis: Analysis, query: Sequence[Column]) -> dict[str, str]:
    """The fingerprints of the query's columns, by name in lower case."""
    wanted = {column.name.lower() for column in query}
    return {name: verdict.fingerprint for name, verdict in _verdicts(analysis, query).items() if name in wanted}


def _verdicts(analysis: Analysis, query: Sequence[Column]) -> dict[str, ColumnVerdict]:
    """Verdicts by output name. Unaliased expressions are named by Spark: these follow each other in both lists."""
    found = {verdict.name.lower(): verdict for verdict in analysis.columns}
    names = {column.name.lower() for column in query}
    nameless = [column.name.lower() for column in query if column.name.lower() not in found]
    others = [verdict for verdict in analysis.columns if verdict.name.lower() not in names]
    if len(analysis.columns) == len(query) and len(nameless) == len(others):
        found |= dict(zip(nameless, others, strict=True))
    return found


def _misread(analysis: Analysis, query: Sequence[Column]) -> list[str]:
    """Where Spark gives other columns than the analysis sees, it has read another query than Spark does."""
    seen = [verdict.name for verdict in analysis.columns]
    if "*" in seen or len(seen) == len(query):
        return []
    given = ", ".join(c.name for c in query)
    return [
        f"the SELECT was not understood: it gives ({given}), and was read as ({', '.join(seen)}). List its columns by their names"
    ]


def _name_problems(query: Sequence[Column], config: ModelConfig) -> list[str]:
    names = [c.name.lower() for c in query]
    problems = [
        f"the query gives {names.count(name)} columns named {name!r}; give each its own alias"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    problems += [
        f"column {c.name} has a name that is used for the work of a run; give it an alias without __mv_ at its beginning"
        for c in query
        if c.name.lower().startswith("__mv_")
    ]
    asked = {"unique_key": config.unique_key, "freeze": config.freeze}
    for word, columns in asked.items():
        problems += [
            f"{word}: the query has no column {column!r}; its columns are {', '.join(c.name for c in query)}"
            for column in columns
            if column.lower() not in names
        ]
    problems += [
        f"on_row_update: the query has no column {column!r}"
        for column in config.row_update
        if column and column not in names
    ]
    return problems


def same_type(left: Column, right: Column) -> bool:
    """Same type, up to the length of text: CHAR and VARCHAR columns are read as STRING."""
    return _TEXT.sub("string", left.type.lower()) == _TEXT.sub("string", right.type.lower())
