"""The core suite's models: each kind of value that is kept, each strategy, and dbt's own materializations, over two small tables.

`truth` is what the table must be, a query over the sources with the day in the place `{today}`. `kept` is a query for keys and values of what
must stay as it is for as long as the row is there.
"""

from __future__ import annotations

from dataclasses import dataclass

MV = "nondeterministic_mv"


@dataclass(frozen=True)
class CoreModel:
    """A model. `config`: what stands in its config beside the materialization. `columns`: those that `truth` gives."""

    name: str
    sql: str
    columns: str
    truth: str
    config: str = "unique_key='id'"
    kept: str = ""
    materialized: str = MV
    edited: str = "kept"
    """What becomes of an edited row's kept value: `kept`, `redrawn`, or `either`."""

    @property
    def file(self) -> str:
        config = f"materialized='{self.materialized}'" + (f", {self.config}" if self.config else "")
        return f"{{{{ config({config}) }}}}\n{self.sql.strip()}\n"

    def rows(self, schema: str) -> str:
        """A query: the model's name, a row of its table as text."""
        return self._as_text(f"select {self.columns} from {schema}.{self.name}")

    def wanted(self, schema: str, today: str) -> str:
        """A query: the model's name, a row that its table must have as text."""
        return self._as_text(self.truth.format(s=schema, today=f"date'{today}'"))

    def _as_text(self, query: str) -> str:
        return f"select '{self.name}' as m, concat_ws(' | ', {self.columns}) as r from ({query}) as t({self.columns})"

    def kept_values(self, schema: str) -> str:
        """A query: the model's name, a key, what is kept for it."""
        return f"select '{self.name}' as m, cast(k as string) as k, cast(v as string) as v from ({self.kept.format(s=schema)})"


