{#- Write the rows that differ between the query and the target to a staging table, each with a marker:
    I (new), U (differs), D (gone), = (same; only where all rows are staged).

    Written, not viewed: draws and model answers must not be evaluated again by the statement that publishes them.
    `__mv_n` counts the rows of the query that share a key, so that repeats are found whatever else changed. With
    `affected`, the query gives only rows of these anchors and the target is read for them alone; a row of the target
    that no changed row stood for before counts as one more of its key. `images` are columns whose old values the
    affected rows carry: what the table need not be read for. With `marks`, `__mv_changes` says whether a value that the row
    had becomes another one: a new column is none, nor is what follows the clock, the user or the session. `identity` says
    how rows are found where the unique key is not what it was: a row of the query takes one of those that it finds, preferably
    one that has its former key too. -#}
{% macro mv_stage_changes(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_stage_changes', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_stage_changes(args) -%}
create table {{ args['into'] }} using parquet as
{{ mv_changed_rows(args) }}
{%- endmacro %}

{#- The rows to stage. -#}
{% macro mv_changed_rows(args) -%}
  {%- set keys = args['columns'] | selectattr('role', 'equalto', 'key') | list -%}
  {%- set identity = args.get('identity') or {} -%}
with __mv_query as (
  select *, count(*) over (partition by {% for key in keys %}{{ adapter.quote(key['name']) }}{{ ', ' if not loop.last }}{% endfor %}) as __mv_n
    {%- if identity.get('by_former') %}, count(*) over (partition by {% for pair in identity['pairs'] %}{{ adapter.quote(pair['query']) }}{{ ', ' if not loop.last }}{% endfor %}) as __mv_sharing{% endif %}
  from (
{{ args['query'] }}
  )
)
{%- if args['target'] is none %}
select
  'I' as __mv_op,
  {%- for column in args['columns'] %}
  {{ mv_staged_query_value(column) }} as {{ adapter.quote(column['name']) }},
  {%- endfor %}
  {%- if args['marks'] %}
  false as __mv_changes,
  {%- endif %}
  q.__mv_n
from __mv_query q
{%- else %}
{%- set join = 'left' if args['keep_missing'] and not args['all_rows'] else 'full outer' %}
, __mv_both as (
  select
    {% if args['affected'] %}q.__mv_n + case when t.__mv_there and not t.__mv_pre then 1 else 0 end{% else %}q.__mv_n{% endif %} as __mv_n,
    t.__mv_there as __mv_there,
    {{ mv_staged_differs(args['columns']) }} as __mv_differs,
    {%- if args['marks'] %}
    {{ mv_staged_differs(args['columns'] | selectattr('in_target') | rejectattr('role', 'equalto', 'pinned') | list) }} as __mv_changes,
    {%- endif %}
    {%- if identity %}
    row_number() over (partition by {% for key in keys %}q.{{ adapter.quote(key['name']) }}{{ ', ' if not loop.last }}{% endfor %} order by
      {%- for pair in identity['former'] %} cast(q.{{ adapter.quote(pair['query']) }} as string) <=> cast(t.{{ adapter.quote(pair['table']) }} as string) desc,{% endfor %} to_json(struct(t.*))) as __mv_rank,
    {%- endif %}
    {%- set updated %}{{ mv_staged_differs(args['columns'] | selectattr('role', 'equalto', 'data') | list) }}{% endset -%}
    {%- for column in args['columns'] %}
    {{ mv_staged_value(column, updated, args['keep_missing']) }} as {{ adapter.quote(column['name']) }}{{ ',' if not loop.last }}
    {%- endfor %}
  from __mv_query q
  {{ join }} join (
    {%- if args['affected'] %}
    select
      {%- for column in args['columns'] if column['in_target'] %}
      {% if column['name'] in args['images'] %}a.{{ args['images'][column['name']] }}{% else %}r.{{ adapter.quote(column['name']) }}{% endif %} as {{ adapter.quote(column['name']) }},
      {%- endfor %}
      a.__mv_pre, true as __mv_there
    from {{ args['target'] }} r
    join {{ args['affected'] }} a on {% for anchor in args['anchors'] %}r.{{ adapter.quote(anchor['column']) }} {{ anchor['test'] }} a.{{ anchor['affected'] }}{{ ' and ' if not loop.last }}{% endfor %}
    {%- if args['range'] %}
    where {{ args['range'] }}{% endif %}
    {%- else %}select *, true as __mv_there{% for flag in args['forget'] %}, coalesce({{ flag['where'] }}, false) as {{ flag['name'] }}{% endfor %} from {% if args['once'] %}{{ mv_once(args['target'], keys) }}{% else %}{{ args['target'] }}{% endif %}
    {%- endif %}) t
    on {% if identity %}{% for pair in identity['pairs'] %}q.{{ adapter.quote(pair['query']) }} = try_cast(t.{{ adapter.quote(pair['table']) }} as {{ pair['type'] }}){{ ' and ' if not loop.last }}{% endfor %}
      {%- if identity['by_former'] %} and q.__mv_sharing = 1{% endif %}
    {%- else %}{% for key in keys %}q.{{ adapter.quote(key['name']) }} = {{ mv_key_of_target(key) }}{{ ' and ' if not loop.last }}{% endfor %}{% endif %}
)
select
  case
    when __mv_there is null then 'I'
    when __mv_n is null then {{ "'='" if args['keep_missing'] else "'D'" }}
    when __mv_differs then 'U'
    else '='
  end as __mv_op,
  {%- for column in args['columns'] %}
  {{ adapter.quote(column['name']) }},
  {%- endfor %}
  {%- if args['marks'] %}
  __mv_changes,
  {%- endif %}
  {% if identity and args['keep_missing'] %}greatest(coalesce(__mv_n, 1), count(*) over (partition by {% for key in keys %}{{ adapter.quote(key['name']) }}{{ ', ' if not loop.last }}{% endfor %})) as {% endif %}__mv_n
from __mv_both
{%- if identity %}
where __mv_n is null or __mv_rank = 1
{%- elif not args['all_rows'] %}
where __mv_there is null or __mv_n is null or __mv_n > 1 or __mv_differs
{%- endif %}
{%- endif %}
{%- endmacro %}

{#- The staged rows as an item of FROM. Rows that only come, and whose keys two evaluations agree on, need not be written
    down first: `inline` are the arguments that they would be staged with. -#}
{% macro mv_staged(args) -%}
  {%- if args.get('inline') -%}(
{{ mv_changed_rows(args['inline']) }}
)
  {%- else -%}{{ args['stage'] }}{%- endif -%}
{%- endmacro %}

{#- The value that the query gives, in the type of the target; NULL where only the target has the column. -#}
{% macro mv_staged_query_value(column) -%}
  {%- if not column['in_query'] -%}cast(null as {{ column['type'] }})
  {%- elif column['cast'] -%}cast(q.{{ adapter.quote(column['name']) }} as {{ column['type'] }})
  {%- else -%}q.{{ adapter.quote(column['name']) }}
  {%- endif -%}
{%- endmacro %}

{#- The value that is staged. A row that the query lacks carries the target's values. -#}
{% macro mv_staged_value(column, updated, keep_missing) -%}
  {%- set name = adapter.quote(column['name']) -%}
  {%- set from_query = mv_staged_query_value(column) -%}
  {%- if not column['in_target'] -%}
    {{ from_query }}
  {%- elif column['role'] == 'key' -%}
    coalesce({{ from_query }}, {{ mv_key_of_target(column) }})
  {%- elif not column['in_query'] -%}
    t.{{ name }}
  {%- elif column['role'] == 'kept' and not column['fresh'] -%}
    case when t.__mv_there is null{{ ' or (q.__mv_n is not null and ' ~ updated ~ ')' if column['redraw'] }}
      {%- for flag in column['forget'] %} or (q.__mv_n is not null and t.{{ flag }}){% endfor %} then {{ from_query }} else {{ mv_cast_target(column) }} end
  {%- else -%}
    case when q.__mv_n is null then {{ mv_cast_target(column) }} else {{ from_query }} end
  {%- endif -%}
{%- endmacro %}

{#- A key whose type changed need not be one of the new type: then no row has it. -#}
{% macro mv_key_of_target(column) -%}
  {%- set name = adapter.quote(column['stands_in'] or column['name']) -%}
  {%- if column['retyped'] -%}try_cast(t.{{ name }} as {{ column['type'] }}){%- else -%}t.{{ name }}{%- endif -%}
{%- endmacro %}

{% macro mv_cast_target(column) -%}
  {%- set name = adapter.quote(column['stands_in'] or column['name']) -%}
  {%- if column['retyped'] -%}cast(t.{{ name }} as {{ column['type'] }}){%- else -%}t.{{ name }}{%- endif -%}
{%- endmacro %}

{#- Whether the query's row differs from the target's. Kept columns are read back, so they never differ, unless their own
    expression changed. Types that Spark cannot compare are compared as JSON. -#}
{% macro mv_staged_differs(columns) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set tests = [] -%}
  {%- for column in columns if column['role'] != 'key' -%}
    {%- set name = adapter.quote(column['name']) -%}
    {%- for flag in column['forget'] -%}{%- do tests.append('t.' ~ flag) -%}{%- endfor -%}
    {%- if column['fresh'] or (column['in_query'] and not column['in_target']) -%}
      {%- do tests.append('true') -%}
    {%- elif column['role'] == 'kept' or not column['in_query'] -%}
    {%- elif column['approximate'] -%}
      {%- set apart = 'abs(' ~ mv_staged_query_value(column) ~ ' - ' ~ mv_cast_target(column) ~ ')' -%}
      {%- set size = 'greatest(abs(' ~ mv_staged_query_value(column) ~ '), abs(' ~ mv_cast_target(column) ~ '))' -%}
      {%- do tests.append('not coalesce(' ~ mv_staged_query_value(column) ~ ' <=> ' ~ mv_cast_target(column) ~ ' or (' ~ apart ~ " < double('infinity') and " ~ apart ~ ' <= 1e-9 * ' ~ size ~ '), false)') -%}
    {%- elif column['as_json'] -%}
      {%- do tests.append('not (' ~ mv.mv_json(mv_staged_query_value(column)) ~ ' <=> ' ~ mv.mv_json(mv_cast_target(column)) ~ ')') -%}
    {%- else -%}
      {%- do tests.append('not (' ~ mv_staged_query_value(column) ~ ' <=> ' ~ mv_cast_target(column) ~ ')') -%}
    {%- endif -%}
  {%- endfor -%}
  ({{ tests | join(' or ') if tests else 'false' }})
{%- endmacro %}

{#- The rows of a table, one for each key, none without a key. -#}
{% macro mv_once(relation, keys) -%}
(
      select * from (
        select *, row_number() over (partition by {% for key in keys %}{{ adapter.quote(key['name']) }}{{ ', ' if not loop.last }}{% endfor %} order by {{ adapter.quote(keys[0]['name']) }}) as __mv_copy
        from {{ relation }}
      ) where __mv_copy = 1{% for key in keys %} and {{ adapter.quote(key['name']) }} is not null{% endfor %}
    )
{%- endmacro %}
