{#- Publish staged rows whose keys are known to be new: no row of the table is read or rewritten. -#}
{% macro mv_append(args) -%}
  {{ return(adapter.dispatch('mv_append', 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_append(args) -%}
  {%- set names -%}
    {% for column in args['columns'] %}{{ adapter.quote(column['name']) }}{{ ', ' if not loop.last }}{% endfor %}
  {%- endset -%}
insert into {{ args['relation'] }} ({{ names }})
select {{ names }}
from {{ args['stage'] }}
where __mv_op = 'I'
{%- endmacro %}
