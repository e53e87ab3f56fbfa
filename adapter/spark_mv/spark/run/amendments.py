"""What belongs to the table beside its rows: the checks of the model's contract, descriptions, the feed of changes.

A new table is made with its checks. All of this is compared at every run with what the table has, so that what a killed run
left undone, and what was edited in the model since, is made up for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from spark_mv.maintenance.errors import ConfigError
from spark_mv.query.syntax.source_text import SourceTextError, one_line, string_literal
from spark_mv.query.syntax.table_name import quoted
from spark_mv.spark.formats.delta_source import FEED_PROPERTY
from spark_mv.spark.formats.remains import OWNER_PROPERTY
from spark_mv.spark.formats.replace_using import VECTORS
from spark_mv.spark.run.look_up import OUR_CHECKS

MAPPING = "delta.columnMapping.mode"
CHECK = "delta.constraints."
STATISTICS = "delta.dataSkippingNumIndexedCols"
METRICS = "write.metadata.metrics.default"
"""Of how many columns Delta writes least and greatest values into its log; what Iceberg writes of each column."""
_OUR_NAMES = re.compile(r"mv_(not_null|check)_[0-9a-f]{8}")


@dataclass
class Amendments:
    """`written` are the table's properties as DESCRIBE prints them, none of them hidden (empty: there is no table), `comments`
    its columns' descriptions, and `comment` its own. `checks` are the contract's conditions by name, `described` and `about` the descriptions of
    columns and table in the model, `feed` whether the user wants a feed of changes. `wanted` are the user's table properties, `layout` is
    the clause by which files are clustered or partitioned, `model` dbt's unique id. `of_format`: the properties of a table whose
    format has neither checks nor a feed of its own (the contract is then kept by what a run looks at before it writes). `bounds`: whether
    the table's log may hold least and greatest values of its columns."""

    table: str
    written: str = ""
    our_checks: str = ""
    comments: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    feed: bool = True
    mapped: bool = False
    checks: Mapping[str, str] = field(default_factory=dict)
    described: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    dropped: set[str] = field(default_factory=set)
    wanted: Mapping[str, str] = field(default_factory=dict)
    layout: str = ""
    model: str = ""
    of_format: Mapping[str, str] | None = None
    bounds: bool = True

    def want(self, checks: Sequence[Mapping[str, str]], described: Mapping[str, str], about: str = "") -> None:
        """Take in what the model says. Raises ConfigError where two checks have one name."""
        self.about = about
        self.checks = {check["name"].lower(): _condition(check["expression"]) for check in checks}
        names = Counter(check["name"].lower() for check in checks)
        if twice := [name for name, times in names.items() if times > 1]:
            listed = ", ".join(twice)
            raise ConfigError(
                self.model,
                [f"the contract has several checks called {listed} (case does not matter): give each its own name"],
            )
        self.described = {name.lower(): text for name, text in described.items()}

    def properties(
        self, columns: Sequence[str], of_model: bool, of_format: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """The properties of a table that is made: the model's own, or its state table. The user's win. `of_format`: those that the
        table's format has whatever the columns are; else they are Delta's.

        A feed of changes lets models downstream follow this one incrementally; deletion vectors spare rewriting whole files
        for a few rows. Column mapping, which unusual column names need, goes with a feed, but Delta does not let one statement
        fill a table and give it both: the feed follows. Checks that are made with the table are there from its first row on.
        """
        if of_format is not None:
            metrics = {} if self.bounds else {METRICS: "none"}
            return {**of_format, **metrics, **(self.wanted if of_model else {}), OWNER_PROPERTY: self.model}
        found = {VECTORS: "true", FEED_PROPERTY: default_feed(columns)}
        if not self.bounds:
            found[STATISTICS] = "0"
        if has_unusual(columns):
            found[MAPPING] = "name"
        if of_model:
            found |= self.wanted
            found |= {CHECK + name: expression for name, expression in self.checks.items()}
            if self.checks:
                found[OUR_CHECKS] = "|".join(self.checks)
        if found.get(MAPPING, "none").lower() != "none":
            found[FEED_PROPERTY] = "false"
        return {**found, OWNER_PROPERTY: self.model}

    @property
    def undescribed(self) -> bool:
        """Whether a column of the table lacks the description that the model gives it."""
        return any(self.comments.get(name, text) != text for name, text in self.described.items())

    def before(self) -> list[str]:
        """Statements before rows are written: checks that the contract has no longer would refuse them."""
        if self.of_format is not None:
            return []
        gone = [name for name in self._outdated() if name not in self.dropped]
        self.dropped.update(gone)
        return [f"alter table {self.table} drop constraint if exists {quoted(name)}" for name in gone]

    def after(self, made_anew: bool) -> list[str]:
        """Statements after rows are written, or instead. A table that is made anew has its description from the first."""
        statements = [] if made_anew or self.of_format is not None else self._amended()
        if made_anew and self.of_format is None and self.mapped and self.feed:
            statements.append(self._feed())
        if not made_anew and self.about and self.about.split() != self.comment.split():
            statements.append(f"comment on table {self.table} is {string_literal(self.about)}")
        return statements

    def _amended(self) -> list[str]:
        missing = [name for name, expression in self.checks.items() if not self._has(name, expression)]
        added = {
            name: f"alter table {self.table} add constraint {quoted(name)} check ({self.checks[name]})"
            for name in missing
        }
        gone = {*self._outdated()}
        # one that rows of the table do not pass is refused: then the table still has the former ones
        statements = [sql for name, sql in added.items() if name not in gone]
        statements += self.before()
        statements += [sql for name, sql in added.items() if name in gone]
        if statements:
            value = "|".join(self.checks).replace("'", "\\'")
            statements.append(f"alter table {self.table} set tblproperties ('{OUR_CHECKS}' = '{value}')")
        if not self.bounds and STATISTICS not in self.written:
            statements.append(f"alter table {self.table} set tblproperties ('{STATISTICS}' = '0')")
        mapped = re.search(rf"{re.escape(MAPPING)}=(name|id)\b", self.written, re.IGNORECASE)
        if mapped and self.feed and f"{FEED_PROPERTY}=true" not in self.written:
            statements.append(self._feed())
        return statements

    def _feed(self) -> str:
        return f"alter table {self.table} set tblproperties ('{FEED_PROPERTY}' = 'true')"

    def _outdated(self) -> list[str]:
        """Checks of the table that the contract brought and has no longer, or words otherwise."""
        present = re.findall(rf"[\[,]{re.escape(CHECK)}([^=]+)=", self.written)
        ours = {*self.our_checks.split("|"), *(name for name in present if _OUR_NAMES.fullmatch(name))}
        return [
            name
            for name in dict.fromkeys(present)
            if (name in ours or name in self.checks) and not self._has(name, self.checks.get(name))
        ]

    def _has(self, name: str, expression: str | None) -> bool:
        if expression is None:
            return False
        # an expression may hold commas, which are all that stands between two properties; Delta puts spaces of its own in
        found = (f"{CHECK}{name}={expression}{end}" for end in (",", "]"))
        written = _without_spaces(self.written)
        return any(_without_spaces(text) in written for text in found)


def has_unusual(columns: Iterable[str]) -> bool:
    """Whether Delta needs column mapping for one of these names."""
    return any(re.search(r"[ ,;{}()\n\t=]", name) for name in columns)


_FEED_COLUMNS = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})


