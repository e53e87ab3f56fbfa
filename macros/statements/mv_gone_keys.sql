{#- The keys of the staged rows that only leave, and one of those that are written. -#}
{% macro mv_gone_keys(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_gone_keys', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_gone_keys(args) -%}
  {%- set key = adapter.quote(args['keys'][0]) -%}
select {{ key }} as key, true as gone from {{ args['stage'] }} where __mv_op = 'D'
union all
select min({{ key }}), false from {{ args['stage'] }} where __mv_op <> 'D'
{%- endmacro %}
