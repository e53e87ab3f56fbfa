{#- Publish all staged rows as a table that is not there yet: the first run. It never replaces one: whoever made a table of
    that name meanwhile, another first run perhaps, has rows and kept values in it. -#}
{% macro mv_create_table(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_create_table', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_create_table(args) -%}
create table {{ args['relation'] }}
{{ mv_table_of_stage(args) }}
{%- endmacro %}
