{#- One row about the staged rows: how many of each kind, and whether the key identifies them. -#}
{% macro default__mv_check_stage(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set null_key = mv.mv_null_key(args['keys']) -%}
  {%- set key_text -%}
    to_json(named_struct({% for key in args['keys'] %}{{ mv.mv_text(key) }}, {{ adapter.quote(key) }}{{ ', ' if not loop.last }}{% endfor %}), map('ignoreNullFields', 'false'))
  {%- endset -%}
select
  count_if(__mv_op = 'I') as inserted,
  count_if(__mv_op = 'U') as updated,
  count_if(__mv_op = 'D') as deleted,
  count_if(__mv_op <> 'D') as remaining,
  count_if(__mv_n > 1 and not {{ null_key }}) as duplicate_keys,
  min(case when __mv_n > 1 and not {{ null_key }} then {{ key_text }} end) as duplicate_example,
  count_if(__mv_op <> 'D' and {{ null_key }}) as null_keys,
  min(case when __mv_op <> 'D' and {{ null_key }} then {{ key_text }} end) as null_example
  {%- for condition in args['checks'] %},
  count_if(__mv_op <> 'D' and not coalesce({{ condition }}, false)) as {{ adapter.quote('violates ' ~ condition) }}
  {%- endfor %}
  {%- if args.get('bound') %},
  min({{ adapter.quote(args['keys'][0]) }}) as lowest_key,
  max({{ adapter.quote(args['keys'][0]) }}) as highest_key,
  min(case when __mv_op = 'I' then {{ adapter.quote(args['keys'][0]) }} end) as lowest_new_key
  {%- endif %}
  {%- if args.get('next_change') %},
  {{ mv.mv_next_change(args) }}
  {%- elif args.get('ends') %},
  least(min(unix_micros({{ args['ends'] }})), unix_micros({{ args['recorded'] or 'null' }})) as next_change
  {%- endif %}
  {%- if args.get('marks') %},
  count_if(__mv_op = 'U' and __mv_changes) as changes
  {%- endif %}
  {%- if args.get('sure') %},
  count_if(__mv_op = '?') as unsure
  {%- endif %}
  {%- if args.get('doubt') %},
  (
{{ args['doubt'] }}
  ) as doubt
  {%- endif %}
  {%- if args.get('leaves') %},
  {%- if args.get('ends') %}
  (select to_json(struct({{ mv.mv_leaving_and_staying(args) }})) from {{ args['target'] }} where {{ args['soon'] }}) as of_the_table,
  {%- else %}
  (select count(*) from {{ args['target'] }} where {{ args['leaves'] }}) as leaving,
  {%- endif %}
  ({{ args['typed'] }}) as typed
  {%- endif %}
  {%- if args.get('count_target') %},
  (select count(*) from {{ args['count_target'] }}) as target_rows
  {%- endif %}
from {{ mv.mv_staged(args) }}
{%- endmacro %}

{#- Whether a row lacks a part of its key. -#}
{% macro mv_null_key(keys) -%}
({% for key in keys %}{{ adapter.quote(key) }} is null{{ ' or ' if not loop.last }}{% endfor %})
{%- endmacro %}

{#- When the next row enters or leaves by the clock. As a number, because rows carry timestamps in the local time of dbt's process. -#}
{% macro mv_next_change(args) -%}
(select unix_micros((
{{ args['next_change'] }}
  ))) as next_change
{%- endmacro %}