def default_feed(columns: Iterable[str]) -> str:
    """Whether a table of these columns has a feed of changes where the user says nothing: MERGE cannot write it (Delta 4.4: "Syntax
    error in the attribute name: packedCdc…") beside a name with a backquote, and the feed's own columns have names that no other may have.

    >>> default_feed(["id", "v"]), default_feed(["a`b"]), default_feed(["id", "_Change_Type"])
    ('true', 'false', 'false')
    """
    return "false" if any("`" in name or name.lower() in _FEED_COLUMNS for name in columns) else "true"


def by_delta_names(properties: Mapping[str, object]) -> dict[str, str]:
    """The properties, those that are ours to look at under Delta's own names: Delta reads its names in any case.

    >>> by_delta_names({"DELTA.columnmapping.MODE": "NAME", "My.Url": 1})
    {'delta.columnMapping.mode': 'NAME', 'My.Url': '1'}
    """
    own = {name.lower(): name for name in (FEED_PROPERTY, MAPPING, VECTORS)}
    return {own.get(name.lower(), name): str(value) for name, value in properties.items()}


def _condition(text: str) -> str:
    """A condition to stand in parentheses. What cannot be read stays as it is, for Spark to say why."""
    try:
        return one_line(text)
    except SourceTextError:
        return text.strip()


def _without_spaces(text: str) -> str:
    return "".join(text.split())
