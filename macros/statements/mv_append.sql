{#- Publish rows whose keys are known to be new: no row of the table is read or rewritten. -#}
{% macro default__mv_append(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set names -%}
    {% for column in args['columns'] %}{{ adapter.quote(column['name']) }}{{ ', ' if not loop.last }}{% endfor %}
  {%- endset -%}
insert into {{ args['relation'] }} ({{ names }})
select {{ names }}
from {{ mv.mv_staged(args) }}
where __mv_op = 'I'
{%- endmacro %}
