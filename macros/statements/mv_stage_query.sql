{#- Write down the rows of a query: which rows a change can touch (their anchor columns, and whether the table may hold rows of
    them), or rows that are ready to be published. -#}
{% macro mv_stage_query(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_stage_query', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_stage_query(args) -%}
create table {{ args['into'] }} using parquet as
{{ args['query'] }}
{%- endmacro %}
