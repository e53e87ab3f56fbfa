{#- How many rows of the table leave it, and when the next one does. -#}
{% macro default__mv_check_leaving(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
select
  {%- if args.get('ends') %}
  {{ mv.mv_leaving_and_staying(args) }}
from {{ args['target'] }}
where {{ args['soon'] }}
  {%- else %}
  count(*) as leaving
  {%- if args.get('next_change') %},
  {{ mv.mv_next_change(args) }}
  {%- endif %}
from {{ args['target'] }}
where {{ args['leaves'] }}
{%- endif %}
{%- endmacro %}

{#- Of the rows that leave soon: how many leave in this run, and when the first of the others does. -#}
{% macro mv_leaving_and_staying(args) -%}
  count_if({{ args['leaves'] }}) as leaving,
  min(case when not ({{ args['leaves'] }}) then unix_micros({{ args['ends'] }}) end) as next_change
{%- endmacro %}
