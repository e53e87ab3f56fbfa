{#- Whether all staged keys lie above the table's: two aggregates that Delta answers from its metadata. -#}
{% macro mv_key_range(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_key_range', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_key_range(args) -%}
  {%- set key = adapter.quote(args['keys'][0]) -%}
select (select min({{ key }}) from {{ args['stage'] }}) > (select max({{ key }}) from {{ args['target'] }}) as above
{%- endmacro %}
