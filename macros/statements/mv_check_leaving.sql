{#- How many rows of the table leave it, and when the next one does. -#}
{% macro mv_check_leaving(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_check_leaving', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_check_leaving(args) -%}
select
  count(*) as leaving
  {%- if args.get('next_change') %},
  {{ mv_next_change(args) }}
  {%- endif %}
from {{ args['target'] }}
where {{ args['leaves'] }}
{%- endmacro %}
