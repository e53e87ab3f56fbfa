{#- Publish all staged rows as the new table: --full-refresh, changed columns or layout. One commit. -#}
{% macro default__mv_replace_table(args) -%}
create or replace table {{ args['relation'] }}
{{ mv_table_of_stage(args) }}
{%- endmacro %}

{#- What follows the name of a table that is made of the staged rows. `layout`: the model's own table has one, perhaps empty. -#}
{% macro mv_table_of_stage(args) -%}
using {{ args['using'] }}
{{ mv_tblproperties(args['properties']) }}
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
tblproperties (
  {%- for name in properties %}
  '{{ name }}' = {{ mv_text(properties[name] | string) }}{{ ',' if not loop.last }}
  {%- endfor %}
)
{%- endmacro %}
