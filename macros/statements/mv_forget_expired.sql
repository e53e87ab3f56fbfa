{#- Rows whose window has passed need not be remembered any longer. -#}
{% macro mv_forget_expired(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_forget_expired', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_forget_expired(args) -%}
delete from {{ args['relation'] }} where __mv_valid_to <= {{ args['as_of'] }}
{%- endmacro %}
