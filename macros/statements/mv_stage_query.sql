{#- Write down the rows of a query: which rows a change can touch (their anchor columns, and whether the table may hold rows of
    them), or rows that are ready to be published. -#}
{% macro default__mv_stage_query(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
{{ mv.mv_stage_into(args) }}
{{ args['query'] }}
{%- endmacro %}
