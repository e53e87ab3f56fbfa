{#- Write down which rows a change can touch: their anchor columns, and whether the table may hold rows of them. -#}
{% macro mv_stage_affected(args) -%}
  {{ return(adapter.dispatch('mv_stage_affected', 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_stage_affected(args) -%}
create table {{ args['into'] }} using parquet as
{{ args['query'] }}
{%- endmacro %}
