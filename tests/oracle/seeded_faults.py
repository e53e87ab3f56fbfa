"""Faults put into the engine's own rules, one at a time. The oracle must notice each of them."""

from __future__ import annotations

from dataclasses import replace

from breaking import (
    always,
    edited,
    extremes_stay,
    first_window,
    forgiving,
    kept_windows,
    kinds,
    no_subqueries,
    one_arm,
    plain_equals,
    sum_signs,
    sure_anti_joins,
    unnetted,
    value,
    without_deep,
    without_having,
    without_last,
)
from fault import Fault
from faults_of_clocks import CLOCKS
from faults_of_draws import DRAWS
from faults_of_joins import JOINS
from faults_of_logic import LOGIC
from faults_of_parts import PARTS
from faults_of_top_rows import TOP_ROWS
from histories import instant

from spark_mv.maintenance import changes, incremental_facts, read_query
from spark_mv.maintenance.steps import next_bound, staging
from spark_mv.maintenance.strategies import adjusted_groups, incremental_rows, leaving
from spark_mv.query.delta import affected, anchors, distributive, instants, joined, restrict
from spark_mv.query.delta.joined import Joined
from spark_mv.query.rewrite import clock_split
from spark_mv.query.syntax.select_tree import SelectNode

Affected, Tables, Query, Known = (
    affected.Affected,
    changes.SourceTexts,
    restrict.QueryTree,
    incremental_facts.IncrementalFacts,
)


EARLY, LATE = instant(-24), instant(72)

