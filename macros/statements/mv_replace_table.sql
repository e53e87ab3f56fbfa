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
from {{ mv.mv_staged(args) }}
{%- if args.get('inline') %}
where {{ mv.mv_checked_row(args) }}
{%- else %}
where __mv_op <> 'D'
{%- endif %}
{%- endmacro %}

{#- A condition that holds for every row of which the table may have one, and fails the statement for any other (`refused`: what it then says). Spark evaluates it for each row that
    it writes, above the count of the rows that share a key: nothing is committed before the last one. -#}
{% macro mv_checked_row(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
case
    when __mv_n > 1 or {{ mv.mv_null_key(args['keys']) }}
    {%- for condition in args['checks'] %}
      or not coalesce({{ condition }}, false)
    {%- endfor %}
    then raise_error({{ mv.mv_text(args['refused']) }})
    else true
  end
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