EVENTS = "{{ target.schema }}.events"
MODELS = (
    CoreModel(
        "drawn",
        f"select id, amount, rand() as draw, uuid() as token from {EVENTS} where d > current_date() - interval 3 days",
        "id, amount",
        "select id, amount from {s}.events where d > {today} - interval 3 days",
        kept="select id as k, concat_ws(' ', draw, token) as v from {s}.drawn",
    ),
    CoreModel(
        "redrawn",
        f"select id, amount, rand() as draw from {EVENTS}",
        "id, amount",
        "select id, amount from {s}.events",
        config="unique_key='id', on_row_update='redraw'",
        kept="select id as k, draw as v from {s}.redrawn",
        edited="redrawn",
    ),
    CoreModel(
        "stamped",
        f"select id, who, current_timestamp() as first_seen_at, current_date() as today from {EVENTS}",
        "id, who, today",
        "select id, who, {today} as today from {s}.events",
        config="unique_key='id', freeze=['first_seen_at']",
        kept="select id as k, first_seen_at as v from {s}.stamped",
    ),
    CoreModel(
        "joined",
        f"select e.id, e.amount, p.town, floor(rand() * 1000000) as bucket from {EVENTS} e join {{{{ ref('people') }}}} p on p.who = e.who",
        "id, amount, town",
        "select e.id, e.amount, p.town from {s}.events e join {s}.people p on p.who = e.who",
        kept="select id as k, bucket as v from {s}.joined",
    ),
    CoreModel(
        "per_person",
        "select who, count(*) as n, sum(amount) as total, min(amount) as least, max(amount) as most "
        f"from {EVENTS} where d > current_date() - interval 4 days group by who",
        "who, n, total, least, most",
        "select who, count(*), sum(amount), min(amount), max(amount) from {s}.events where d > {today} - interval 4 days group by who",
        config="unique_key='who'",
    ),
    CoreModel(
        "in_union",
        f"with e as (select id, amount, (select max(b.amount) from {EVENTS} b where b.who = e.who) as most from {EVENTS} e) "
        "select id, 0 as kind, most from e union all select id, 1, amount from e",
        "id, kind, most",
        "select e.id, 0, m.most from {s}.events e join (select who, max(amount) as most from {s}.events group by who) m on m.who = e.who "
        "union all select id, 1, amount from {s}.events",
        config="unique_key=['id', 'kind']",
    ),
    CoreModel(
        "ranked",
        f"select id, who, row_number() over (partition by who order by amount, id) as place from {EVENTS}",
        "id, who, place",
        "select id, who, row_number() over (partition by who order by amount, id) from {s}.events",
    ),
    CoreModel(
        "middle",
        f"select who, percentile(amount, 0.5) as mid from {EVENTS} group by who",
        "who, mid",
        "select who, percentile(amount, 0.5) from {s}.events group by who",
        config="unique_key='who'",
    ),
    CoreModel(
        "sampled",
        f"select id, amount from {EVENTS} where rand() < 0.5",
        "id, amount",
        "select e.id, e.amount from {s}.events e join {s}.sampled t on t.id = e.id",
        edited="either",  # another row is another try
        kept="select e.id as k, if(t.id is null, 'out', 'in') as v from {s}.events e left join {s}.sampled t on t.id = e.id",
    ),
    CoreModel(
        "gone_kept",
        f"select id, amount from {EVENTS} where d > current_date() - interval 4 days",
        "id, amount",
        "select id, amount from (table {s}.events union all table {s}.gone) where d > {today} - interval 4 days",
        config="unique_key='id', on_source_delete='keep'",
    ),
    CoreModel(
        "asked",
        f"select id, body, ai_gen(body) as said from {EVENTS}",
        "id, body, said",
        "select id, body, concat('ai_gen: ', body) from {s}.events",
    ),
    CoreModel(
        "answers",
        f"select ai_gen(body) as said, count(*) as n from {EVENTS} group by 1",
        "said, n",
        "select concat('ai_gen: ', body), count(*) from {s}.events group by 1",
        config="unique_key='said'",
    ),
    CoreModel(
        "chained",
        "select id, draw * 2 as twice from {{ ref('drawn') }}",
        "id, twice",
        "select id, draw * 2 from {s}.drawn",
    ),
    CoreModel(
        "counted",
        f"select who, count(*) as n from {EVENTS} group by who",
        "who, n",
        "select who, count(*) from {s}.events group by who",
        config="",
        materialized="table",
    ),
    CoreModel(
        "merged",
        f"select id, amount from {EVENTS}",
        "id, amount",
        "select id, amount from (table {s}.events union all table {s}.gone)",
        config="unique_key='id', incremental_strategy='merge'",
        materialized="incremental",
    ),
    CoreModel("seen", f"select id from {EVENTS}", "id", "select id from {s}.events", config="", materialized="view"),
)

PEOPLE = "who,town\nw0,Ulm\nw1,O'Fallon\nw2,Bonn\nw3,Jena\n"

#: tables beside the models; `{format}` is the table format, `{properties}` what a Delta source wants
TABLES = (
    "create table {s}.events using {format} {properties} as select cast(id as int) as id, concat('w', id % 4) as who, "
    "cast(id * 7 % 11 as bigint) as amount, concat('text ', id % 9) as body, date'2026-02-01' - cast(id % 6 as int) as d from range(40)",
    "create table {s}.gone using {format} as select * from {s}.events where false",
)
#: what happens between the first day and the second: rows edited, deleted, new; a person moves
CHANGES = (
    "update {s}.events set amount = amount + 100 where id in (1, 2, 13)",
    "insert into {s}.gone select * from {s}.events where id in (5, 6)",
    "delete from {s}.events where id in (5, 6)",
    "insert into {s}.events select cast(100 + id as int), concat('w', id % 4), cast(id as bigint), concat('new ', id), date'2026-02-02' from range(4)",
    "update {s}.people set town = 'Köln' where who = 'w2'",
)
EDITED = frozenset({"1", "2", "13"})
