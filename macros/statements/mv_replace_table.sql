{#- Publish all staged rows as the new table: --full-refresh, changed columns or layout. One commit. -#}
{% macro default__mv_replace_table(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
create or replace table {{ args['relation'] }}
{{ mv.mv_table_of_stage(args) }}
{%- endmacro %}

{#- What follows the name of a table that is made of the staged rows. `layout`: the model's own table has one, perhaps empty. -#}
{% macro mv_table_of_stage(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
using {{ args['using'] }}
{{ mv.mv_tblproperties(args['properties']) }}
{%- if 'layout' in args %}
{{ args['layout'] }}
{{ location_clause() }}
{{ comment_clause() }}
{%- endif %}
as
select
  {%- for column in args['columns'] %}
  {{ adapter.quote(column['name']) }}{{ ',' if not loop.last }}
  {%- endfor %}
from {{ args['stage'] }}
where __mv_op <> 'D'
{%- endmacro %}

{#- What the table is to have (amendments.py): the user's own properties win. -#}
{% macro mv_tblproperties(properties) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
tblproperties (
  {%- for name in properties %}
  {{ mv.mv_text(name) }} = {{ mv.mv_text(properties[name] | string) }}{{ ',' if not loop.last }}
  {%- endfor %}
)
{%- endmacro %}
