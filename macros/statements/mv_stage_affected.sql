{#- Write down which rows a change can touch: their anchor columns, and whether the table may hold rows of them. -#}
{% macro mv_stage_affected(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_stage_affected', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_stage_affected(args) -%}
create table {{ args['into'] }} using parquet as
{{ args['query'] }}
{%- endmacro %}
