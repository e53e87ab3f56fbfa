{#- Publish all staged rows as a table that is not there yet: the first run. With `inline`, rows that are staged nowhere, checked as they are
    written. It never replaces one: whoever made a table of
    that name meanwhile, another first run perhaps, has rows and kept values in it. -#}
{% macro default__mv_create_table(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
create table {{ args['relation'] }}
{{ mv.mv_table_of_stage(args) }}
{%- endmacro %}
