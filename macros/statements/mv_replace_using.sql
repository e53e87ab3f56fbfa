{#- The staged rows that replace those of their keys and of the keys that are gone, see replace_using.py: Spark 4.1 knows the statement around this query
    only as a DataFrame's. -#}
{% macro mv_replace_using(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_replace_using', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_replace_using(args) -%}
select
  {%- for column in args['columns'] %}
  {{ adapter.quote(column['name']) }}{{ ',' if not loop.last }}
  {%- endfor %}
from {{ args['stage'] }}
where __mv_op <> 'D'
{%- endmacro %}