FAULTS: tuple[Fault, ...] = (
    *CLOCKS,
    *JOINS,
    *LOGIC,
    *DRAWS,
    *TOP_ROWS,
    *PARTS,
    # --- which rows a change touches
    Fault(
        "the before-image is forgotten",
        Tables,
        "changes_text",
        edited((r"\)$", " WHERE `__mv_count` > 0)")),
        "select a.id, b.y from t a join u b on b.k = a.k",
    ),
    Fault(
        "the after-image is forgotten",
        Tables,
        "changes_text",
        edited((r"\)$", " WHERE `__mv_count` < 0)")),
        "select a.id, b.y from t a join u b on b.k = a.k",
    ),
    Fault(
        "rows that another table lost are forgotten",
        Tables,
        "now_and_before",
        lambda _: lambda self, leaf: self.now(leaf),
        "select a.id, b.y from t a join u b on b.k = a.k",
    ),
    Fault(
        "one place of change is forgotten",
        Affected,
        "focuses",
        without_last,
        "select a.id, b.y from t a left join u b on b.k = a.k",
    ),
    Fault(
        "changes in subqueries are forgotten",
        Affected,
        "focuses",
        no_subqueries,
        "select id from t where exists (select 1 from u b where b.k = t.k)",
    ),
    Fault(
        "left joins as inner joins",
        Joined,
        "add",
        kinds(lambda kind, inside: ("INNER" if kind == "LEFT" else kind, inside)),
        "select a.id, b.y, c.region from t a left join u b on b.k = a.k left join r c on c.y = coalesce(b.y, a.x)",
    ),
    Fault(
        "a change below an anti-join as an anti-join",
        Joined,
        "add",
        sure_anti_joins,
        "select a.id from t a left anti join u b on b.k = a.k",
    ),
    Fault(
        "columns of an optional side are relied on",
        Joined,
        "doubtful",
        always(frozenset()),
        "select a.id, b.w from t a left join u b on b.k = a.k where b.w is null",
    ),
    Fault(
        "a window on the clock stays in WHERE",
        Affected,
        "_where",
        kept_windows,
        "select id, k, count(*) over (partition by k) as n from t where ts > now() - interval 10 hours",
    ),
    Fault(
        "a window on the clock stays in ON",
        joined,
        "kept_on",
        lambda function: lambda *args: function(*args[:-1], lambda _: False),
        "select a.id, a.k, count(*) over (partition by a.k) as n from t a join u b on b.k = a.k and a.ts > now() - interval 10 hours",
    ),
    Fault(
        "a crossed bound is looked for in one direction",
        instants,
        "truths_differ",
        edited((r" OR .*", ")")),
        "select k, max(x) as m, avg(x) as b from t where k is not null and ts <= now() group by k",
        "k",
    ),
    Fault(
        "an aggregate on the clock is taken for the same at both instants",
        instants.Instants,
        "changes",
        always(["false"]),
        "select k, count(distinct case when ts <= now() then x end) as n from t where k is not null group by k",
        "k",
    ),
    Fault(
        "a row that came is taken also where the clock brings it",
        changes.MovedWindows,
        "stayed",
        lambda _: property(lambda _: "true"),
        "select id, x from t where hour(ts) <= hour(now())",
    ),
    Fault(
        "a row that came and was never there goes",
        changes.SourceTexts,
        "on_passing",
        lambda function: lambda self, sql, moved, pins: function(self, sql, replace(moved, differ="false"), pins),
        "select k, id, x from t where hour(ts) <= hour(now())",
        "k",
    ),
    Fault(
        "the first of several windows gives the anchors",
        anchors,
        "shared_partition",
        first_window,
        "select id, sum(x) over (partition by s, k) as z, count(*) over (partition by k) as n, k, s from t",
    ),
    Fault(
        "a window without partitions is followed",
        anchors,
        "shared_partition",
        forgiving("NO_PARTITION_BY", lambda _, scope: ({(a, c) for a, cs in scope.sources.items() for c in cs}, [])),
        "select id, k, count(*) over () as n from t",
    ),
    Fault(
        "only the first side of a set operation",
        Affected,
        "_node",
        one_arm,
        "select id as c, 1 as o from t union select k as c, 2 as o from u",
        "c, o",
    ),
    Fault(
        "a full join as a left join",
        Joined,
        "add",
        kinds(lambda kind, inside: ("LEFT" if kind == "FULL" else kind, inside)),
        "select coalesce(a.id, -1) as id, coalesce(b.k, -1) as bk from t a full join u b on b.k = a.k",
        "id, bk",
    ),
    Fault(
        "scalar subqueries are taken as static",
        read_query,
        "model_tree",
        without_deep,
        "select id, (select max(b.y) from u b where b.k = t.k) as m from t",
    ),
    # --- the restricted query
    Fault(
        "the restriction is left out",
        restrict,
        "restricted",
        lambda _: lambda sql, *rest: sql,
        "select a.id, b.y from t a left join u b on b.k = a.k",
    ),
    Fault(
        "the restriction by = instead of <=>",
        restrict,
        "restricted",
        edited(("<=>", "=")),
        "select id, k, count(*) over (partition by k) as n from t",
    ),
    Fault(
        "anchors are found by = instead of <=>",
        incremental_rows,
        "merge_rows",
        plain_equals,
        "select id, k, count(*) over (partition by k) as n from t",
    ),
    Fault(
        "the affected rows of the table are not read",
        restrict,
        "restricted",
        edited((r"EXISTS \(SELECT 1", "false AND EXISTS (SELECT 1")),
        "select a.id, b.y from t a left join u b on b.k = a.k",
    ),
    # --- what changed
    Fault(
        "changes are not netted",
        staging,
        "stage_args",
        unnetted,
        "select k, count(*) as n from t where k is not null group by k",
        "k",
    ),
    Fault(
        "the copies of a changed row are not counted",
        Tables,
        "_changed_rows",
        edited((r"CAST\(.*? AS INT\)", "1")),
        "select k, count(*) as n from e where k is not null group by k",
        "k",
    ),
    Fault(
        "a step reads what is changed later as it will be",
        Tables,
        "on_step",
        edited((r"VERSION AS OF 1", "VERSION AS OF 2")),
        "select b.y, count(*) as n from t a join u b on b.k = a.k where b.y is not null group by b.y",
        "y",
    ),
    # --- linear queries
    Fault(
        "every query is linear",
        Query,
        "linear",
        lambda _: lambda self, name: self.occurrences(name) == 1,
        "select distinct coalesce(k, -1) as k from t",
        "k",
    ),
    Fault(
        "all below a GROUP BY is linear",
        Query,
        "linear_below_groups",
        lambda _: lambda self, name: isinstance(self.node, SelectNode),
        "select k, count(*) as n from (select distinct k, x from t where k is not null) q group by k",
        "k",
    ),
    Fault(
        "a table that is read twice is linear",
        Query,
        "occurrences",
        always(1),
        "select a.k, count(*) as n from t a join t b on b.k = a.k group by a.k",
        "k",
    ),
    Fault(
        "rows that went are evaluated at the new instant",
        Tables,
        "on_changes",
        lambda f: (
            lambda self, sql, came, moved=None, pins=None: f(
                self, sql, came, moved, pins if came or pins is None else pins.at(LATE)
            )
        ),
        "select id, x from t where ts > now() - interval 10 hours",
    ),
    Fault(
        "groups that rows went from at the new instant",
        adjusted_groups,
        "pin",
        lambda f: lambda text, pins: f(text, pins.at(LATE)),
        "select k, count(*) as n from t where k is not null and ts > now() - interval 10 hours group by k",
        "k",
    ),
    Fault(
        "a row that came and left at once takes the table's row with it",
        incremental_rows,
        "_without_passing",
        lambda _: (
            lambda sides, passing, keys: (
                f"SELECT {keys}, max(`__mv_pre`) AS `__mv_pre` FROM (\n{sides}\n) GROUP BY {keys}"
            )
        ),
        "select x as k, id, s from t where ts > now() - interval 24 hours and x is not null",
        "k",
    ),
    # --- adjusted groups
    Fault(
        "what went is added",
        adjusted_groups,
        "value_of",
        sum_signs,
        "select k, sum(x) as n, count(*) as m from t where k is not null group by k",
        "k",
    ),
    Fault(
        "stored values are always sure",
        adjusted_groups,
        "value_of",
        value(unsure="false"),
        "select k, max(x) as m, count(*) as n from t where k is not null group by k",
        "k",
    ),
    Fault(
        "a maximum never goes",
        adjusted_groups,
        "value_of",
        extremes_stay,
        "select k, max(x) as m, count(*) as n from t where k is not null group by k",
        "k",
    ),
    Fault(
        "a group never goes",
        adjusted_groups,
        "value_of",
        value(gone="", alive="true"),
        "select k, count(*) as n from t where k is not null group by k",
        "k",
    ),
    Fault(
        "HAVING is adjusted",
        adjusted_groups,
        "parts",
        lambda f: lambda node, *rest: f(without_having(node), *rest),
        "select k, count(*) as n from t where k is not null group by k having count(*) > 1",
        "k",
    ),
    Fault(
        "distinct aggregates are adjusted",
        distributive,
        "_part",
        forgiving("AGGREGATE", distributive.GroupPart.SUM),
        "select k, count(distinct s) as n from t where k is not null group by k",
        "k",
    ),
    # --- the clock
    Fault("no bound is ever crossed", read_query, "crossed", always(False), "select id, x from t where ts <= now()"),
    Fault(
        "the next bound looks at rows that leave only",
        clock_split,
        "next_change_sql",
        edited((r"CASE WHEN valid_from > .*? THEN valid_from END", "NULL")),
        "select id, x from t where ts <= now() and id = 1",
    ),
    Fault(
        "the next bound looks at rows that enter only",
        clock_split,
        "next_change_sql",
        edited((r"CASE WHEN valid_to > .*? THEN valid_to END", "NULL")),
        "select id, x from t where ts > now() - interval 10 hours and id = 1",
    ),
    Fault(
        "the near bound looks at rows that leave only",
        clock_split,
        "near_change_sql",
        edited((r"CASE WHEN valid_from > .*? THEN valid_from END", "NULL")),
        "select id, x from t where ts <= now() and ts > now() - interval 2 hours",
    ),
    Fault(
        "new rows do not bring the bound forward",
        staging,
        "next_bound",
        lambda _: lambda known: next_bound.NextBound(),
        "select id, x from t where ts <= now() and k = 2",
    ),
    Fault(
        "rows leave by the old instant",
        leaving,
        "pinned_condition",
        lambda f: lambda text, pins: f(text, pins.at(EARLY)),
        "select id, ts from t where ts > now() - interval 10 hours",
    ),
    Fault(
        "rows never enter",
        Known,
        "enters",
        lambda _: property(lambda self: False),
        "select id, ts from t where ts > now() - interval 10 hours and ts <= now()",
    ),
)
