{#- Write the rows that differ between the query and the target to a staging table, each with a marker:
    I (new), U (differs), D (gone), = (same; only where all rows are staged).

    Written, not viewed: draws and model answers must not be evaluated again by the statement that publishes them.
    `__mv_n` counts the rows of the query that share a key, so that repeats are found whatever else changed. With
    `affected`, the query gives only rows of these anchors and the target is read for them alone; a row of the target
    that no changed row stood for before counts as one more of its key. `images` are columns whose old values the
    affected rows carry: what the table need not be read for. With `marks`, `__mv_changes` says whether a value that the row
    had becomes another one: a new column is none, nor is what follows the clock, the user or the session. `stays`: a condition
    over the table's columns, whose rows are left as they are (`=`), whatever the query gives. `failing` tells
    in which rows and columns an AI answer is failing: the row's own value stays. `identity` says
    how rows are found where the unique key is not what it was: a row of the query takes one of those that it finds, preferably
    one that has its former key too. -#}
{% macro default__mv_stage_changes(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
{{ mv.mv_stage_into(args) }}
{{ mv.mv_changed_rows(args) }}
{%- endmacro %}

{#- The rows to stage. What is said of each column comes from stage_texts.py. -#}
{% macro mv_changed_rows(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
with __mv_query as (
  select *, count(*) over (partition by {{ args['key_as_written'] }}) as __mv_n
    {%- if args['sharing'] %}, count(*) over (partition by {{ args['sharing'] }}) as __mv_sharing{% endif %}
  from (
{{ args['query'] }}
  )
)
{%- if args['target'] is none %}
select
  'I' as __mv_op,
  {%- for column in args['values'] %}
  {{ column['new'] }} as {{ column['name'] }},
  {%- endfor %}
  {%- if args['marks'] %}
  false as __mv_changes,
  {%- endif %}
  q.__mv_n
from __mv_query q
{%- else %}
, __mv_both as (
  select
    {% if args['affected'] %}q.__mv_n + case when t.__mv_there and not t.__mv_pre then 1 else 0 end{% else %}q.__mv_n{% endif %} as __mv_n,
    t.__mv_there as __mv_there,
    {%- if args['stays'] %}
    t.__mv_stays as __mv_stays,
    {%- endif %}
    {{ args['differs'] }} as __mv_differs,
    {%- if args['marks'] %}
    {{ args['changes'] }} as __mv_changes,
    {%- endif %}
    {%- if args['identity'] %}
    row_number() over (partition by {{ args['key_of_query'] }} order by
      {{- args['preferred'] }} to_json(struct(t.*))) as __mv_rank,
    {%- endif %}
    {%- for column in args['values'] %}
    {{ column['staged'] }} as {{ column['name'] }}{{ ',' if not loop.last }}
    {%- endfor %}
  from __mv_query q
  {{ args['join'] }} join (
    {%- if args['affected'] %}
    select
      {%- for column in args['of_table'] %}
      {{ column['value'] }} as {{ column['name'] }},
      {%- endfor %}
      a.__mv_pre, true as __mv_there{{ mv.mv_staying(args) }}
    from {{ args['target'] }} r
    join {{ args['affected'] }} a on {{ args['affected_on'] }}
    {%- if args['range'] %}
    where {{ args['range'] }}{% endif %}
    {%- else %}select *, true as __mv_there{% for flag in args['forget'] %}, coalesce({{ flag['where'] }}, false) as {{ flag['name'] }}{% endfor %}{{ mv.mv_staying(args) }} from {% if args['once'] %}{{ mv.mv_once(args) }}{% else %}{{ args['target'] }}{% endif %}
    {%- endif %}) t
    on {{ args['found_on'] }}
  {%- if args['failing'] and args['target'] is not none %}
  left join (
{{ args['failing'] }}
  ) f on {{ args['failing_on'] }}
  {%- endif %}
)
select
  case
    when __mv_there is null then 'I'
    {%- if args['stays'] %}
    when __mv_stays then '='
    {%- endif %}
    when __mv_n is null then {{ args['missing'] }}
    when __mv_differs then 'U'
    else '='
  end as __mv_op,
  {%- for column in args['values'] %}
  {{ column['name'] }},
  {%- endfor %}
  {%- if args['marks'] %}
  __mv_changes,
  {%- endif %}
  {% if args['identity'] and args['keep_missing'] %}greatest(coalesce(__mv_n, 1), count(*) over (partition by {{ args['key'] }})) as {% endif %}__mv_n
from __mv_both
{%- if args['identity'] %}
where __mv_n is null or __mv_rank = 1
{%- elif not args['all_rows'] %}
where __mv_there is null or __mv_n > 1 or {% if args['stays'] %}not __mv_stays and ({% endif %}__mv_n is null or __mv_differs{{ ')' if args['stays'] }}
{%- endif %}
{%- endif %}
{%- endmacro %}

{#- Of a row of the table: whether the run leaves it as it is. -#}
{% macro mv_staying(args) -%}
{%- if args['stays'] %}, coalesce((
{{ args['stays'] }}
), false) as __mv_stays{% endif %}
{%- endmacro %}

{#- The staged rows as an item of FROM. Rows that only come, and whose keys two evaluations agree on, need not be written
    down first: `inline` are the arguments that they would be staged with. -#}
{% macro mv_staged(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if args.get('inline') -%}(
{{ mv.mv_changed_rows(args['inline']) }}
)
  {%- else -%}{{ args['stage'] }}{%- endif -%}
{%- endmacro %}

{#- The rows of a table, one for each key, none without a key. -#}
{% macro mv_once(args) -%}
(
      select * from (
        select *, row_number() over (partition by {{ args['key'] }} order by {{ args['first_key'] }}) as __mv_copy
        from {{ args['target'] }}
      ) where __mv_copy = 1 and {{ args['known_key'] }}
    )
{%- endmacro %}
