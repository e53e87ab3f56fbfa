{#- The keys of the staged rows, as far as they are few. -#}
{% macro mv_staged_keys(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_staged_keys', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_staged_keys(args) -%}
select {% for key in args['keys'] %}{{ adapter.quote(key) }}{{ ', ' if not loop.last }}{% endfor %}
from {{ args['stage'] }}
limit {{ args['limit'] }}
{%- endmacro %}
